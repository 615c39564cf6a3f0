"""RWKV-6.

    S_i = S_{i-1} diag(w_i) + v_i k_i^T,   y_i = (S_{i-1} + v_i (p * k_i)^T) r_i

per head, * element by element: the token itself is read with a weight p of its own, before it joins
the state. With x'_i = x_{i-1} (x'_1 = 0; the token shift) and every map m reading

    z^m_i = x_i + (x'_i - x_i) * (mu^m + B^m tanh(A^m (x_i + (x'_i - x_i) * mu))):

    r_i = Q z^r_i,   k_i = K z^k_i,   v_i = V z^v_i,   w_i = exp(-exp(W_2 tanh(W_1 z^w_i) + w_0))

A^m maps to 32 numbers, W_1 to 64; mu and p are learned. With `gate=`, the norm is an RMS norm of
each head; released layers have a group norm there, and their gate reads a mix of its own.
shifts=2: channel mixing follows (base/shifted.py), sigmoid(R z^r) * V relu(K z^k)^2 through 7/2
width numbers, which also remembers a token.
Source: Peng et al. 2024, arXiv 2404.05892, section 4.
State: S^T (heads, head_dim, value_dim), the last input (width), and channel mixing's (width).
Parallel form: chunks (ops/decay.py), the queries moved back by one token.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import State, linear, wide
from separatrix.mixers.base.recurrence import Recurrence, Terms
from separatrix.mixers.base.shifted import ShiftedMixer
from separatrix.mixers.base.tensors import OneRead, SomeTokens, Tokens, Values
from separatrix.mixers.kernels import decayed
from separatrix.mixers.ops.gates import LowRank
from separatrix.stacks.mechanisms import RWKV

RANK = 32
DECAY_RANK = 64
INPUTS = 4
"""Mixed inputs: of r, k, v, w."""


class DecayedBefore(Recurrence):
    """S_i = S_{i-1} diag(w_i) + v_i k_i^T,   y_i = (S_{i-1} + v_i (p * k_i)^T) r_i

    Terms: r, k, v, log w and p (h 1 d).
    """

    reads_last = False

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        r, k, v, log_w, bonus = terms
        # token i reads what token i - 1 left: its query stands there, and the first reads nothing
        early = F.pad(r[:, :, 1:], (0, 0, 0, 1))
        read = decayed(early, k, v, log_w, chunk=chunk, dtype=dtype)
        own = (r * k * bonus).sum(-1, keepdim=True) * v
        return F.pad(read[:, :, :-1], (0, 0, 1, 0)) + own

    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        r, k, v, log_w, bonus = terms
        old = wide(state["S"])
        y = r @ old + (r * k * bonus).sum(-1, keepdim=True) * v
        return y, {"S": log_w.exp().transpose(-1, -2) * old + k.transpose(-1, -2) * v}


class RWKV6Mixer(ShiftedMixer):
    """RWKV-6's time mixing, and channel mixing with shifts=2."""

    recurrence = DecayedBefore()

    def __init__(self, mechanism: RWKV, *, width: int) -> None:
        super().__init__(mechanism, width=width, hidden=7 * width // 2, gated=True)
        self.mu = nn.Parameter(torch.empty(width))
        self.mus = nn.Parameter(torch.empty(INPUTS, width))
        self.down = linear(width, INPUTS * RANK)
        self.up = nn.Parameter(torch.empty(INPUTS, width, RANK))
        self.w = LowRank(width, DECAY_RANK, self.heads * self.head_dim, tanh=True)
        self.bonus = nn.Parameter(torch.empty(self.heads, self.head_dim))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.mu.uniform_(generator=generator)
            self.mus.uniform_(generator=generator)
            # decays then lie around exp(-e^-6) to exp(-e^-1)
            self.w.up.bias.uniform_(-6, -1, generator=generator)
            self.bonus.uniform_(generator=generator)

    def _mixed(self, x: SomeTokens, before: SomeTokens) -> list[SomeTokens]:
        change = before - x
        low = self.down(torch.addcmul(x, change, self.mu)).tanh().unflatten(-1, (INPUTS, RANK))
        return [
            torch.addcmul(x, change, mu + part @ up.mT)
            for mu, part, up in zip(self.mus, low.unbind(-2), self.up, strict=True)
        ]

    def _mixed_terms(self, qkv: Projected, gates: list[Tokens]) -> Terms:
        """r, k, v and log w (all b h t d), and p."""
        (for_w,) = gates
        log_w = -wide(split_heads(self.w(for_w), self.heads)).exp()
        return *qkv, log_w, wide(self.bonus)[:, None]
