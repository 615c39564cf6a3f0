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
are for q, k and v only); as it is: dsa.py. The released factors 1/sqrt of the index heads and of
their dimension do not change the choice. The choice has no gradient, so neither have Q^I, K^I and
W: DeepSeek trains them to predict full attention, with a loss of its own that is not here.
Source: DeepSeek-AI 2025 (DeepSeek-V3.2-Exp), section 2; transformers' deepseek_v32.
State after t tokens: keys and values (kv_heads, t, .) and index keys (t, index_dim).
Parallel form: ops/indexed_softmax.py. The index scores take time T^2.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import GroupKeys, GroupValues, OneQuery, OneToken, Token, Tokens
from separatrix.mixers.ops.block_choice import largest
from separatrix.mixers.ops.indexed_softmax import index_scores, indexed_softmax
from separatrix.stacks.mechanisms import Indexed


class IndexedMixer(SoftmaxMixer):
    """Attention to the tokens an indexer chooses. Raises SizeError for blocks."""

    def __init__(self, mechanism: Indexed, *, width: int) -> None:
        if mechanism.block > 1:
            raise SizeError(
                f"'indexed' with block={mechanism.block} has declared sizes but no mixer; set"
                " block=1"
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

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        # the choice has no gradient
        y = indexed_softmax(q, k, v, self._index(x.detach()), self.topk)
        return self._out(y.to(x.dtype))

    def _last(self, x: Tokens) -> Token:
        _, _, index_k = self._index(x.detach())
        return self._read(x[:, -1:], *self._qkv(self._project_last(x)), index_k)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = torch.cat([state["keys"], k], 2)
        values = torch.cat([state["values"], v], 2)
        index_keys = torch.cat([state["index_keys"], self.index_k(x)[:, None]], 1)
        y = self._read(x[:, None], q, keys, values, index_keys)
        return y, {"keys": keys, "values": values, "index_keys": index_keys} | conv

    def _index(
        self, x: Tokens
    ) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t h"], Float[Tensor, "b t d"]]:
        return (
            self.index_q(x).unflatten(-1, (self.index_heads, -1)),
            self.index_w(x),
            self.index_k(x),
        )

    def _read(
        self,
        x: OneToken,
        q: OneQuery,
        k: GroupKeys,
        v: GroupValues,
        index_k: Float[Tensor, "b t i"],
    ) -> Token:
        """The output of the last of t tokens, reading only the tokens it chooses."""
        index_q, index_w, _ = self._index(x)
        scores = index_scores(index_q, index_w, index_k)[:, 0]
        chosen = largest(scores, self.topk)[:, None, :, None]  # b 1 k 1
        k, v = (y.gather(2, chosen.expand(-1, y.shape[1], -1, y.shape[3])) for y in (k, v))
        return self._out(self._attend(q, k, v))[:, 0]
