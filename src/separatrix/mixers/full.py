"""Full causal softmax attention.

    y_i = sum_{j<=i} a_ij V x_j,
    a_ij = exp(<Q x_i, K x_j>) / (e^s + sum_{j'<=i} exp(<Q x_i, K x_j'>))

With causal=false the sums are over all j, and there is no state.

e^s is there with a sink only, one learned s per head; rope rotates Q x_i and K x_j by their places
(ops/maps.py). QK-norm, softcap and output gate: base/softmax.py.
Source: Vaswani et al. 2017; the form without 1/sqrt(d) is that of [Ye26] section 2; sink: OpenAI
2025 (gpt-oss), arXiv 2508.10925. State after t tokens: the keys (kv_heads, t, head_dim) and values
(kv_heads, t, value_dim) of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import Shapes, State, last_place, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    GroupKeys,
    GroupValues,
    OneToken,
    PerToken,
    Places,
    Queries,
    Reads,
    Token,
    Tokens,
)
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.decay import after, after_at
from separatrix.mixers.ops.softmax import (
    causal_softmax,
    masked_softmax,
    parted_softmax,
    running_softmax,
    softmax,
)
from separatrix.stacks.mechanisms import Fox, Full


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

    def last_of_blocks(self, last: OneToken, blocks: Iterator[Tensor], tokens: int) -> Token:
        self._check_input(last, 3)
        q = self._qkv(self._project(last), tokens - 1)[0]

        def seen() -> Iterator[tuple[Tensor, Tensor]]:
            if self.sink is not None:
                score = self.sink[:, None, None].expand(len(last), -1, 1, 1)
                yield score, score.new_zeros(len(last), self.heads, 1, self.dv)
            start = 0
            for x in blocks:
                _, k, v = self._qkv(self._project(x, last_place(x)), start)
                yield self._scores(q, k), self._shared(v)
                start += x.shape[1]

        return self._out(running_softmax(seen()), last)[:, 0]


class FoxMixer(SoftmaxMixer):
    """Forgetting attention (FoX): full attention with a forget gate per head, which lowers the
    scores of all earlier tokens.

        f_i  = log sigmoid(W x_i + c)                  per head; c starts at 0
        s_ij = <Q x_i, K x_j> + f_{j+1} + ... + f_i    own token: <Q x_i, K x_i>
        y_i  = sum_{j<=i} a_ij V x_j,   a_ij = exp(s_ij) / sum_{j'<=i} exp(s_ij')

    With gates of 1 (f = 0) it is full attention; the released models have no rotation. The
    paper's "Pro" block also shifts keys and values by a token, which is not here.
    Source: Lin et al. 2025, arXiv 2503.02130, section 3.
    State after t tokens: keys, values and f (heads, t, 1) in `gate_format`. Sums of f are formed
    between the two tokens (ops/softmax.py), so that far contexts cost near tokens no digits.
    Parallel form: a part of the queries at a time.
    """

    caps = True

    def __init__(self, mechanism: Fox, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.gate_format = mechanism.gate_format
        self.f = nn.Linear(width, self.heads)

    def _more(self, t: int) -> Shapes:
        return {"gates": (self.heads, t, 1)}

    def _dtype(self, name: str) -> torch.dtype:
        if name != "gates":
            return super()._dtype(name)
        return self._declared(self.gate_format, wide(self._like).dtype)

    def _gates(self, x: Tokens) -> PerToken:
        """Log gates as they are stored."""
        f = F.logsigmoid(wide(self.f(x))).transpose(1, 2)[..., None]
        return f.to(self._dtype("gates"))

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        k, v, log_f = self._shared(k), self._shared(v), wide(self._gates(x))
        # the kernel caps no scores
        kernel = None if self.cap else chosen("forgetting_attn", k, v, x.dtype)
        if kernel is not None:
            return self._out(kernel(q, k, v, log_f), x)
        return self._out(parted_softmax(q, k, v, None, self.cap, log_f), x)

    def _masked(
        self, q: Queries, k: GroupKeys, v: GroupValues, seen: Tensor, x: Tokens, places: Places
    ) -> Reads:
        scores = self._scores(q, k) + after_at(wide(self._gates(x)), places)
        return softmax(scores.masked_fill(~seen, -math.inf), self._shared(v))

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        return {"keys": k, "values": v, "gates": self._gates(x)}

    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        decay = after(wide(kept["gates"])).mT  # b h 1 t
        scores = self._scores(q, kept["keys"]) + decay
        return self._out(softmax(scores, self._shared(kept["values"])), x)
