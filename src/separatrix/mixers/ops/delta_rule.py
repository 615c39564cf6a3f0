"""Recurrences that also overwrite: a decay and a rank-one change of the state per token, in chunks.

The delta rule, with decay a_i per key dimension or for all of them:

    R_i = (I - b_i k_i k_i^T) diag(a_i) R_{i-1} + b_i k_i v_i^T

It adds k_i u_i^T to diag(a_i) R_{i-1}, with u_i = b_i (v_i - (diag(a_i) R_{i-1})^T k_i). Unrolled
from the state R before a chunk, with G_i = log a_1 + ... + log a_i, R_i = diag(exp G_i) R +
sum_{j<=i} (exp(G_i - G_j) k_j) u_j^T, hence (the UT transform)

    (I + L) U = diag(b) V - diag(b) (exp(G) K) R,   L_ij = b_i <k_i, exp(G_i - G_j) k_j> for j < i

The general form (diagonal plus low rank), R_i = (diag(a_i) + s_i r_i^T) R_{i-1} + k_i v_i^T, adds
s_i u_i^T with u_i = R_{i-1}^T r_i:

    (I - N) U = (exp(G^-) r) R + M V,
    N_ij = <r_i, exp(G_{i-1} - G_j) s_j>,  M_ij = <r_i, exp(G_{i-1} - G_j) k_j> for j < i

Each is one triangular solve for all chunks at once, in the first for the matrix (I + L)^-1 diag(b)
itself, then U = U_v + U_r R, and a loop over chunks that carries R. In the first no exponent is
above 0; the second takes a lower bound of log a, and forms exp(G_i) and exp(-G_j) apart.
Source: Yang et al. 2024, arXiv 2406.06484 and 2412.06464; general form: Peng et al. 2025 (RWKV-7),
arXiv 2503.14456.

Shapes: n chunks, c tokens per chunk; G is (..., 1) or (..., d).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.mixer import join_chunks, plus_product, split_chunks, wide
from separatrix.mixers.base.tensors import Decays, Keys, Matrices, Matrix, PerToken, Values
from separatrix.mixers.ops.decay import (
    after,
    bounded,
    carry,
    chunk_of,
    in_segments,
    products,
    scores_by_halves,
)

EXPONENT = 40.0
"""Where decay is bounded below, the largest exponent formed: exp(40) = 2e17 leaves float32 room
for numbers of any use.
"""


def delta_rule(
    q: Keys | None, k: Keys, v: Values, log_a: Decays, b: PerToken, *, chunk: int
) -> Values:
    """R_i^T q_i of the delta rule for every i; without queries u_i."""
    chunk = chunk_of(log_a, chunk)
    inputs = (k, v, log_a, b) if q is None else (k, v, log_a, b, q)
    if k.shape[2] <= chunk:
        return Delta(*inputs, chunk=chunk).outputs_alone()

    def segment(*some: Tensor, state: Tensor | None, chunk: int) -> tuple[Tensor, Tensor]:
        return Delta(*some, chunk=chunk).outputs(state)

    return in_segments(segment, *inputs, chunk=chunk)


class Delta:
    """The delta rule cut into chunks. Where queries are given, `reads` (b h n c c) is what they
    take of the u of their chunk; elsewhere outputs are the u themselves.
    """

    reads: Tensor | None = None

    def __init__(
        self, k: Keys, v: Values, log_a: Decays, b: PerToken, q: Keys | None = None, *, chunk: int
    ) -> None:
        self.tokens = k.shape[2]
        k, v, log_a, self.b = (split_chunks(x, chunk) for x in (k, v, log_a, b))
        log_a = bounded(log_a)
        self.k = k
        self.log_a = log_a
        self.total = log_a.cumsum(3)
        if q is not None:
            self.q = split_chunks(q, chunk)
        if log_a.shape[-1] == 1:
            kept = products(log_a)
            own = kept * (k @ k.mT)
            if q is not None:
                self.reads = kept * (self.q @ k.mT)
        else:
            # keys and queries ask for the same decayed keys: one product for both
            asked = k[..., None, :] if q is None else torch.stack([k, self.q], -2)
            own, *reads = scores_by_halves(asked, k, self.total).unbind(-2)
            if q is not None:
                self.reads = reads[0].tril()
        identity = torch.eye(k.shape[3], dtype=k.dtype, device=k.device)
        # (I + L)^-1 diag(b): as a matrix of its own it costs less than a solve for v and k
        self.inverse = solve(self.b * own, identity) * self.b.mT
        # U = U_v + U_r R
        self.u_v = self.inverse @ v
        if log_a.shape[-1] == 1:
            self.u_r = (self.inverse * -self.total.exp().mT) @ k
        else:
            self.u_r = self.inverse @ (-self.total.exp() * k)

    def outputs(self, state: Matrix | None = None) -> tuple[Values, Matrix]:
        """R_i^T q_i for every i, and R after the last token."""
        # R' = exp(G_c) R + (exp(G_c - G_j) k_j) u_j^T
        added = (after(self.log_a).exp() * self.k).mT
        kept = self.total[:, :, :, -1:].mT.exp()
        steps = zip(*(x.unbind(2) for x in (self.u_v, self.u_r, added, kept)), strict=True)
        written: list[Tensor] = []
        states: list[Tensor] = []
        if state is None:
            state = self.k.new_zeros(*added.shape[:2], added.shape[3], self.u_v.shape[4])
        for u_v, u_r, add, keep in steps:
            states.append(state)
            written.append(plus_product(u_v, u_r, state))
            state = torch.addcmul(add @ written[-1], keep, state)
        y = torch.stack(written, 2)
        if self.reads is not None:
            reads = self.total.exp() * self.q
            y = plus_product(self.reads @ y, reads, torch.stack(states, 2))
        return join_chunks(y, self.tokens), state

    def outputs_alone(self) -> Values:
        """R_i^T q_i for every i, where there is but one chunk."""
        y = self.u_v if self.reads is None else self.reads @ self.u_v
        return join_chunks(y, self.tokens)

    def passed(self) -> tuple[Float[Tensor, "b h n c d"], Matrices, Float[Tensor, "b h n d d"]]:
        """The queries as they read the state R before their chunk, what each chunk adds to R, and
        the matrix that it multiplies R with before.
        """
        u = torch.cat([self.u_v, self.u_r], -1)
        end = self.total[:, :, :, -1:]
        added, changed = ((after(self.log_a).exp() * self.k).mT @ u).split(
            [self.u_v.shape[-1], self.k.shape[-1]], -1
        )
        identity = torch.eye(self.k.shape[-1], dtype=self.k.dtype, device=self.k.device)
        assert self.reads is not None
        q = self.total.exp() * self.q + self.reads @ self.u_r
        return q, added, torch.addcmul(changed, end.mT.exp(), identity)


def solve(
    lower: Float[Tensor, "b h n c c"], right: Float[Tensor, "... c r"]
) -> Float[Tensor, "b h n c r"]:
    """(I + L)^-1 right, with L below the diagonal; what else `lower` holds is not looked at."""
    # transposed, PyTorch copies less on the way to LAPACK's column-major order
    return torch.linalg.solve_triangular(
        wide(lower).mT, wide(right).mT, upper=True, left=False, unitriangular=True
    ).mT


def updated(
    state: Float[Tensor, "*b d e"],
    k: Float[Tensor, "*#b 1 d"],
    v: Float[Tensor, "*#b 1 e"],
    log_a: Float[Tensor, "*#b 1 s"],
    b: Float[Tensor, "*#b 1 1"] | None = None,
) -> Float[Tensor, "*b d e"]:
    """The state after one token: of the delta rule, or without b of decay alone."""
    decayed = log_a.exp().transpose(-1, -2) * state
    # a share b of what the state answers for k goes out, and the same share of v in
    return decayed + k.transpose(-1, -2) * (v if b is None else b * (v - k @ decayed))


def low_rank(
    q: Keys, k: Keys, v: Values, log_a: Keys, r: Keys, s: Keys, *, chunk: int, least: float
) -> Values:
    """R_i^T q_i of the general form for every i, where no log a is below `least` < 0: in chunks
    of up to EXPONENT / -least tokens.
    """
    chunk = max(1, min(chunk, int(EXPONENT / -least)))
    return in_segments(_low_rank_segment, q, k, v, log_a, r, s, chunk=chunk)


def _low_rank_segment(*inputs: Tensor, state: Tensor | None, chunk: int) -> tuple[Tensor, Tensor]:
    tokens = inputs[0].shape[2]
    q, k, v, log_a, r, s = (split_chunks(x, chunk) for x in inputs)
    total = log_a.cumsum(3)  # down to -EXPONENT, since the chunks are that short
    size = q.shape[3]
    # <q_i, exp(G_i - G_j) k_j> as one product: exp(-G_j) is at most exp(EXPONENT)
    # r_i reads before its own token, q_i after it
    before = F.pad(total[:, :, :, :-1], (0, 0, 1, 0))
    asked = torch.cat([before.exp() * r, total.exp() * q], 3)
    written = (torch.stack([s, k], 3) * (-total).exp()[:, :, :, None]).flatten(3, 4)
    later = torch.ones(size, size, dtype=torch.bool, device=q.device).triu()
    # r_i sees j < i only, q_i sees itself, too; the columns are first s_j, then k_j
    unseen = torch.cat([later, later.triu(1)]).repeat(1, 2)
    changes, reads = (asked @ written.mT).masked_fill(unseen, 0).split(size, -2)
    n, m = changes.split(size, -1)  # of the module's docstring
    u = solve(-n, torch.cat([m @ v, asked[:, :, :, :size]], -1))
    u_v, u_r = u.split([v.shape[-1], k.shape[-1]], -1)
    values = torch.cat([u_v, v], 3)
    # R' = exp(G_c) (R + sum_j exp(-G_j) (s_j u_j^T + k_j v_j^T))
    kept = total[:, :, :, -1:].mT.exp()
    eye = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    states, last = carry(
        kept * (eye + written[:, :, :, :size].mT @ u_r), kept * (written.mT @ values), state
    )
    # u = U_v + U_r R: U_v is among the values, U_r passes the state R on
    y = reads @ values + (asked[:, :, :, size:] + reads[..., :size] @ u_r) @ states
    return join_chunks(y, tokens), last
