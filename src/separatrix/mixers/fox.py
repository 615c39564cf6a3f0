"""Forgetting attention (FoX): full attention with a forget gate per head, which lowers the scores
of all earlier tokens.

    f_i  = log sigmoid(W x_i + c)                  per head
    s_ij = <Q x_i, K x_j> + f_{j+1} + ... + f_i    own token: <Q x_i, K x_i>
    y_i  = sum_{j<=i} a_ij V x_j,   a_ij = exp(s_ij) / sum_{j'<=i} exp(s_ij')

With gates of 1 (f = 0) it is full attention; the released models have no rotation. Options as in
full.py; the paper's "Pro" block also shifts keys and values by a token, which is not here.
Source: Lin et al. 2025, arXiv 2503.02130, section 3.
State after t tokens: keys (kv_heads, t, head_dim), values (kv_heads, t, value_dim) and f (heads, t)
in `gate_format`. Sums of f are formed between the two tokens (ops/softmax.py), so that far
contexts cost near tokens no digits. Parallel form: a part of the queries at a time.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import DTYPES, Shapes, State, appended, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    GroupKeys,
    GroupValues,
    OneQuery,
    OneToken,
    Places,
    Queries,
    Reads,
    Tokens,
)
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.decay import after, after_at
from separatrix.mixers.ops.softmax import parted_softmax, softmax
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

    def _more(self, t: int) -> Shapes:
        return {"gates": (self.heads, t)}

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
        k, v, log_f = self._shared(k), self._shared(v), wide(self._gates(x))
        # the kernel caps no scores
        kernel = None if self.cap else chosen("forgetting_attn", k, v, x.dtype)
        if kernel is not None:
            return self._out(kernel(q, k, v, log_f[..., None]), x)
        return self._out(parted_softmax(q, k, v, log_f=log_f, cap=self.cap), x)

    def _masked(
        self, q: Queries, k: GroupKeys, v: GroupValues, seen: Tensor, x: Tokens, places: Places
    ) -> Reads:
        scores = self._scores(q, k) + after_at(wide(self._gates(x)), places)
        return softmax(scores.masked_fill(~seen, -math.inf), self._shared(v))

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        return {"keys": k, "values": v, "gates": self._gates(x)}

    def _extended(self, state: State, new: State, t: int) -> State:
        # tokens are the last axis of gates
        gates = appended(state["gates"], new.pop("gates"), axis=2)
        return super()._extended(state, new, t) | {"gates": gates}

    def _read(self, x: OneToken, q: OneQuery, kept: State, place: int) -> OneToken:
        decay = after(wide(kept["gates"])[..., None]).transpose(-1, -2)  # b h 1 t
        scores = self._scores(q, kept["keys"]) + decay
        return self._out(softmax(scores, self._shared(kept["values"])), x)
