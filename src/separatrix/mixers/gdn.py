"""Gated DeltaNet.

    S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0), a_i = sigmoid(A x_i + c) and b_i = sigmoid(B x_i) in (0, 1) per head.
Source: Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464. Their a_i = exp(-e^s softplus(A x_i + c')) is this gate raised to a learned power.
State: S^T (heads, head_dim, value_dim).

Parallel form, per chunk with incoming state S and G_i = a_1 ... a_i: the recurrence adds u_i k_i^T to a_i S_{i-1}, with
u_i = b_i (v_i - a_i S_{i-1} k_i). Unrolled, S_i = G_i S + sum_{j<=i} G_i/G_j u_j k_j^T, hence

    (I + L) U = diag(b) V - diag(b G) K S^T,   L_ij = b_i G_i/G_j <k_i, k_j> for j < i (the UT transform),

one triangular solve for all chunks at once, U = U_v - U_k S^T, and a loop over chunks that carries S^T. All ratios G_i/G_j, j <= i,
are at most 1 and are formed as exp of a difference of sums of log a.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.architecture.mechanisms import GatedDeltaNet
from separatrix.mixers._base import State, linear, split_chunks
from separatrix.mixers._recurrent import RecurrentMixer

SHORTEST_LENGTH = 1e-6
"""Vectors shorter than this are divided by it instead of by their length, so that 0 stays 0."""
FORGET = (1e-3, 1e-1)
"""`reset` draws 1 - sigmoid(c) log-uniformly between these, the range in which the reference implementation draws its step sizes."""


class GDNMixer(RecurrentMixer):
    """Gated DeltaNet. Raises SizeError for a convolution."""

    def __init__(self, mechanism: GatedDeltaNet, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.a, self.b = nn.Linear(width, self.heads), linear(width, self.heads)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        low, high = (torch.tensor(x).log() for x in FORGET)
        with torch.no_grad():
            self.a.bias.uniform_(generator=generator)
            self.a.bias.copy_(-torch.logit((low + (high - low) * self.a.bias).exp()))

    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        tokens = x.shape[1]
        chunks = Chunks(*self._inputs(x), chunk=self.chunk)
        y = chunks.outputs(split_chunks(self._unit_queries(x), self.chunk))
        return self._out(rearrange(y, "b h n c e -> b h (n c) e")[:, :, :tokens])

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        final = Chunks(*self._inputs(x), chunk=self.chunk).states[-1]
        return self._out(self._unit_queries(x[:, -1:]) @ final)[:, 0]

    def init_state(self, batch: int) -> State:
        return {"S": self.empty(batch, self.heads, self.head_dim, self.dv)}

    def step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        x = x[:, None]
        k, v, log_a, b = self._inputs(x)  # b h 1 ...
        decayed = log_a.exp() * state["S"]
        new = decayed + k.transpose(-1, -2) * (b * (v - k @ decayed))
        return self._out(self._unit_queries(x) @ new)[:, 0], {"S": new}

    def _unit_queries(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b h t d"]:
        return F.normalize(self._queries(x), dim=-1, eps=SHORTEST_LENGTH)

    def _inputs(self, x: Float[Tensor, "b t w"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """k (b h t d) of unit length, v (b h t e), log a and b (b h t 1)."""
        k, v = self._keys_values(x)
        log_a, b = (rearrange(gate, "b t h -> b h t 1") for gate in (F.logsigmoid(self.a(x)), self.b(x).sigmoid()))
        return F.normalize(k, dim=-1, eps=SHORTEST_LENGTH), v, log_a, b


class Chunks:
    """The recurrence cut into n chunks of c tokens: what each chunk adds, and `states`, S^T before each chunk and after the last."""

    def __init__(
        self,
        k: Float[Tensor, "b h t d"],
        v: Float[Tensor, "b h t e"],
        log_a: Float[Tensor, "b h t 1"],
        b: Float[Tensor, "b h t 1"],
        *,
        chunk: int,
    ) -> None:
        k, v, log_a, b = (split_chunks(x, chunk) for x in (k, v, log_a, b))  # b h n c ...
        log_g = log_a.cumsum(3)
        later = torch.ones(k.shape[3], k.shape[3], dtype=torch.bool, device=k.device).triu(1)
        self.k, self.g = k, log_g.exp()
        self.ratio = (log_g - log_g.transpose(-1, -2)).masked_fill(later, float("-inf")).exp()
        lower = (b * self.ratio * (k @ k.transpose(-1, -2))).tril(-1)
        solved = torch.linalg.solve_triangular(lower, torch.cat([b * v, b * self.g * k], -1), upper=False, unitriangular=True)
        self.u_v, self.u_k = solved.split([v.shape[-1], k.shape[-1]], -1)
        self.states = self._carry()

    def outputs(self, q: Float[Tensor, "b h n c d"]) -> Float[Tensor, "b h n c e"]:
        before = torch.stack(self.states[:-1], 2)
        u = self.u_v - self.u_k @ before
        return self.g * (q @ before) + (self.ratio * (q @ self.k.transpose(-1, -2))) @ u

    def _carry(self) -> list[Tensor]:
        decayed_k = (self.ratio[..., -1:, :] * self.k.transpose(-1, -2)).unbind(2)  # column j times G_c/G_j
        u_v, u_k, g = self.u_v.unbind(2), self.u_k.unbind(2), self.g[..., -1:, :].unbind(2)
        states = [self.k.new_zeros(*self.k.shape[:2], self.k.shape[-1], self.u_v.shape[-1])]
        for chunk in range(len(u_v)):
            state = states[-1]
            states.append(g[chunk] * state + decayed_k[chunk] @ (u_v[chunk] - u_k[chunk] @ state))
        return states
