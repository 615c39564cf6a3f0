"""The delta rule, with decay of no kind, per head or per key dimension: DeltaNet, Gated DeltaNet,
Gated DeltaProduct and Kimi Delta Attention.

    S_{i,0} = S_{i-1} diag(a_i),
    S_{i,j} = S_{i,j-1} (I - b_ij k_ij k_ij^T) + b_ij v_ij k_ij^T  for j = 1, ..., n,
    S_i = S_{i,n},   y_i = S_i q_i

with q_i and k_ij scaled to unit length (0 stays 0), and b_ij = sigmoid(B_j x_i) in (0, 1) per head,
or 2 sigmoid(B_j x_i) in (0, 2) with negative eigenvalues. n is 1 but in DeltaProduct, where a token
may apply any product of n reflections; channels of k, v and b: update first, then head.

Decay: none in DeltaNet; a_i = exp(-e^s softplus(A x_i + c)) in (0, 1) per head in Gated DeltaNet
and DeltaProduct, where `reset` starts s at 0 and so a_i = sigmoid(-A x_i - c); the same per head
and key dimension in KDA, A = W_2 W_1 through head_dim numbers, s per head.

Released layers put SiLU on q, k and v; here it comes with the short convolution (conv=1 with
weights of 1 is that SiLU).
Source: Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, and Yang et al. 2024, arXiv 2406.06484
(DeltaNet); Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464 (Gated DeltaNet); Siems et al. 2025,
arXiv 2502.10297 (DeltaProduct); Kimi Team 2025, arXiv 2510.26692 (KDA); negative eigenvalues:
Grazzi et al. 2024, arXiv 2411.12537. State: S^T (heads, head_dim, value_dim). Parallel form:
chunks of n T updates (ops/delta_rule.py).
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import linear
from separatrix.mixers.base.recurrent import Decayed, RecurrentMixer, Terms, per_head, unit
from separatrix.mixers.base.tensors import Tokens
from separatrix.mixers.ops.maps import LowRank, draw_rates, draw_steps, log_decay
from separatrix.stacks.mechanisms import MatrixState


class DeltaMixer(RecurrentMixer):
    """The delta rule; subclasses say what decays."""

    recurrence = Decayed(scalar=True, overwrites=True)
    decay: ClassVar[str]
    """none, head or channel."""
    a: nn.Linear | LowRank

    def __init__(self, mechanism: MatrixState, *, width: int) -> None:
        sizes = mechanism.sizes()
        updates = sizes.get("householders", 1)
        super().__init__(mechanism, width=width, updates=updates, unit_queries=True)
        self._add_gates(width)
        self.largest = 2.0 if sizes.get("negative") else 1.0

    def _add_gates(self, width: int) -> None:
        if self.decay == "head":
            self.a = nn.Linear(width, self.heads)
        elif self.decay == "channel":
            self.a = LowRank(width, self.head_dim, self.heads * self.head_dim)
        self.b = linear(width, self.updates * self.heads)
        if self.decay != "none":
            self.rate = nn.Parameter(torch.zeros(self.heads))

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        if self.decay != "none":
            draw_steps((self.a.up if isinstance(self.a, LowRank) else self.a).bias, generator)
        if self.decay == "channel":
            draw_rates(self.rate, generator)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        q, k, v = qkv
        log_a = self._log_decay(x)
        b = per_head(rearrange(self.b(x), "b t (n h) -> b (t n) h", n=self.updates))
        b = b.sigmoid() * self.largest
        return unit(q), unit(k), v, torch.zeros_like(b) if log_a is None else log_a, b

    def _log_decay(self, x: Tokens) -> Float[Tensor, "b h n s"] | None:
        if self.decay == "none":
            return None
        if self.decay == "channel":
            return log_decay(self.rate[:, None, None], split_heads(self.a(x), self.heads))
        # the decay comes with the first update of a token
        first = log_decay(self.rate, self.a(x))[:, :, None]  # b t 1 h
        return per_head(F.pad(first, (0, 0, 0, self.updates - 1)).flatten(1, 2))


class DeltaNetMixer(DeltaMixer):
    """DeltaNet: nothing decays."""

    decay = "none"


class GDNMixer(DeltaMixer):
    """Gated DeltaNet: a decay per head."""

    decay = "head"


class DeltaProductMixer(DeltaMixer):
    """Gated DeltaProduct: n updates per token, the decay per head before them."""

    decay = "head"


class KDAMixer(DeltaMixer):
    """Kimi Delta Attention: a decay per key dimension."""

    recurrence = Decayed(overwrites=True)
    decay = "channel"
