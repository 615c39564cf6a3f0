"""Recurrent mixers against flash-linear-attention's naive operators: q, k, v and gates from our
weights by plain torch, in fla's layouts.

Where fla multiplies queries by d^-1/2 (`scale`) and the operator lets us choose, 1 is given; where
it does not, our queries go in times d^1/2. Queries and keys of the delta rule go in at unit length.
Log gates go in as they are. Normalised linear attention adds 1e-10 (taylor: 1e-6) to the
denominator there, nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.peer_tools import (
    PREFILL,
    STEPS,
    agree,
    differ_when_perturbed,
    naive,
    ours,
    out,
    qkv,
    same,
    split,
    tokens,
)
from torch import Tensor

from separatrix.mixers.laws import stream

WIDTH = 12
HEADS = 4
DIM = 6
VALUE = 5
SIZES: dict[str, Any] = {"heads": HEADS, "head_dim": DIM, "value_dim": VALUE}
Outputs = tuple[Tensor, Any]
Peer = Callable[[Any, Tensor, Tensor | None, Tensor], Outputs]
"""Outputs (b, t, w) and the state after them of a mixer's weights, tokens x, the state before them
and the token before them (zeros at the start).
"""


@dataclass(frozen=True)
class Case:
    """One mechanism at some sizes, and the peer."""

    name: str
    peer: Peer
    sizes: dict[str, Any] = field(default_factory=dict)
    state: str | None = "S"
    """The part of our state that the operator returns; None where it returns none of our shape."""


def head_first(*x: Tensor) -> list[Tensor]:
    """(b, t, h, d) -> (b, h, t, d), the layout of some operators."""
    return [y.transpose(1, 2).contiguous() for y in x]


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def repeated(m: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v with the query-key heads copied for the value heads that share them."""
    q, k, v = qkv(m, x)
    copies = HEADS // q.shape[2]
    return q.repeat_interleave(copies, 2), k.repeat_interleave(copies, 2), v


def log_decay(m: Any, x: Tensor) -> Tensor:
    """-e^s softplus(A x + c), the log decay of Mamba-2 and Gated DeltaNet."""
    return -m.rate.exp() * F.softplus(F.linear(x, m.a.weight, m.a.bias))


def low_rank(part: Any, x: Tensor, activation: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
    """W_2 f(W_1 x) + c, heads apart."""
    return split(F.linear(activation(x @ part.down.weight.T), part.up.weight, part.up.bias), HEADS)


def writing(m: Any, x: Tensor) -> Tensor:
    """b, between 0 and 1, or 2 with negative eigenvalues."""
    return (1 + m.mechanism.sizes().get("negative", False)) * torch.sigmoid(x @ m.b.weight.T)


def linear(feature: Callable[[Tensor], Tensor], *, normalise: bool) -> Peer:
    def peer(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
        q, k, v = repeated(m, x)
        y, state = naive("linear_attn").naive_recurrent_linear_attn(
            feature(q), feature(k), v, 1.0, state, True, normalise
        )
        return out(m, y), state

    return peer


def taylor(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    operator = naive("based").naive_parallel_based
    normaliser = m.mechanism.sizes()["normaliser"]
    (y,) = head_first(operator(*head_first(*repeated(m, x)), scale=1.0, use_norm=normaliser))
    return out(m, y), None


def loglinear(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    weights = F.softplus(x @ m.level.weight.T).unflatten(-1, (-1, HEADS)).transpose(2, 3)  # b t h l
    operator = naive("log_linear_attn").naive_log_linear_attn
    no_decay = torch.zeros(*x.shape[:2], HEADS)
    return out(m, operator(*repeated(m, x), no_decay, weights)), None


def loglinear_mamba2(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """Their masked matrix with decays, as their layer calls it: q, k, v are C, B and the step size
    times x.
    """
    weights = F.softplus(x @ m.level.weight.T).unflatten(-1, (-1, HEADS)).transpose(2, 3)  # b t h l
    step = F.softplus(F.linear(x, m.dt.weight, m.dt.bias))
    q, k, v = qkv(m, x)
    operator = naive("log_linear_attn").naive_log_linear_attn
    y = operator(q, k, v * step[..., None], -m.rate.exp() * step, weights)
    return out(m, y + m.skip[:, None] * v), None


def gdn(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    (q, k, v), operator = repeated(m, x), naive("gated_delta_rule").naive_recurrent_gated_delta_rule
    y, state = operator(unit(q), unit(k), v, writing(m, x), log_decay(m, x), 1.0, state, True)
    return out(m, y), state


def deltanet(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    (q, k, v), operator = repeated(m, x), naive("delta_rule").delta_rule_recurrence
    y, state = operator(*head_first(unit(q) * DIM**0.5, unit(k), v, writing(m, x)), state)
    return out(m, *head_first(y)), state


def deltaproduct(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    operator = naive("gated_delta_product").naive_recurrent_gated_delta_product
    updates = m.updates
    key_heads = m.qk
    q = split(x @ m.q.weight.T, key_heads, HEADS // key_heads)
    k = split(
        (x @ m.k.weight.T).unflatten(-1, (updates, -1)).flatten(1, 2), key_heads, HEADS // key_heads
    )
    v = split((x @ m.v.weight.T).unflatten(-1, (updates, -1)).flatten(1, 2), HEADS)
    b = writing(m, x).unflatten(-1, (updates, -1)).flatten(1, 2)
    y, state = operator(unit(q), unit(k), v, log_decay(m, x), b, 1.0, None, state, True, updates)
    return out(m, y), state


def kda(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    (q, k, v), operator = repeated(m, x), naive("kda").naive_recurrent_kda
    log_a = -m.rate[:, None].exp() * F.softplus(low_rank(m.a, x))
    y, state = operator(unit(q), unit(k), v, log_a, writing(m, x), 1.0, state, True)
    return out(m, y), state


def gla(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    (q, k, v), operator = repeated(m, x), naive("gla").naive_recurrent_gla
    y, state = operator(q * DIM**0.5, k, v, F.logsigmoid(low_rank(m.a, x)) / 16, state, True)
    return out(m, y), state


def hgrn2(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    (q, f, v), operator = repeated(m, x), naive("gla").naive_recurrent_gla
    y, state = operator(F.silu(q) * DIM**0.5, 1 - f.sigmoid(), v, f.sigmoid().log(), state, True)
    return out(m, y), state


def turned(x: Tensor, start: int = 0) -> Tensor:
    """Rotated by places: pair (r, r + d/2) as a complex number, times e^{i n theta_r}."""
    half = x.shape[-1] // 2
    angle = torch.arange(start, start + x.shape[1])[:, None] * 10_000.0 ** (
        -torch.arange(half) / half
    )
    y = (
        torch.complex(x[..., :half], x[..., half:])
        * torch.polar(torch.ones_like(angle), angle)[:, None]
    )
    return torch.cat([y.real, y.imag], -1)


def retnet(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    q, k, v = repeated(m, x)
    (y,) = head_first(
        naive("retention").naive_retention(*head_first(turned(q) * DIM**0.5, turned(k), v))
    )
    return out(m, y), None


def lightning(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """fla's lightning attention is its simple GLA at fixed log decays; those of the first layer,
    by the formula of MiniMax-01.
    """
    log_a = torch.tensor([-(2 ** (-8 * (h + 1) / HEADS)) for h in range(HEADS)]).expand(
        *x.shape[:2], HEADS
    )
    y, state = naive("simple_gla").naive_recurrent_simple_gla(*repeated(m, x), log_a, 1.0, state)
    return out(m, y), state


def mamba2(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """SSD as simple GLA: q, k, v are C, B and the step size times x."""
    step = F.softplus(F.linear(x, m.dt.weight, m.dt.bias))
    groups = m.mechanism.sizes()["groups"]
    q, k = (split(x @ part.weight.T, groups, HEADS // groups) for part in (m.q, m.k))
    v = split(x @ m.v.weight.T, HEADS)
    operator = naive("simple_gla").naive_recurrent_simple_gla
    y, state = operator(q, k, v * step[..., None], -m.rate.exp() * step, 1.0, state)
    return out(m, y + m.skip[:, None] * v), state


def rwkv(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """RWKV-7 as a diagonal plus rank one: S diag(w) + S alpha beta^T with alpha = -c, beta = a *
    c.
    """
    shifted = torch.cat([before[:, None], x[:, :-1]], 1)
    x_r, x_k, x_v, x_w, x_a = (torch.lerp(x, shifted, mu) for mu in m.mu)
    r, f, v = (split(y @ part.weight.T, HEADS) for y, part in ((x_r, m.q), (x_k, m.k), (x_v, m.v)))
    log_w = -0.6065306597126334 * low_rank(m.w, x_w, torch.tanh).sigmoid()
    a = low_rank(m.a, x_a).sigmoid()
    c = unit(f * m.erased)
    k = f * (1 + (a - 1) * m.written)
    operator = naive("generalized_delta_rule/dplr").dplr_recurrence
    y, state = operator(*head_first(r * DIM**0.5, k, v, -c, a * c, log_w), state)
    return out(m, head_first(y)[0] + (r * k * m.bonus).sum(-1, keepdim=True) * v), state


def rwkv6(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """The paper's mixes of inputs by plain torch, then fla's recurrence."""
    change = torch.cat([before[:, None], x[:, :-1]], 1) - x
    low = torch.tanh((x + change * m.mu) @ m.down.weight.T).unflatten(-1, (4, -1))
    mix = m.mus + torch.einsum("btmr,mwr->btmw", low, m.up)
    x_r, x_k, x_v, x_w = (x[:, :, None] + change[:, :, None] * mix).unbind(2)
    r, k, v = (split(y @ part.weight.T, HEADS) for y, part in ((x_r, m.q), (x_k, m.k), (x_v, m.v)))
    log_w = -low_rank(m.w, x_w, torch.tanh).exp()
    operator = naive("rwkv6", file="recurrent_naive").naive_recurrent_rwkv6
    y, state = operator(*head_first(r, k, v, log_w), m.bonus, 1.0, state, True)
    return out(m, head_first(y)[0]), state


def rglru(m: Any, x: Tensor, state: Tensor | None, before: Tensor) -> Outputs:
    """A gated diagonal recurrence, as HGRN's operator runs it."""
    u = x @ m.v.weight.T
    log_a = -8 * F.softplus(m.rate) * F.linear(u, m.r.weight, m.r.bias).sigmoid()
    added = (1 - (2 * log_a).exp()).sqrt() * F.linear(u, m.g.weight, m.g.bias).sigmoid() * u
    y, state = naive("hgrn").naive_recurrent_hgrn(added, log_a, state, True)
    return y @ m.o.weight.T, state


RWKV_SIZES = {"heads": HEADS, "head_dim": DIM, "value_dim": VALUE, "width": WIDTH}
CASES: dict[str, Case] = {
    "linear elu": Case(
        "linear",
        linear(lambda x: F.elu(x) + 1, normalise=True),
        SIZES | {"feature": "elu"},
        state=None,
    ),
    "linear relu": Case(
        "linear", linear(F.relu, normalise=True), SIZES | {"feature": "relu"}, state=None
    ),
    "linear elu, no normaliser": Case(
        "linear",
        linear(lambda x: F.elu(x) + 1, normalise=False),
        SIZES | {"feature": "elu", "normaliser": False},
    ),
    "linear identity, no normaliser": Case(
        "linear",
        linear(lambda x: x, normalise=False),
        SIZES | {"feature": "identity", "normaliser": False},
    ),
    "linear taylor": Case("linear", taylor, SIZES | {"feature": "taylor"}, state=None),
    "linear taylor, no normaliser": Case(
        "linear", taylor, SIZES | {"feature": "taylor", "normaliser": False}, state=None
    ),
    "loglinear": Case("loglinear", loglinear, SIZES, state=None),
    "loglinear over mamba2": Case(
        "loglinear", loglinear_mamba2, SIZES | {"base": "mamba2", "key_heads": 2}, state=None
    ),
    "gdn": Case("gdn", gdn, SIZES),
    "gdn, negative": Case("gdn", gdn, SIZES | {"negative": True}),
    "gdn, shared keys": Case("gdn", gdn, SIZES | {"key_heads": 2}),
    "deltanet": Case("deltanet", deltanet, SIZES),
    "deltanet, negative": Case("deltanet", deltanet, SIZES | {"negative": True}),
    "deltaproduct": Case("deltaproduct", deltaproduct, SIZES),
    "deltaproduct, 3 updates, shared keys": Case(
        "deltaproduct", deltaproduct, SIZES | {"householders": 3, "negative": False, "key_heads": 2}
    ),
    "kda": Case("kda", kda, SIZES),
    "kda, negative": Case("kda", kda, SIZES | {"negative": True}),
    "gla": Case("gla", gla, SIZES),
    "hgrn2": Case("hgrn2", hgrn2, SIZES),
    "retnet": Case("retnet", retnet, SIZES, state=None),
    "lightning": Case("lightning", lightning, SIZES),
    "mamba2": Case(
        "mamba2", mamba2, {"heads": HEADS, "head_dim": VALUE, "state": DIM, "groups": 2}
    ),
    "rwkv": Case("rwkv", rwkv, RWKV_SIZES),
    "rwkv, version 6": Case("rwkv", rwkv6, RWKV_SIZES | {"version": 6}),
    "rglru": Case("rglru", rglru, {"width": 16}, state="h"),
}


def drawn(case: str) -> Any:
    return ours(CASES[case].name, CASES[case].sizes, width=WIDTH)


@pytest.mark.parametrize("case", CASES)
def test_forward(case: str) -> None:
    m = drawn(case)
    start = torch.zeros(2, WIDTH)
    agree(m, lambda x: CASES[case].peer(m, x, None, start)[0])


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case.state is not None])
@torch.no_grad()
def test_state(case: str) -> None:
    """The operator's state after some tokens is ours, and from it both go on alike."""
    m = drawn(case)
    peer = CASES[case].peer
    x = tokens(WIDTH)[:, : PREFILL + STEPS]
    _, theirs = peer(m, x[:, :PREFILL], None, torch.zeros(2, WIDTH))
    _, state = stream(m, x[:, :PREFILL])
    same(state[str(CASES[case].state)], theirs, "the state")
    rest, _ = stream(m, x[:, PREFILL:], state, PREFILL)
    same(rest, peer(m, x[:, PREFILL:], theirs, x[:, PREFILL - 1])[0], "after the state was carried")


@pytest.mark.parametrize("case", CASES)
def test_a_changed_weight_is_seen(case: str) -> None:
    m = drawn(case)
    unchanged = drawn(case)
    start = torch.zeros(2, WIDTH)
    differ_when_perturbed(m, lambda x: CASES[case].peer(unchanged, x, None, start)[0])
