"""Indexed attention (DeepSeek sparse attention): a small indexer scores every earlier token, and
all heads read the k = `topk` best.

    I_ij = sum_h w_ih max(0, <q^I_ih, k^I_j>),   h over the index heads,
    w_i = W x_i,   q^I_i = Q^I x_i,   k^I_j = K^I x_j
    M_i  = the k tokens j <= i with the largest I_ij;
           of equal scores the earlier token; all if fewer
    y_i  = sum_{j in M_i} a_ij V x_j,
    a_ij = exp(<Q x_i, K x_j>) / sum_{j' in M_i} exp(<Q x_i, K x_j'>)    per head

The token itself is scored like the others and may be left out. As released, but for keys and values
per key-value head instead of a latent, and an indexer without norm and rotation (`conv` and `rope`
are for q, k and v only). The released factors 1/sqrt of the index heads and of their dimension do
not change the choice. The choice has no gradient, so neither have Q^I, K^I and W: DeepSeek trains
them to predict full attention, with a loss of its own that is not here.
Source: DeepSeek-AI 2025 (DeepSeek-V3.2-Exp), section 2; transformers' deepseek_v32.
State after t tokens: keys and values (kv_heads, t, .) and index keys (t, index_dim).
Parallel form: a part of the queries at a time, computed again in the backward pass: memory linear
in T. The index scores take time T^2.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.errors import SizeError
from separatrix.mechanisms import Indexed
from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer, softmax
from separatrix.mixers.ops import block_choice
from separatrix.mixers.ops.block_choice import largest, ranked, spans
from separatrix.mixers.ops.recompute import recomputed

DENSE = 8
"""Queries that see up to this many times `topk` tokens take a masked softmax over all of them,
which is faster than gathering theirs.
"""


class IndexedMixer(SoftmaxMixer):
    """Attention to the tokens an indexer chooses. Raises SizeError for blocks, and for a latent."""

    def __init__(self, mechanism: Indexed, *, width: int) -> None:
        if mechanism.block > 1 or mechanism.latent is not None:
            given = (
                f"block={mechanism.block}" if mechanism.block > 1 else f"latent={mechanism.latent}"
            )
            raise SizeError(
                f"'indexed' with {given} has declared sizes but no mixer; set block=1 and leave"
                " latent out"
            )
        super().__init__(mechanism, width=width)
        self.topk = mechanism.topk
        self.index_heads = mechanism.index_heads
        self.index_dim = mechanism.index_dim
        self.index_q = linear(width, self.index_heads * self.index_dim)
        self.index_k = linear(width, self.index_dim)
        self.index_w = linear(width, self.index_heads)

    def shapes(self, t: int) -> Shapes:
        return self._cached(t) | {"index_keys": (t, self.index_dim)} | self._conv_shapes(t)

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        # the choice has no gradient
        index_q, index_w, index_k = self._index(x.detach())
        tokens = x.shape[1]
        # at least 64 queries to a part, and some 64 parts at most: each costs a pass of its own
        places = spans(
            tokens, max(64, tokens // 64, block_choice.ROOM // (len(x) * self.heads * tokens)), 1
        )
        lengths = [last - first for first, last in places]
        outputs = []
        for (first, last), part, iq, iw in zip(
            places,
            q.split(lengths, 2),
            index_q.split(lengths, 1),
            index_w.split(lengths, 1),
            strict=True,
        ):
            seen = (
                torch.arange(last, device=x.device)
                <= torch.arange(first, last, device=x.device)[:, None]
            )
            chosen = largest(
                index_scores(iq, iw, index_k[:, :last]).masked_fill(~seen, -math.inf), self.topk
            )
            read = masked if last <= DENSE * self.topk else gathered
            outputs.append(
                recomputed(partial(read, start=first), part, k[:, :, :last], v[:, :, :last], chosen)
            )
        return self._out(torch.cat(outputs, 2).to(x.dtype))

    def _last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        _, _, index_k = self._index(x.detach())
        return self._read(x[:, -1:], *self._qkv(self._project_last(x)), index_k)

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = torch.cat([state["keys"], k], 2)
        values = torch.cat([state["values"], v], 2)
        index_keys = torch.cat([state["index_keys"], self.index_k(x)[:, None]], 1)
        y = self._read(x[:, None], q, keys, values, index_keys)
        return y, {"keys": keys, "values": values, "index_keys": index_keys} | conv

    def _index(
        self, x: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t h"], Float[Tensor, "b t d"]]:
        return (
            self.index_q(x).unflatten(-1, (self.index_heads, -1)),
            self.index_w(x),
            self.index_k(x),
        )

    def _read(
        self,
        x: Float[Tensor, "b 1 w"],
        q: Float[Tensor, "b h 1 d"],
        k: Float[Tensor, "b g t d"],
        v: Float[Tensor, "b g t e"],
        index_k: Float[Tensor, "b t i"],
    ) -> Float[Tensor, "b w"]:
        """The output of the last of t tokens, reading only the tokens it chooses."""
        index_q, index_w, _ = self._index(x)
        scores = index_scores(index_q, index_w, index_k)[:, 0]
        chosen = ranked(scores, self.topk)[:, None, :, None]  # b 1 k 1
        k, v = (y.gather(2, chosen.expand(-1, y.shape[1], -1, y.shape[3])) for y in (k, v))
        return self._out(self._attend(q, k, v))[:, 0]


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


def masked(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor, *, start: int) -> Tensor:
    """Softmax over the chosen tokens (b i k) for queries at `start`, ... (q b h i d; k, v b g j
    .), all others masked.
    """
    seen = _visible(chosen, start)
    mask = torch.zeros(*chosen.shape[:2], k.shape[2], dtype=torch.bool, device=q.device).scatter(
        -1, chosen, seen
    )
    queries = q.unflatten(1, (k.shape[1], -1))  # b g r i d
    scores = (queries @ k[:, :, None].transpose(-1, -2)).masked_fill(
        ~mask[:, None, None], -math.inf
    )
    return softmax(scores.flatten(1, 2), v.repeat_interleave(queries.shape[2], 1))


def gathered(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor, *, start: int) -> Tensor:
    """The same, of keys and values gathered for every query."""
    batch, groups, tokens, _ = k.shape
    # the rows of all sequences and heads in one list: where each of them begins
    first = torch.arange(batch * groups, device=k.device).view(batch, groups, 1, 1) * tokens
    rows = (chosen[:, None] + first).flatten()
    keys, values = (
        y.flatten(0, 2).index_select(0, rows).view(batch, groups, *chosen.shape[1:], -1)
        for y in (k, v)
    )  # b g i k .
    queries = q.unflatten(1, (groups, -1)).transpose(2, 3)  # b g i r d
    scores = (queries @ keys.transpose(-1, -2)).masked_fill(
        ~_visible(chosen, start)[:, None, :, None], -math.inf
    )
    return (scores.softmax(-1) @ values).transpose(2, 3).flatten(1, 2)


def _visible(chosen: Int[Tensor, "b i k"], start: int) -> Bool[Tensor, "b i k"]:
    """Which of the chosen are not later than the query: a query with fewer than k earlier tokens
    has chosen later ones too.
    """
    return chosen <= torch.arange(start, start + chosen.shape[1], device=chosen.device)[:, None]
