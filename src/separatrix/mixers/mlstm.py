"""mLSTM: exponential input gates, kept in range by a running maximum m.

    C_i = f_i C_{i-1} + g_i v_i k_i^T,   n_i = f_i n_{i-1} + g_i k_i,
    y_i = C_i q_i / max(|<n_i, q_i>|, 1)

with f_i = sigmoid(F x_i + c_f) and g_i = exp(G x_i + c_g) per head. What is stored is C_i e^{-m_i}
and n_i e^{-m_i}, with m_i = max(log f_i + m_{i-1}, log g_i) and m_0 = 0: outputs do not depend on
m, which only keeps the numbers small, so it has no gradient.
Source: Beck et al. 2024, arXiv 2405.04517, section 2.3. The released 7B model also caps the gates,
position-wise. State: C^T (heads, head_dim, value_dim), n (heads, head_dim), m (heads).
Parallel form: chunks. With G the sum of log f inside a chunk and m that of the paper, token j
weighs exp(G_i - G_j + log g_j - m_i) <= 1 for token i.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, split_chunks, wide
from separatrix.mixers.base.recurrent import Recurrence, RecurrentMixer, Terms, divide, per_head
from separatrix.mixers.base.tensors import Keys, PerToken, Tokens, Values
from separatrix.mixers.ops.decay import carry
from separatrix.stacks.mechanisms import MLSTM

FORGET = (3.0, 6.0)
"""`reset` draws the forget gates' biases uniformly between these, the range of the reference
implementation.
"""


class Stabilised(Recurrence):
    """The recurrence of C, n and m. Terms: q, k, v, log f and log g."""

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        q, k, v, log_f, log_g = terms
        return chunked(q, k, v, log_f, log_g, chunk=chunk)

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        q, k, v, log_f, log_g = terms
        before = wide(state["m"])[..., None, None]
        # in the stored format first, so that C and n are scaled by just the m that is kept
        m = torch.maximum(log_f + before, log_g).detach().to(state["m"].dtype).to(before.dtype)
        keep = (log_f + before - m).exp()
        add = (log_g - m).exp()
        new = keep * wide(state["C"]) + k.transpose(-1, -2) * (add * v)
        total = keep * wide(state["n"])[..., None] + k.transpose(-1, -2) * add
        y = divided(q @ new, q @ total, m)
        return y, {"C": new, "n": total[..., 0], "m": m[..., 0, 0]}


class MLSTMMixer(RecurrentMixer):
    """mLSTM."""

    recurrence = Stabilised()
    at_rest_first = frozenset({"m"})

    def __init__(self, mechanism: MLSTM, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.f = nn.Linear(width, self.heads)
        self.i = nn.Linear(width, self.heads)

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.f.bias.uniform_(*FORGET, generator=generator)

    def shapes(self, t: int) -> Shapes:
        sums: Shapes = {
            "C": (self.heads, self.head_dim, self.dv),
            "n": (self.heads, self.head_dim),
            "m": (self.heads,),
        }
        return sums | self._conv_shapes(t)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        # log f and log g in float32 at least: an error in log g is a factor in the output
        log_f, log_g = (
            per_head(F.linear(wide(x), wide(gate.weight), wide(gate.bias)))
            for gate in (self.f, self.i)
        )
        return *qkv, F.logsigmoid(log_f), log_g

    def _summed(self, state: State) -> State:
        summed = super()._summed(state)
        # the step rounds m to the format it is stored in
        narrow = torch.finfo(state["m"].dtype).bits < torch.finfo(summed["m"].dtype).bits
        return summed | {"m": state["m"]} if narrow else summed


def divided(
    y: Float[Tensor, "*b e"], n: Float[Tensor, "*b 1"], m: Float[Tensor, "*b 1"]
) -> Float[Tensor, "*b e"]:
    """y / max(|n|, e^-m); 0 where both underflow, as C_i q_i is 0 there."""
    return divide(y, torch.maximum(n.abs(), (-m).exp()))


def chunked(q: Keys, k: Keys, v: Values, log_f: PerToken, log_g: PerToken, *, chunk: int) -> Values:
    """y_i for every i."""
    tokens = q.shape[2]
    ones = torch.ones_like(v[..., :1])
    # the column of ones sums up n; filled-up tokens weigh nothing
    q, k, v, log_f = (split_chunks(x, chunk) for x in (q, k, torch.cat([v, ones], -1), log_f))
    log_g = split_chunks(F.pad(log_g, (0, 0, 0, -tokens % q.shape[3]), value=float("-inf")), chunk)
    total = log_f.cumsum(3)
    # best_i is the largest G_i - G_j + log g_j over j <= i of the chunk
    level = (log_g - total).detach()
    best = total.detach() + level.cummax(3).values
    ends = total[:, :, :, -1].detach().unbind(2)  # b h 1 each
    largest = best[:, :, :, -1].unbind(2)
    # m before every chunk, from m_0 = 0, then after the last
    starts = [torch.zeros_like(ends[0])]
    for end, most in zip(ends, largest, strict=True):
        starts.append(torch.maximum(end + starts[-1], most))
    start = torch.stack(starts[:-1], 2)[..., None]  # b h n 1 1
    after = torch.stack(starts[1:], 2)[..., None]
    # m_i unrolled: what came before the chunk, or the best of the chunk
    m = torch.maximum(total.detach() + start, best)
    later = torch.ones(q.shape[3], q.shape[3], dtype=torch.bool, device=q.device).triu(1)
    exponents = total - m + (log_g - total).transpose(-1, -2)
    # hidden before exp: exponents are at most 0 for j <= i only, later ones may overflow
    weights = exponents.masked_fill(later, float("-inf")).exp()
    y = (weights * (q @ k.transpose(-1, -2))) @ v
    end = total[:, :, :, -1:]
    # both exponents are at most 0: `after` is at least best at the end, and end + start
    added = ((end - total + log_g - after).exp() * k).transpose(-1, -2) @ v
    states, _ = carry((end + start - after).exp(), added)
    y = y + (total + start - m).exp() * (q @ states)
    return join_chunks(divided(y[..., :-1], y[..., -1:], m), tokens)
