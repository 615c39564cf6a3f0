"""DeepSeek sparse attention: a small indexer scores every earlier token, and all heads read the k =
`topk` best; over keys and values per key-value head (indexed), or over latents as released (dsa).

    I_ij = sum_h w_ih max(0, <q^I_ih, k^I_j>),   h over the index heads,   w_i = W x_i
    M_i  = the k tokens j <= i with the largest I_ij; of equal scores the earlier token; all if
           fewer
    y_i  = softmax attention, or latent attention as in mla.py, over j in M_i alone

Indexed: q^I_i = Q^I x_i, k^I_j = K^I x_j, with neither norm nor rotation (`conv` and `rope` are for
q, k and v only). DSA:

    a_i    = A x_i / rms(A x_i)               the latent of queries, where there is one; else x_i
    q^I_ih = R_i(Q^I_h a_i)                   per index head; R_i turns the first rope_dim numbers
    k^I_j  = R_j(LayerNorm(K^I x_j))          `index_dim` numbers for all index heads

and q_i is a map of a_i; `conv` runs on q, C x and R x, as in mla.py.

The token itself is scored like the others and may be left out. The released factors 1/sqrt of the
index heads and of their dimension do not change the choice, nor does the rotation of all index
numbers that comes before its 8-bit scores. The choice has no gradient, so neither have Q^I, K^I, W
and the norm of index keys: DeepSeek trains them to predict full attention, with a loss of its own
that is not here.
Source: DeepSeek-AI 2025 (DeepSeek-V3.2), arXiv 2512.02556, section 2.1; transformers' deepseek_v32.
State after t tokens: keys and values (kv_heads, t, .), or latents (t, latent) and rotated keys (t,
rope_dim); and index keys (t, index_dim). Parallel form: keys and values written out, a
part of the queries at a time, computed again in the backward pass, so that memory is linear. The
index scores take time T^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.heads import merge_heads
from separatrix.mixers.base.mixer import EPSILON, Shapes, State, linear, normed, unbuilt, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    Channels,
    GroupKeys,
    GroupValues,
    Keys,
    OneToken,
    Queries,
    SomeTokens,
    Tokens,
    Values,
)
from separatrix.mixers.mla import LatentMixer
from separatrix.mixers.ops import blockwise
from separatrix.mixers.ops.blockwise import among_largest, largest
from separatrix.mixers.ops.maps import rotate
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import chosen_softmax, in_parts
from separatrix.stacks.mechanisms import DSA, Indexed


class Indexer(nn.Module):
    """The indexer. It stands beside a mixer among the bases of a class."""

    index_rotation: Rotation | None = None
    chooses = True

    def _add_index(
        self, mechanism: Indexed | DSA, inputs: int, width: int, *, norm: bool = False
    ) -> None:
        self.topk = mechanism.topk
        self.index_heads = mechanism.index_heads
        self.index_dim = mechanism.index_dim
        self.index_q = linear(inputs, self.index_heads * self.index_dim)
        self.index_k = linear(width, self.index_dim)
        self.index_w = linear(width, self.index_heads)
        self.index_norm = nn.LayerNorm(self.index_dim, eps=EPSILON) if norm else None

    def _more(self, t: int) -> Shapes:
        return {"index_keys": (t, self.index_dim)}

    def _asking(self, x: SomeTokens) -> Float[Tensor, "*b n"]:
        return x

    def _index(
        self, x: Tokens, start: int
    ) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t h"]]:
        """Queries and weights of the indexer for tokens that stand at `start`, ..."""
        # the choice has no gradient
        x = x.detach()
        q = self.index_q(self._asking(x)).unflatten(-1, (self.index_heads, -1))
        if self.index_rotation is not None:
            q = rotate(q.transpose(1, 2), self.index_rotation, start=start).transpose(1, 2)
        return q, self.index_w(x)

    def _index_keys(self, x: Tokens, start: int) -> Float[Tensor, "b t d"]:
        k = self.index_k(x.detach())
        if self.index_norm is not None:
            k = self.index_norm(k)
        if self.index_rotation is not None:
            k = rotate(k[:, None], self.index_rotation, start=start)[:, 0]
        return k

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        index_keys = {"index_keys": self._index_keys(x, start)}
        return super()._stored(k, v, x, start) | index_keys  # type: ignore[misc]

    def _of_chosen(self, q: Keys, k: GroupKeys, v: GroupValues, x: Tokens) -> Values:
        """The outputs of the heads for all tokens x, with these queries, keys and values."""
        index = (*self._index(x, 0), self._index_keys(x, 0))
        return indexed_softmax(wide(q), wide(k), wide(v), index, self.topk)

    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        """The output of the token x at a place, from the tokens it chooses."""
        kept = dict(kept)
        scores = index_scores(*self._index(x, place), kept.pop("index_keys"))
        chosen = largest(scores[:, 0], self.topk)
        picked: State = {}
        for name, y in kept.items():
            # sequence by sequence and head by head: quicker than an index of several axes
            rows = y.flatten(0, -3)
            each = len(rows) // len(y)
            found = [row.index_select(0, chosen[i // each]) for i, row in enumerate(rows)]
            picked[name] = torch.stack(found).view(*y.shape[:-2], -1, y.shape[-1])
        return super()._read(x, q, picked, place)  # type: ignore[misc]


class IndexedMixer(Indexer, SoftmaxMixer):
    """Attention to the tokens an indexer chooses. Raises SizeError for blocks."""

    def __init__(self, mechanism: Indexed, *, width: int) -> None:
        unbuilt(mechanism, block=mechanism.block > 1)
        super().__init__(mechanism, width=width)
        self._add_index(mechanism, width, width)

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        return self._out(self._of_chosen(q, k, v, x), x)


class DSAMixer(Indexer, LatentMixer):
    """Latent attention to the tokens an indexer chooses."""

    def __init__(self, mechanism: DSA, *, width: int) -> None:
        queries = mechanism.query_latent
        super().__init__(mechanism, width=width, queries=queries)
        self.a = None if queries is None else linear(width, queries)
        self._add_index(mechanism, queries or width, width, norm=True)
        self.index_rotation = self.rotation

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        assert self.index_norm is not None
        self.index_norm.reset_parameters()

    def _asking(self, x: SomeTokens) -> Float[Tensor, "*b n"]:
        return x if self.a is None else normed(self.a(x))

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._qkv(self._project(x))
        y = self._of_chosen(q, *self._written_out(c, r), x)
        return self.o(merge_heads(y.to(x.dtype)))


def indexed_softmax(
    q: Keys,
    k: GroupKeys,
    v: GroupValues,
    index: tuple[Float[Tensor, "b t n c"], Float[Tensor, "b t n"], Channels],
    topk: int,
) -> Values:
    """The outputs of all tokens; `index` are queries, weights and keys of the indexer."""
    batch, heads, tokens, _ = q.shape
    index_q, index_w, index_k = (y.detach() for y in index)

    def choice(choose: Callable[[Tensor, int], Tensor], first: int, last: int) -> Tensor:
        run = partial(best, choose=choose, topk=topk)
        return recomputed(run, index_q[:, first:last], index_w[:, first:last], index_k[:, :last])

    near = min(tokens, max(1, blockwise.DENSE) * topk)
    keys, values = (y[:, :, :near].repeat_interleave(heads // k.shape[1], 1) for y in (k, v))
    marks = partial(choice, lambda scores, k: among_largest(scores, k)[:, None])
    outputs = [chosen_softmax(q[:, :, :near], keys, values, marks, whole=topk)]
    if near < tokens:
        places = blockwise.few_scores(near, tokens, batch * heads)
        rest = q[:, :, near:]
        outputs += in_parts(
            gathered, places, rest, (k, v), lambda *at: (choice(largest, *at),), kept=False
        )
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2)


def best(
    q: Tensor, w: Tensor, k: Tensor, *, choose: Callable[[Tensor, int], Tensor], topk: int
) -> Tensor:
    """What is chosen for the last tokens by their scores, of later tokens minus infinity."""
    later = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device)
    scores = index_scores(q, w, k)
    return choose(scores.masked_fill(later.triu(1 + k.shape[1] - q.shape[1]), -math.inf), topk)


def index_scores(
    q: Float[Tensor, "b i h d"], w: Float[Tensor, "b i h"], k: Float[Tensor, "b j d"]
) -> Float[Tensor, "b i j"]:
    """Scores of all tokens j for each token i, no token hidden."""
    k = wide(k).transpose(-1, -2)
    scores = None
    # in turn: all at once take a lot of memory
    for one, weight in zip(wide(q).unbind(2), wide(w)[..., None].unbind(2), strict=True):
        hits = (one @ k).relu()
        scores = weight * hits if scores is None else torch.addcmul(scores, weight, hits)
    assert scores is not None
    return scores


def gathered(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor, *, first: int) -> Tensor:
    """Softmax over the chosen tokens (b i k), none of them later than the query (q b h i d; k, v b
    g j .), of keys and values gathered for every query from token `first` on.
    """
    batch, groups, tokens, _ = k.shape
    # the rows of all sequences and heads in one list: where each of them begins
    start = torch.arange(batch * groups, device=k.device).view(batch, groups, 1, 1) * tokens
    rows = (chosen[:, None] + start).flatten()
    keys, values = (
        y.flatten(0, 2).index_select(0, rows).view(batch, groups, *chosen.shape[1:], -1)
        for y in (k, v)
    )  # b g i k .
    queries = q.unflatten(1, (groups, -1)).transpose(2, 3)  # b g i r d
    weights = (queries @ keys.transpose(-1, -2)).softmax(-1)
    return (weights @ values).transpose(2, 3).flatten(1, 2)
