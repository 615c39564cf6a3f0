"""The softmax of attention: scores, masks, sinks and forget gates; and which form computes it.

PyTorch's fused kernel where it is quicker; else weights written out, a part of the queries at a
time, which reads no later part. Long sequences compute each part again in the backward pass, so
that memory stays linear.

    s_ij = cap(<q_i, k_j>) + f_{j+1} + ... + f_i,   f_l = log of the forget gate of token l

Sums of f are taken between the two tokens, never as differences of sums from the start, which would
lose the digits that the two have in common. For a query of a part that starts at token b and a key
before b the sum is one up to b and one from b on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.tensors import Keys, PerToken, Sinks, Values
from separatrix.mixers.ops.blockwise import ROOM, few_scores, is_dense, spans, tiled
from separatrix.mixers.ops.decay import after
from separatrix.mixers.ops.recompute import recomputed

PART = 128
"""Queries of a part, about, where weights are kept for the backward pass. Forward and backward of
257 tokens, batch 64, a head of 64: 52 ms in parts of 128, 60 of 64, 65 in one.
"""
FUSED_FROM = 129
"""Keys from which on the fused kernel is used where products are MKL's or CUDA's. Forward and
backward on one thread, batch 64, a head of 64, of the explicit form's time: 1.1 times at 65 tokens,
1.0 at 129 and 257, 0.7 with a head of 16 at 257.
"""
FUSED_FROM_ONEDNN = 769
"""The same where float32 products are oneDNN's, which the fused kernel does not use: 4.6 times at
65 tokens, 3.0 at 129, 1.6 at 257, 1.5 at 513, 1.15 at 769, 1.0 at 1,025; heads of 16 to 128 alike.
"""
KEPT = 1 << 25
"""Most weights that the explicit form keeps for the backward pass: 128 MiB of float32."""


def capped(scores: Float[Tensor, "*b"], cap: int) -> Float[Tensor, "*b"]:
    """cap tanh(scores / cap); the scores themselves where cap is 0."""
    return cap * (scores / cap).tanh() if cap else scores


def softmax(
    scores: Float[Tensor, "*b h i j"],
    v: Float[Tensor, "*b h j e"],
    sink: Float[Tensor, "*#b h"] | None = None,
) -> Float[Tensor, "*b h i e"]:
    """softmax(scores) v in float32 at least, the softmax with one score more, `sink`, of a value of
    0; rounded to the format of v once, at the end.
    """
    scores = wide(scores)
    if sink is None:
        weights = scores.softmax(-1)
    else:
        scores = torch.cat([wide(sink)[..., None, None].expand(*scores.shape[:-1], 1), scores], -1)
        weights = scores.softmax(-1)[..., 1:]
    # gates may make scores wider than values
    return (weights @ v.to(weights.dtype)).to(v.dtype)


def masked_softmax(
    q: Float[Tensor, "*b h i d"],
    k: Float[Tensor, "*b h j d"],
    v: Float[Tensor, "*b h j e"],
    seen: Shaped[Tensor, "... i j"],
    sink: Sinks = None,
    cap: int = 0,
) -> Float[Tensor, "*b h i e"]:
    """Softmax attention with scores <q, k>, capped where `cap` is not 0, where query i sees key j
    if `seen[..., i, j]`, or with that added where it is numbers; every query sees at least one key.
    """
    if q.dim() == 4 and sink is None and not cap and fused(q, k):
        return fused_softmax(q, k, v, attn_mask=seen)
    scores = capped(wide(q) @ wide(k).transpose(-1, -2), cap)
    if seen.dtype != torch.bool:
        return softmax(scores + seen, v, sink)
    return softmax(scores.masked_fill(~seen, float("-inf")), v, sink)


def causal_softmax(q: Keys, k: Keys, v: Values, sink: Sinks = None, cap: int = 0) -> Values:
    """Causal softmax attention with scores <q, k>, capped where `cap` is not 0, and with sinks."""
    if cap or not fused(q, k):
        return parted_softmax(q, k, v, sink, cap)
    if sink is None:
        return fused_softmax(q, k, v, is_causal=True)
    # a token before the first, of value 0, whose score with every query is the sink:
    # <(q, 1), (0, s)>
    q = F.pad(q, (0, 1), value=1.0)
    k = F.pad(k, (0, 1))
    first = F.pad(sink[:, None].expand(*k.shape[:2], 1), (k.shape[3] - 1, 0))[:, :, None]
    # a query beside that token keeps the causal mask in step; its output is cut off
    q = F.pad(q, (0, 0, 1, 0))
    k = torch.cat([first, k], 2)
    v = F.pad(v, (0, 0, 1, 0))
    return fused_softmax(q, k, v, is_causal=True)[:, :, 1:]


def parted_softmax(
    q: Keys, k: Keys, v: Values, sink: Sinks = None, cap: int = 0, *gates: PerToken
) -> Values:
    """Softmax over all tokens up to the own one, with the logs of forget gates, if any."""
    batch, heads, tokens, _ = q.shape
    # first axis the batch, as `recomputed` asks
    sinks = [] if sink is None else [sink.expand(batch, heads)]
    kept = tokens <= PART or batch * heads * tokens * tokens <= KEPT
    if kept:
        # parts of one size: a last one of a few queries would cost as much as another
        size = -(-tokens // max(1, round(tokens / PART)))
        places = spans(0, tokens, size)
    else:
        places = few_scores(0, tokens, batch * heads)
    run = partial(_part, gated=bool(gates), cap=cap)
    return _joined(in_parts(run, places, q, (k, v, *gates), lambda first, last: sinks, kept=kept))


def in_parts(
    run: Callable[..., Tensor],
    places: Sequence[tuple[int, int]],
    q: Tensor,
    seen: Sequence[Tensor],
    beside: Callable[[int, int], Sequence[Tensor]],
    *,
    kept: bool,
) -> list[Tensor]:
    """The outputs of consecutive parts of queries: of `run` of each, what it sees up to its end and
    what stands beside it.
    """
    outputs = []
    queries = q.split([last - first for first, last in places], 2)
    # from the end: what a part reads is cut from what the next one does, so that gradients are
    # added up over no more tokens than that
    for (first, last), own in zip(reversed(places), reversed(queries), strict=True):
        seen = [x[:, :, :last] if last < x.shape[2] else x for x in seen]
        inputs = (own, *seen, *beside(first, last))
        part = partial(run, first=first)
        outputs.append(part(*inputs) if kept else recomputed(part, *inputs))
    return outputs[::-1]


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def _part(
    q: Tensor, k: Tensor, v: Tensor, *rest: Tensor, gated: bool, first: int, cap: int
) -> Tensor:
    """The outputs of the queries from token `first` on; the rest are gates, if any, and sinks."""
    q = wide(q)
    k = wide(k)
    last = k.shape[2]
    # added, not filled in: that needs no pass of its own in the backward pass
    mask = q.new_full((last - first, last), -math.inf).triu(1 + first)
    sink = rest[-1] if len(rest) > gated else None
    if cap or gated:
        scores = capped(q @ k.mT, cap) + mask
        return softmax(scores + between(rest[0], first) if gated else scores, v, sink)
    scores = torch.baddbmm(mask, q.flatten(0, 1), k.flatten(0, 1).mT).unflatten(0, q.shape[:2])
    return softmax(scores, v, sink)


PARTED = 512
"""Tokens up to which those that choose, or see a window, take parts even where all is seen: 512 of
one sequence, 4 heads of 64, forward and backward: 7 ms, in the fused kernel 10.
"""
CHOSEN_PART = 256
"""Queries of a part that reads what it has chosen."""
Choice = Callable[[int, int], Bool[Tensor, "b n i m"]]
"""From which token up to which -> the blocks that these read, of n heads or 1 for all, their own
block among them.
"""


def chosen_softmax(
    q: Keys, k: Keys, v: Values, choice: Choice, *, block: int = 1, whole: int = 0
) -> Values:
    """Softmax attention to the tokens, up to the own one, of blocks that are chosen, a part of the
    queries at a time; the first `whole` tokens read all.
    """
    batch, heads, tokens, _ = q.shape
    whole = min(whole, tokens)
    outputs: list[Tensor] = []
    if whole:
        attend = parted_softmax if whole <= PARTED else causal_softmax
        outputs.append(attend(q[:, :, :whole], k[:, :, :whole], v[:, :, :whole]))
    if whole < tokens:
        size = max(CHOSEN_PART, tokens // 16)
        kept = batch * heads * tokens * tokens <= KEPT
        run = partial(_chosen_part, block=block)
        if not is_dense(tokens, whole):
            # in parts that begin where blocks do; what is not kept it says itself
            kept = True
            scores = max(whole, batch * heads * tokens // block)
            size = max(ROOM // scores, 8 * block, size) // block * block
            run = partial(tiled, block=block, picks=whole // block - 1)
        places = spans(whole, tokens, size)
        rest = q[:, :, whole:]
        outputs += in_parts(run, places, rest, (k, v), lambda *at: (choice(*at),), kept=kept)
    return _joined(outputs)


def _chosen_part(
    q: Tensor, k: Tensor, v: Tensor, marks: Tensor, *, block: int, first: int
) -> Tensor:
    last = k.shape[2]
    seen = torch.zeros_like(marks, dtype=q.dtype).masked_fill(~marks, -math.inf)
    if block > 1:
        seen = seen.repeat_interleave(block, -1)[..., :last]
    seen[..., first:] += q.new_full((last - first, last - first), -math.inf).triu(1)
    return masked_softmax(q, k, v, seen)


def between(log_f: PerToken, first: int) -> Float[Tensor, "b h i j"]:
    """f_{j+1} + ... + f_i for the tokens i from `first` on; of later j something finite."""
    own = log_f[:, :, first:]
    up_to = own.cumsum(2)
    # its own part: every sum by itself
    inside = own.expand(*own.shape[:3], own.shape[2]).tril(-1).cumsum(-2)
    if not first:
        return inside
    before = after(log_f[:, :, :first]).mT
    return torch.cat([up_to + before, inside], -1)


def fused_softmax(
    q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False, attn_mask: Tensor | None = None
) -> Tensor:
    """The fused kernel takes one dimension for q, k and v, or falls back to quadratic memory:
    the shorter ones are filled up with zeros.
    """
    d = q.shape[-1]
    e = v.shape[-1]
    q, k, v = (
        F.pad(x, (0, max(d, e) - x.shape[-1])) if x.shape[-1] < max(d, e) else x for x in (q, k, v)
    )
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=1.0
    )[..., :e]


def fused(q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"]) -> bool:
    """Whether the fused kernel computes the softmax: where it is quicker, and where the weights of
    the explicit form would take too much memory.
    """
    # it has no batching rule, so under torch.func.vmap it would run model by model, with a warning
    if torch._C._are_functorch_transforms_active():
        return False
    tokens = k.shape[2]
    first = FUSED_FROM if q.is_cuda or not _onednn() else FUSED_FROM_ONEDNN
    return tokens >= first or q.shape[0] * q.shape[1] * q.shape[2] * tokens > KEPT


def _onednn() -> bool:
    """Whether float32 products on a CPU go through oneDNN, as
    `torch.set_float32_matmul_precision("medium")` has it.
    """
    # PyTorch 2.9 on; reading the older name fails once the newer one was set
    products = getattr(torch.backends.mkldnn, "matmul", None)
    precision = getattr(products, "fp32_precision", None)
    if precision is None:
        return torch.get_float32_matmul_precision() == "medium"
    return precision in ("bf16", "tf32")


def running_softmax(
    blocks: Iterable[tuple[Float[Tensor, "b h 1 j"], Float[Tensor, "b h j e"]]],
) -> Float[Tensor, "b h 1 e"]:
    """Softmax attention of one query over keys whose scores and values come block by block, none of
    which is kept: the maximum, the normaliser and the weighted sum of values so far, for each head.

        m' = max(m, max_j s_j)
        Z' = e^(m - m') Z + sum_j e^(s_j - m')
        y' = e^(m - m') y + sum_j e^(s_j - m') v_j

    Source: Milakov & Gimelshein 2018, arXiv 1805.02867.
    """
    top = torch.tensor(-math.inf)
    normaliser = values = torch.zeros(())
    for scores, v in blocks:
        wide_scores = wide(scores)
        before, top = top, torch.maximum(wide_scores.amax(-1, keepdim=True), top)
        kept = (before - top).exp_()
        weights = (wide_scores - top).exp_()
        normaliser = weights.sum(-1, keepdim=True) + kept * normaliser
        values = weights @ wide(v) + kept * values
    return values / normaliser
