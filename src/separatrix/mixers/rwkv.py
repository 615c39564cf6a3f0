"""RWKV-7.

    S_i = S_{i-1} (diag(w_i) - c_i (a_i * c_i)^T) + v_i k_i^T,
    y_i = S_i r_i + (sum of r_i * k_i * p) v_i

per head, * element by element. With x'_i = x_{i-1} (x'_1 = 0; the token shift) and every map m
reading z^m_i = x_i + (x'_i - x_i) * mu^m:

    r_i = Q z^r_i,   v_i = V z^v_i,   f_i = K z^k_i,
    w_i = exp(-e^{-1/2} sigmoid(W_2 tanh(W_1 z^w_i) + w_0)),   a_i = sigmoid(A_2 A_1 z^a_i + a_0),
    c_i = f_i * g scaled to unit length,   k_i = f_i * (1 + (a_i - 1) * h)

W_1 and A_1 map to 32 numbers; g, h, p are learned numbers per head and dimension. With `gate=`, the
norm is taken of S_i r_i, before the token's own term is added, and is an RMS norm; released layers
have a group norm there, and their gate has a low-rank map of its own mix of inputs. The value
residual from the first layer is between layers and left out. shifts=2: channel mixing follows
(base/shifted.py), V relu(K z)^2 through 4 width numbers, which also remembers a token.
Source: Peng et al. 2025, arXiv 2503.14456, section 4.
State: S^T (heads, head_dim, value_dim), the last input (width), and channel mixing's (width).
Parallel form: chunks (ops/delta_rule.py, general form).
"""

from __future__ import annotations

from math import exp

import torch
from torch import nn

from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import State, wide
from separatrix.mixers.base.recurrence import Recurrence, Terms
from separatrix.mixers.base.recurrent import unit
from separatrix.mixers.base.shifted import ShiftedMixer, mixes
from separatrix.mixers.base.tensors import OneRead, SomeTokens, Tokens, Values
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.delta_rule import low_rank
from separatrix.mixers.ops.gates import LowRank
from separatrix.stacks.mechanisms import RWKV

RANK = 32
INPUTS = 5
"""Mixed inputs: of r, k, v, w, a."""
DECAY = -exp(-0.5)
"""-e^{-1/2}: no decay is stronger than exp of it."""


class DiagonalPlusRankOne(Recurrence):
    """S_i = S_{i-1} (diag(w_i) - c_i (a_i * c_i)^T) + v_i k_i^T,   y_i = S_i r_i

    Terms: r, k, v, log w, c and a * c, with log w of at least DECAY.
    """

    reads_last = False

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        r, k, v, log_w, erase, write = terms
        fast = chosen("rwkv7", k, v, dtype)
        # for S^T the change is -(a * c) c^T: c reads and takes the sign, a * c writes
        if fast is None:
            return low_rank(r, k, v, log_w, -erase, write, chunk=chunk, least=DECAY)
        return fast(r, k, v, log_w, -erase, write)

    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        r, k, v, log_w, erase, write = terms
        old = wide(state["S"])
        kept = log_w.exp().transpose(-1, -2) * old - write.transpose(-1, -2) * (erase @ old)
        new = kept + k.transpose(-1, -2) * v
        return r @ new, {"S": new}


class RWKVMixer(ShiftedMixer):
    """RWKV-7's time mixing, and channel mixing with shifts=2."""

    recurrence = DiagonalPlusRankOne()

    def __init__(self, mechanism: RWKV, *, width: int) -> None:
        super().__init__(mechanism, width=width, hidden=4 * width, gated=False)
        numbers = self.heads * self.head_dim
        self.mu = nn.Parameter(torch.empty(INPUTS, width))
        self.w = LowRank(width, RANK, numbers, tanh=True)
        self.a = LowRank(width, RANK, numbers)
        self.erased = nn.Parameter(torch.empty(self.heads, self.head_dim))
        self.written = nn.Parameter(torch.empty(self.heads, self.head_dim))
        self.bonus = nn.Parameter(torch.empty(self.heads, self.head_dim))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.mu.uniform_(generator=generator)
            self.w.up.bias.uniform_(-6, 1, generator=generator)
            self.a.up.bias.zero_()
            self.erased.fill_(1)
            self.written.fill_(1)
            self.bonus.zero_()

    def _mixed(self, x: SomeTokens, before: SomeTokens) -> list[SomeTokens]:
        return mixes(x, before, self.mu)

    def _mixed_terms(self, qkv: Projected, gates: list[Tokens]) -> Terms:
        """r, k, v, then log w, c and a * c (all b h t d)."""
        r, f, v = qkv
        for_w, for_a = gates
        log_w = DECAY * wide(split_heads(self.w(for_w), self.heads)).sigmoid()
        a = wide(split_heads(self.a(for_a), self.heads)).sigmoid()
        erase = unit(f * self.erased[:, None])
        return r, f * (1 + (a - 1) * self.written[:, None]), v, log_w, erase, a * erase

    def _own(self, terms: Terms) -> Values:
        """The extra weight of the token itself."""
        r, k, v = terms[:3]
        return (r * k * self.bonus[:, None]).sum(-1, keepdim=True) * v
