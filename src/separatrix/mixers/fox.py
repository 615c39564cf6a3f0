"""Forgetting attention (FoX): full attention with a forget gate per head, which lowers the scores
of all earlier tokens.

    f_i  = log sigmoid(W x_i + c)                  per head
    s_ij = <Q x_i, K x_j> + f_{j+1} + ... + f_i    own token: <Q x_i, K x_i>
    y_i  = sum_{j<=i} a_ij V x_j,   a_ij = exp(s_ij) / sum_{j'<=i} exp(s_ij')

With gates of 1 (f = 0) it is full attention; the released models have no rotation. Options as in
full.py; the paper's "Pro" block also shifts keys and values by a token, which is not here.
Source: Lin et al. 2025, arXiv 2503.02130, section 3.
State after t tokens: keys (kv_heads, t, head_dim), values (kv_heads, t, value_dim) and f (heads, t)
in `gate_format`. Sums of f are formed between the two tokens (ops/parted_softmax.py), so that far
contexts cost near tokens no digits. Parallel form: a part of the queries at a time.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import DTYPES, Shapes, State, taken, wide
from separatrix.mixers.base.softmax import SoftmaxMixer, tokens_back
from separatrix.mixers.base.tensors import (
    GroupKeys,
    GroupValues,
    OneQuery,
    OneToken,
    Places,
    Token,
    Tokens,
    TokensAt,
)
from separatrix.mixers.ops.decay import after, after_at
from separatrix.mixers.ops.parted_softmax import parted_softmax
from separatrix.mixers.ops.softmax import KEPT, capped, softmax
from separatrix.stacks.mechanisms import Fox


class FoxMixer(SoftmaxMixer):
    """Full attention with forget gates."""

    caps = True

    def __init__(self, mechanism: Fox, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.gate_format = mechanism.gate_format
        self.f = nn.Linear(width, self.heads)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            # gates around 1/2, as the released layer starts
            self.f.bias.zero_()

    def shapes(self, t: int) -> Shapes:
        return self._cached(t) | {"gates": (self.heads, t)} | self._conv_shapes(t)

    def _dtype(self, name: str) -> torch.dtype:
        ours = super()._dtype(name)
        if name != "gates":
            return ours
        # a mixer cast to another format than its own keeps its gates in that one, too
        if self.gate_format is None or DTYPES.get(self.mechanism.format) != ours:
            return wide(self._like).dtype
        return DTYPES.get(self.gate_format, ours)

    def _gates(self, x: Tokens) -> Float[Tensor, "b h t"]:
        """Log gates as they are stored."""
        f = F.logsigmoid(wide(self.f(x))).transpose(1, 2)
        return f.to(self._dtype("gates"))

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        log_f = wide(self._gates(x))
        y = parted_softmax(q, self._shared(k), self._shared(v), log_f=log_f, cap=self.cap)
        return self._out(y, x)

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        later = tokens_back(places, x.shape[1]) < 0
        if self.heads * later.numel() > KEPT:
            return super()._at(x, places)
        q, k, v = self._qkv(self._project_at(x, places), places=places)
        scores = capped(wide(q) @ wide(self._shared(k)).mT, self.cap)
        decay = after_at(wide(self._gates(x)), places)
        y = softmax((scores + decay).masked_fill(later, -math.inf), self._shared(v))
        return self._out(y, taken(x, places))

    def _last(self, x: Tokens) -> Token:
        return self._read(x[:, -1:], *self._qkv(self._project_last(x)), self._gates(x))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        new = {
            "keys": torch.cat([state["keys"], k], 2),
            "values": torch.cat([state["values"], v], 2),
            "gates": torch.cat([state["gates"], self._gates(x[:, None])], 2),
        }
        return self._read(x[:, None], q, *new.values()), new | conv

    def _read(
        self, x: OneToken, q: OneQuery, k: GroupKeys, v: GroupValues, gates: Float[Tensor, "b h t"]
    ) -> Token:
        """The output of the last of t tokens."""
        scores = capped(wide(q) @ wide(self._shared(k)).transpose(-1, -2), self.cap)
        decay = after(wide(gates)[..., None]).transpose(-1, -2)  # b h 1 t
        return self._out(softmax(scores + decay, self._shared(v)), x)[:, 0]
