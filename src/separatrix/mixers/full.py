"""Full causal softmax attention.

    y_i = sum_{j<=i} a_ij V x_j,
    a_ij = exp(<Q x_i, K x_j>) / (e^s + sum_{j'<=i} exp(<Q x_i, K x_j'>))

With causal=false the sums are over all j, and there is no state.

e^s is there with a sink only, one learned s per head; rope rotates Q x_i and K x_j by their places
(ops/rope.py). QK-norm, softcap and output gate: base/softmax.py.
Source: Vaswani et al. 2017; the form without 1/sqrt(d) is that of [Ye26] section 2; sink: OpenAI
2025 (gpt-oss), arXiv 2508.10925. State after t tokens: the keys (kv_heads, t, head_dim) and values
(kv_heads, t, value_dim) of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import Shapes, last_place
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import OneToken, Places, Token, Tokens
from separatrix.mixers.ops.softmax import RunningSoftmax, causal_softmax, masked_softmax
from separatrix.stacks.mechanisms import Full


class FullMixer(SoftmaxMixer):
    """Full attention, with grouped key-value heads."""

    caps = True

    def __init__(self, mechanism: Full, *, width: int) -> None:
        super().__init__(mechanism, width=width, sink=mechanism.sink)
        self.causal = mechanism.causal

    def shapes(self, t: int) -> Shapes:
        if not self.causal:
            raise SizeError(
                "full: causal=false: every token sees the whole prompt, which cannot be read token"
                " by token"
            )
        return super().shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        if self.causal:
            y = causal_softmax(q, self._shared(k), self._shared(v), self.sink, self.cap)
        else:
            every = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
            y = masked_softmax(q, self._shared(k), self._shared(v), every, self.sink, self.cap)
        return self._out(y, x)

    def _sees(self, places: Places, tokens: int) -> Bool[Tensor, "b 1 k t"]:
        seen = super()._sees(places, tokens)
        return seen if self.causal else torch.ones_like(seen)

    @property
    def reads_blocks(self) -> bool:
        # a convolved key reads the tokens before its block
        return self.conv is None

    def _last_of_blocks(self, last: OneToken, blocks: Iterator[Tensor], tokens: int) -> Token:
        q = self._qkv(self._project(last), tokens - 1)[0]
        running = RunningSoftmax()
        if self.sink is not None:
            score = self.sink[:, None, None].expand(len(last), -1, 1, 1)
            running.add(score, score.new_zeros(len(last), self.heads, 1, self.dv))
        start = 0
        for x in blocks:
            _, k, v = self._qkv(self._project(x, last_place(x)), start)
            running.add(self._scores(q, k), self._shared(v))
            start += x.shape[1]
        return self._out(running.output(), last)[:, 0]
