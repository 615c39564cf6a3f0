"""Levels of log-linear attention: which bucket of a Fenwick tree a token lies in, the weights of
the levels, and what is read above a chunk.

Tokens are counted from 0, so token i has i tokens before it. These fall into one bucket of 2^l
tokens for every bit l that is set in i, the largest bucket first. The bucket of bit l is level l+1;
token i itself is a bucket of its own, level 0. So token j <= i stands at level bit_length(i xor j).
The weights are lambda_i = softplus(Lambda x_i).
Source: Guo et al. 2025, arXiv 2506.04761, section 3.1. Shapes: b batch, t tokens, w model width, h
heads, l levels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import join_chunks, wide
from separatrix.mixers.base.tensors import Keys, Matrices, Matrix, OneQuery, OneRead, Tokens, Values

LEVELS = 32
"""Levels a mixer has weights for: sequences of up to 2^31 tokens."""


class LevelWeights(nn.Linear):
    """lambda_i = softplus(Lambda x_i), rows of Lambda: level first, then head."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, LEVELS * heads, bias=False)
        self.heads = heads

    def of(self, x: Tokens, tokens: int) -> Float[Tensor, "b h t l"]:
        """lambda for the levels that a sequence of so many tokens has. Raises SizeError for more
        than 2^31.
        """
        # i xor j has at most the bits of the last place; level l+1 is for bit l
        used = (tokens - 1).bit_length() + 1
        if used > LEVELS:
            raise SizeError(
                f"token {tokens} of log-linear attention; it has weights for {LEVELS} levels,"
                f" enough for 2^{LEVELS - 1} tokens"
            )
        logits = F.linear(x, self.weight[: used * self.heads])
        return rearrange(F.softplus(wide(logits)), "b t (l h) -> b h t l", h=self.heads)


def levels(i: Int[Tensor, "*#b"], j: Int[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
    """The level at which token i sees token j <= i: bit_length(i xor j)."""
    # x = m 2^e with 1/2 <= m < 1, and e = 0 for x = 0
    return torch.frexp((i ^ j).double()).exponent.long()


def chunk_size(chunk: int, tokens: int) -> int:
    """The largest power of two up to both."""
    return 1 << (min(chunk, tokens).bit_length() - 1)


def split_runs(x: Keys, chunk: int) -> Float[Tensor, "b h n c d"]:
    """Chunks of `chunk` tokens, a power of two of them, filled up with zeros."""
    chunks = 1 << (-(-x.shape[2] // chunk) - 1).bit_length()
    return rearrange(
        F.pad(x, (0, 0, 0, chunks * chunk - x.shape[2])), "b h (n c) d -> b h n c d", n=chunks
    )


def inside_chunk(weights: Float[Tensor, "b h n c l"]) -> Float[Tensor, "b h n c c"]:
    """lambda_i at the level of token j, for i and j in one chunk."""
    place = torch.arange(weights.shape[3], device=weights.device)
    inside = levels(place[:, None], place)
    return weights.gather(-1, inside.expand(*weights.shape[:3], *inside.shape))


def climb(
    y: Float[Tensor, "b h n c e"],
    q: Float[Tensor, "b h n c d"],
    sums: Matrices,
    weights: Float[Tensor, "b h n c l"],
    tokens: int,
    passed: Float[Tensor, "b h n #d #d"] | None = None,
) -> Values:
    """What all tokens read: y inside their chunk, and above it, level by level, the tokens of every
    odd run of chunks the state of the even run before it: O(T log T).

    q are the queries as they read the state before their chunk, `sums` what a chunk adds, `passed`
    what it makes of the state before it: nothing, a factor, or a matrix.
    """
    chunk = q.shape[3]
    # chunks have 2^p tokens: the first level above them is that of bit p, p + 1
    level = (chunk - 1).bit_length() + 1
    while sums.shape[2] > 1:
        even, odd = _pairs(sums)
        runs = rearrange(q, "b h (m two r) c d -> two b h m (r c) d", two=2, m=even.shape[2])
        weight = rearrange(
            weights[..., level], "b h (m two r) c -> two b h m (r c)", two=2, m=even.shape[2]
        )[1]
        y = y + _to_odd_runs(weight[..., None] * (runs[1] @ even), chunk)
        if passed is None:
            sums = even + odd
        else:
            first, second = _pairs(passed)
            factor = first.shape[-1] == 1
            # at the next level the queries of odd runs reach further back, through the even run
            through = torch.stack([runs[0], first * runs[1] if factor else runs[1] @ first])
            q = rearrange(through, "two b h m (r c) d -> b h (m two r) c d", c=chunk)
            sums = (second * even if factor else second @ even) + odd
            passed = second * first if factor else second @ first
        level = level + 1
    return join_chunks(y, tokens)


def _pairs(x: Matrices) -> tuple[Tensor, ...]:
    """The even runs and the odd ones."""
    return rearrange(x, "b h (m two) d e -> two b h m d e", two=2).unbind(0)


def _to_odd_runs(read: Float[Tensor, "b h m s e"], chunk: int) -> Float[Tensor, "b h n c e"]:
    """What the tokens of every odd run of chunks read, among zeros for the even runs."""
    return rearrange(
        F.pad(read[:, :, :, None], (0, 0, 0, 0, 1, 0)),
        "b h m two (r c) e -> b h (m two r) c e",
        c=chunk,
    )


def read_slots(
    q: OneQuery, own: Matrix, slots: list[Tensor], weights: Float[Tensor, "b h 1 l"]
) -> OneRead:
    """The output of one token: its own state is level 0, the slot of bit l is level l+1."""
    states = torch.stack([own, *slots], 1)
    return torch.einsum("bhl,bhtd,blhde->bhte", weights[:, :, 0], q, states)


def slots_after(slots: list[Tensor], own: Tensor, t: int) -> Tensor:
    """The buckets (b l h d e) after token t: its own state joins slot 0; two buckets of one size
    merge into the next, as in adding 1 to t.
    """
    # trailing ones of t: the buckets that merge with the new token
    full = (~t & (t + 1)).bit_length() - 1
    merged = sum(slots[:full], own)
    return torch.stack([*[torch.zeros_like(own)] * full, merged, *slots[full + 1 :]], 1)
