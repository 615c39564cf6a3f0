"""Values by hand and edge cases of the recurrent mixers: reflections, rotations, gates at 0 and
1, exponentials out of range, first tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, pi, sin, sqrt
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

from separatrix.laws import drawn, inputs, stream
from separatrix.mechanisms import mechanism
from separatrix.mixers import Mixer, mixer

ON = 40.0
"""A logit whose sigmoid is 1 to within e^-40; of its negative it is e^-40."""


def _with(m: Mixer, **weights: Any) -> Mixer:
    """The mixer in float64 with some parameters (dots written as __) set: by value, or a matrix
    by {(row, column): value} and 0 elsewhere.
    """
    m = m.double()
    parameters = dict(m.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            parameter = parameters[name.replace("__", ".")]
            if isinstance(value, dict):
                parameter.zero_()
                for place, number in value.items():
                    parameter[place] = number
            else:
                parameter.copy_(torch.tensor(value, dtype=torch.float64))
    return m


def _made(name: str, width: int, sizes: dict[str, Any], **weights: Any) -> Mixer:
    return _with(drawn(mixer(mechanism(name, **sizes), width=width)), **weights)


def _tokens(*tokens: tuple[float, ...]) -> Tensor:
    return torch.tensor([tokens], dtype=torch.float64)


@torch.no_grad()
def _outputs(m: Mixer, x: Tensor, channel: int = 0) -> list[float]:
    """One coordinate of every output, the same in chunks of 1, 3 and 64 tokens and by the
    recurrence.
    """
    y = stream(m, x)[0]
    for chunk in (1, 3, 64):
        m.chunk = chunk
        torch.testing.assert_close(m(x), y, rtol=1e-9, atol=1e-9 * y.abs().max().item())
    return y[0, :, channel].tolist()


ONE = {"heads": 1, "head_dim": 1, "value_dim": 1}
# width 2, one head of dimension 1: q and k read the first coordinate, v the second; the output is
# the first coordinate
SCALARS: dict[str, Any] = {
    "q__weight": [[1, 0]],
    "k__weight": [[1, 0]],
    "v__weight": [[0, 1]],
    "o__weight": [[1], [0]],
}

# width 6, one head of dimension 2 and values of 1: b reads coordinate 0, k 1 and 2, q 3 and 4, v 5
PLANE = {"heads": 1, "head_dim": 2, "value_dim": 1}
PLANAR: dict[str, Any] = {
    "b__weight": {(0, 0): 1},
    "k__weight": {(0, 1): 1, (1, 2): 1},
    "q__weight": {(0, 3): 1, (1, 4): 1},
    "v__weight": {(0, 5): 1},
    "o__weight": {(0, 0): 1},
}


@pytest.mark.parametrize(
    ("query", "reflected", "back"), [((1, 0), 0.28, 1.0), ((0, 1), -0.96, 0.0)]
)
def test_deltanet_two_identical_reflections_undo_each_other(
    query: tuple[float, float], reflected: float, back: float
) -> None:
    # b = 2 sigmoid(0) = 1 writes (1, 0); b = 2 with key (3, 4)/5 and value 0 reflects: (1, 0) - 2
    # (3/5) (3, 4)/5 = (0.28, -0.96); and back
    m = _made("deltanet", 6, PLANE | {"negative": True}, **PLANAR)
    x = _tokens(
        (0, 1, 0, *query, 1), (ON, 3, 4, *query, 0), (ON, 3, 4, *query, 0), (ON, -6, -8, *query, 0)
    )
    assert _outputs(m, x) == pytest.approx([query[0], reflected, back, reflected], abs=1e-12)


@pytest.mark.parametrize("name", ["deltanet", "gdn"])
def test_negative_eigenvalues_count_parity(name: str) -> None:
    # one dimension: a bit of 1 has b = 2, a sign change; a bit of 0 has b = 0. The first token
    # writes 1 with b = 1
    m = _made(name, 3, ONE | {"negative": True}, **_scalar_with_bits(name))
    bits = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0]
    parity = [(-1) ** sum(bits[: i + 1]) for i in range(len(bits))]
    x = _tokens((1, 1, 0), *((1, 0, ON if bit else -ON) for bit in bits))
    assert _outputs(m, x) == pytest.approx([1, *parity], abs=1e-12)


def _scalar_with_bits(name: str) -> dict[str, Any]:
    read = {
        "q__weight": [[1, 0, 0]],
        "k__weight": [[1, 0, 0]],
        "v__weight": [[0, 1, 0]],
        "o__weight": [[1], [0], [0]],
    }
    keep = {"a__weight": {}, "a__bias": [-800.0], "rate": [0.0]} if name == "gdn" else {}
    return read | keep | {"b__weight": [[0, 0, 1]]}


def test_without_negative_eigenvalues_a_full_write_of_zero_erases() -> None:
    # b = 1 is the most there is: the part of the state along the key is gone, not reflected
    m = _made("deltanet", 6, PLANE, **PLANAR)
    x = _tokens((ON, 1, 0, 1, 0, 1), (ON, 3, 4, 1, 0, 0), (ON, 3, 4, 3, 4, 0))
    # (1, 0) - (3/5) (3, 4)/5 = (0.64, -0.48), which is orthogonal to the key
    assert _outputs(m, x) == pytest.approx([1, 0.64, 0], abs=1e-12)


@pytest.mark.parametrize("degrees", [30, 45, 72])
@pytest.mark.parametrize("name", ["first", "second"])
def test_deltaproduct_of_two_reflections_is_a_rotation(name: str, degrees: float) -> None:
    # reflections along keys at angles 0 and t, in this order, turn by 2 t: angle f goes to pi - f,
    # then to 2 t + pi - (pi - f) = f + 2 t
    query, wanted = ((1, 0), cos) if name == "first" else ((0, 1), sin)
    # coordinates: b of both updates, keys of both, query, value of the first; width 9
    m = _made(
        "deltaproduct",
        9,
        PLANE | {"householders": 2},
        b__weight={(0, 0): 1, (1, 1): 1},
        k__weight={(i, 2 + i): 1 for i in range(4)},
        q__weight={(0, 6): 1, (1, 7): 1},
        v__weight={(0, 8): 1},
        o__weight={(0, 0): 1},
        a__weight={},
        a__bias=[-800.0],
        rate=[0.0],
    )
    t = degrees * pi / 180
    write = (0, -ON, 1, 0, 1, 0, *query, 1)
    turn = (ON, ON, 1, 0, cos(t), sin(t), *query, 0)
    wanted_outputs = [wanted(2 * t * n) for n in range(8)]
    assert _outputs(m, _tokens(write, *[turn] * 7)) == pytest.approx(wanted_outputs, abs=1e-12)


def test_deltaproduct_applies_its_updates_in_order_and_decays_once() -> None:
    # a = 1/2, b = 1 in both: the second update under one key replaces what the first wrote: 3, then
    # 5; with no key, 5 halves per token
    m = _made(
        "deltaproduct",
        5,
        ONE | {"householders": 2, "negative": False},
        b__weight={(0, 0): 1, (1, 0): 1},
        k__weight={(0, 1): 1, (1, 2): 1},
        q__weight={(0, 0): 1},
        v__weight={(0, 3): 1, (1, 4): 1},
        o__weight={(0, 0): 1},
        a__weight={},
        a__bias=[0.0],
        rate=[0.0],
    )
    x = _tokens((ON, 1, 1, 3, 5), (ON, 0, 0, 7, 7), (ON, 0, 0, 7, 7), (ON, 1, 0, 2, 7))
    assert _outputs(m, x) == pytest.approx([5, 2.5, 1.25, 2], abs=1e-12)


def test_kda_with_decay_in_one_dimension_only() -> None:
    # log a = -softplus(z): z = 0 in the first dimension gives a = 1/2, z = -800 in the second a =
    # 1; 3 under (1, 0), then 5 under (0, 1)
    m = _made("kda", 6, PLANE, a__up__weight={}, a__up__bias=[0.0, -800.0], rate=[0.0], **PLANAR)
    x = _tokens((ON, 1, 0, 1, 1, 3), (ON, 0, 1, 1, 1, 5), *[(ON, 0, 0, 1, 1, 9)] * 3)
    assert _outputs(m, x) == pytest.approx(
        [y / sqrt(2) for y in (3, 1.5 + 5, 0.75 + 5, 0.375 + 5, 0.1875 + 5)], abs=1e-12
    )


def test_kda_decays_before_it_overwrites() -> None:
    # one dimension, a = 1/2, b = 1/2: 8/2 = 4; then 4/2 = 2 is decayed, 2 + (6 - 2)/2 = 4; decay
    # after it would give (4 + (6 - 4)/2)/2 = 2.5
    m = _made(
        "kda", 2, ONE, a__up__weight={}, a__up__bias=[0.0], rate=[0.0], b__weight={}, **SCALARS
    )
    assert _outputs(m, _tokens((1, 8), (1, 6))) == pytest.approx([4, 4], abs=1e-12)


def test_gla_raises_its_gate_to_one_sixteenth() -> None:
    # sigmoid(0) = 1/2: sixteen tokens halve the state; keys of 0 after the first token, so q = 1 is
    # a bias of its own coordinate
    m = _made(
        "gla",
        3,
        ONE,
        a__up__weight={},
        a__up__bias=[0.0],
        q__weight=[[0, 0, 1]],
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
    )
    m = _with(m, o__weight=[[1], [0], [0]])
    assert _outputs(m, _tokens((1, 4, 1), *[(0, 9, 1)] * 16))[16] == pytest.approx(2, rel=1e-12)


def test_hgrn2_keeps_where_f_is_one_and_overwrites_where_it_is_zero() -> None:
    # silu(40) = 40 to within e^-40; the forget gate's logit is coordinate 0, the value coordinate 1
    m = _made(
        "hgrn2",
        3,
        ONE,
        q__weight=[[0, 0, 1]],
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
        o__weight=[[1], [0], [0]],
    )
    x = _tokens((-ON, 3, ON), (ON, 5, ON), (ON, 7, ON), (-ON, 11, ON), (0, 1, ON))
    assert _outputs(m, x) == pytest.approx([40 * y for y in (3, 3, 3, 11, 6)], rel=1e-12)


def test_retnet_after_n_tokens_has_decayed_n_times_and_turned_by_n() -> None:
    # head_dim 2: theta = 1, so a key (1, 0) at place 0 and a query (1, 0) at place n have score
    # cos(n), in each of 3 heads
    m = _made(
        "retnet",
        4,
        {"heads": 3, "head_dim": 2, "value_dim": 1},
        q__weight={(2 * h, 0): 1 for h in range(3)},
        k__weight={(2 * h, 1): 1 for h in range(3)},
        v__weight={(h, 2): 1 for h in range(3)},
        o__weight={(h, h): 1 for h in range(3)},
    )
    x = _tokens((1, 1, 1, 0), *[(1, 0, 1, 0)] * 99)
    for h in range(3):
        wanted = [(1 - 2.0 ** (-5 - h)) ** n * cos(n) for n in range(100)]
        assert _outputs(m, x, channel=h) == pytest.approx(wanted, abs=1e-12)


def test_lightning_decays_of_four_heads() -> None:
    # slopes 2^-2, 2^-4, 2^-6, 2^-8
    m = _made(
        "lightning",
        4,
        {"heads": 4, "head_dim": 1, "value_dim": 1},
        q__weight={(h, 0): 1 for h in range(4)},
        k__weight={(h, 1): 1 for h in range(4)},
        v__weight={(h, 2): 1 for h in range(4)},
        o__weight={(h, h): 1 for h in range(4)},
    )
    x = _tokens((1, 1, 1, 0), *[(1, 0, 1, 0)] * 70)
    for h, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert _outputs(m, x, channel=h) == pytest.approx(
            [exp(-slope * n) for n in range(71)], rel=1e-12
        )


def test_mamba2_state_and_skip() -> None:
    # Delta = softplus(0) = ln 2 and A = -1, so a = 1/2; B = coordinate 0, x coordinate 1, C
    # coordinate 2; skip 10
    m = _made(
        "mamba2",
        3,
        {"heads": 1, "head_dim": 1, "state": 1},
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
        q__weight=[[0, 0, 1]],
    )
    m = _with(m, o__weight=[[1], [0], [0]], dt__weight={}, dt__bias=[0.0], rate=[0.0], skip=[10.0])
    x = _tokens((0, 3, 1), (1, 3, 0), (1, 5, 1), (0, 0, 1), (0, 0, 2))
    # nothing read; only the skip; (3/2 + 5) ln 2 + 50; then halved twice, read with 1 and 2
    assert _outputs(m, x) == pytest.approx(
        [30, 30, 6.5 * log(2) + 50, 3.25 * log(2), 3.25 * log(2)], rel=1e-12
    )


def _rwkv(
    mu: float,
    decay: float = ON,
    rate: float = ON,
    written: float = 0.0,
    erased: float = 0.0,
    bonus: float = 0.0,
) -> Mixer:
    """r and k read coordinate 0, v coordinate 1; w and a are sigmoids of constants."""
    return _made(
        "rwkv",
        2,
        ONE | {"width": 2},
        mu=[[mu, mu]] * 5,
        w__up__weight={},
        w__up__bias=[decay],
        a__up__weight={},
        a__up__bias=[rate],
        written=[[written]],
        erased=[[erased]],
        bonus=[[bonus]],
        **SCALARS,
    )


def test_rwkv_shifts_by_a_token_and_the_first_has_none_before() -> None:
    # mu = 1: everything is read from the token before, 0 for the first. w = exp(-e^{-1/2}); S: 0,
    # 2*3, w*6 + 1*5; read with r = 0, 2, 1
    w = exp(-exp(-0.5))
    assert _outputs(_rwkv(1), _tokens((2, 3), (1, 5), (7, 7))) == pytest.approx(
        [0, 2 * 6, w * 6 + 5], rel=1e-12
    )


def test_rwkv_half_a_shift() -> None:
    # mu = 1/2: means with the token before: (1, 1.5), then (2, 4) where w = 1: S = 1.5, then 1.5 +
    # 8, read with 1 and 2
    assert _outputs(_rwkv(0.5, decay=-800), _tokens((2, 3), (2, 5))) == pytest.approx(
        [1.5, 19], rel=1e-12
    )


def test_rwkv_without_shift_replaces_what_a_key_holds() -> None:
    # mu = 0, w = 1, a = 1, unit removal key: all that is there is removed, k v written
    assert _outputs(
        _rwkv(0, decay=-800, erased=1), _tokens((1, 3), (-1, 5), (2, 7))
    ) == pytest.approx([3, 5, 28], rel=1e-12)


def test_rwkv_in_context_rate() -> None:
    # a = 1/2, w = 1: half of the state goes, and k = f (1 - h/2) with h = 1: f/2. S: 1/2*3, then
    # 3/4 + 1/2*5, read with 1; bonus r k p v, p = 4
    y = _outputs(
        _rwkv(0, decay=-800, rate=0, erased=1, written=1, bonus=4), _tokens((1, 3), (1, 5))
    )
    assert y == pytest.approx([1.5 + 6, 0.75 + 2.5 + 10], rel=1e-12)


def _rglru() -> Mixer:
    """Two channels: the first carries the gate's logit, r of the second is its sigmoid; a = 1/2
    where r = 1; g = 1.
    """
    return _made(
        "rglru",
        2,
        {"width": 2},
        v__weight=[[1, 0], [0, 1]],
        o__weight=[[0, 1], [0, 0]],
        r__weight={(1, 0): 1},
        r__bias=[0.0, 0.0],
        g__weight={},
        g__bias=[ON, ON],
        rate=[log(exp(log(2) / 8) - 1)] * 2,
    )


def test_rglru_keeps_where_r_is_zero() -> None:
    # r = sigmoid(-800) = 0: a = 1 and the root sqrt(1 - 1) = 0, nothing enters; r = 1: h/2 +
    # sqrt(3/4) u; r = 1/2: a = sqrt(1/2), root the same
    x = _tokens((ON, 4), (-800, 100), (-800, -7), (ON, 2), (0, 6))
    h = [4 * sqrt(0.75)] * 3
    h.append(h[-1] / 2 + 2 * sqrt(0.75))
    h.append((h[-1] + 6) * sqrt(0.5))
    assert _outputs(_rglru(), x) == pytest.approx(h, rel=1e-12)


def test_rglru_has_finite_gradients_where_the_root_is_zero() -> None:
    for dtype in (torch.float64, torch.float32):
        m = _rglru().to(dtype)
        x = _tokens((ON, 4), (-800, 100), (ON, 2)).to(dtype).requires_grad_()
        assert all(
            g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()])
        )


def test_shortconv_takes_tokens_before_the_first_as_zero() -> None:
    # weights of the token itself 100, the one before 10, two before 1; gates b and c read
    # coordinate 1, u coordinate 0
    m = _made(
        "shortconv",
        2,
        {"width": 1, "conv": 3},
        v__weight=[[1, 0]],
        b__weight=[[0, 1]],
        c__weight=[[0, 1]],
        o__weight=[[1], [0]],
    )
    m = _with(m, conv__weight=[[1.0, 10.0, 100.0]])
    x = _tokens((1, 1), (2, 1), (3, 1), (4, 1))
    assert _outputs(m, x) == [100, 210, 321, 432]
    assert _outputs(m, x[:, :1]) == [100]
    assert _outputs(m, x[:, :2]) == [100, 210]
    # a gate of 0 shuts a token out of the later outputs too; one of 2 counts twice, before and
    # after
    assert _outputs(m, _tokens((1, 1), (2, 0), (3, 2), (4, 1))) == [100, 0, 2 * (600 + 1), 400 + 60]


def _mlstm(forget: float) -> Mixer:
    """q = 1 (coordinate 2), k = coordinate 0, v = coordinate 1, log g = coordinate 3, f =
    sigmoid(forget).
    """
    m = _made(
        "mlstm",
        4,
        ONE,
        q__weight=[[0, 0, 1, 0]],
        k__weight=[[1, 0, 0, 0]],
        v__weight=[[0, 1, 0, 0]],
        i__weight=[[0, 0, 0, 1]],
    )
    return _with(m, o__weight=[[1], [0], [0], [0]], i__bias=[0.0], f__weight={}, f__bias=[forget])


@pytest.mark.parametrize("size", [200.0, 1e4])
def test_mlstm_with_gates_beyond_float32(size: float) -> None:
    # f = 1: y is the mean of the values, weighed by e^gate: equal gates; then one more by ln 3, at
    # weights 1, 1, 3; then one that drowns all
    m = _mlstm(800).float()
    x = _tokens(
        (1, 5, 1, size),
        (1, 7, 1, size),
        (1, 2, 1, size + log(3)),
        (1, 9, 1, 2 * size),
        (1, 4, 1, -size),
    ).float()
    wanted = torch.tensor([5, 6, 18 / 5, 9, 9])
    with torch.no_grad():
        for y in (m(x), stream(m, x)[0]):
            torch.testing.assert_close(
                y[0, :, 0], wanted, rtol=2e-3 if size > 1e3 else 1e-4, atol=0
            )  # size + ln 3 itself is rounded
    x.requires_grad_()
    assert all(g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()]))


def test_mlstm_with_all_gates_very_negative() -> None:
    # |n q| = e^-200 and less is below 1, so y = C q: e^-200 5, e^-200 (5 + 7), and where f = e^-300
    # the last token alone
    x = _tokens((1, 5, 1, -200), (1, 7, 1, -200))
    assert _outputs(_mlstm(800), x) == pytest.approx([5 * exp(-200), 12 * exp(-200)], rel=1e-12)
    assert _outputs(_mlstm(-300), x) == pytest.approx([5 * exp(-200), 7 * exp(-200)], rel=1e-12)
    m = _mlstm(-300).float()
    with torch.no_grad():
        assert (
            m(x.float())[..., 0].tolist() == stream(m, x.float())[0][..., 0].tolist() == [[0, 0]]
        )  # e^-200 is 0 in float32
    x = x.float().requires_grad_()
    assert all(g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()]))


def test_mlstm_divides_by_one_where_the_normaliser_is_smaller() -> None:
    # f = 1, log g = 0: n = 1/2, y = C = 2; then n = 1/2 - 3/4 = -1/4, C = 2 - 3 = -1; then n =
    # -9/4, C = -1 - 8 = -9, and y = -9 / (9/4)
    assert _outputs(
        _mlstm(800), _tokens((0.5, 4, 1, 0), (-0.75, 4, 1, 0), (-2, 4, 1, 0))
    ) == pytest.approx([2, -1, -4], rel=1e-12)


def _gate_of_coordinate_zero(name: str, sizes: dict[str, Any]) -> Mixer:
    """Gates read coordinate 0 alone: where it is 1, log a is about -1000, and where it is 0,
    mild; queries, keys and values are drawn.
    """
    m = _made(name, 6, sizes)
    heads = sizes.get("heads", 0)
    d = sizes.get("head_dim", 0)
    scalar = {(h, 0): 1000 for h in range(heads)}
    matrix = {(c, 0): 1000 for c in range(heads * d)}
    match name:
        case "gdn" | "deltaproduct" | "loglinear":
            return _with(m, a__weight=scalar, a__bias=[-3.0] * heads, rate=[0.0] * heads)
        case "kda":
            return _with(
                m,
                a__down__weight={(0, 0): 1},
                a__up__weight=matrix,
                a__up__bias=[-3.0] * heads * d,
                rate=[0.0] * heads,
            )
        case "gla":
            weight = {place: -16 * size for place, size in matrix.items()}
            return _with(
                m, a__down__weight={(0, 0): 1}, a__up__weight=weight, a__up__bias=[3.0] * heads * d
            )
        case "hgrn2":
            with torch.no_grad():
                m.get_parameter("k.weight")[:, 0] = -1000
            return m
        case "mamba2":
            return _with(m, dt__weight=scalar, dt__bias=[-3.0] * heads, rate=[0.0] * heads)
        case "mlstm":
            return _with(
                m, f__weight={place: -size for place, size in scalar.items()}, f__bias=[3.0] * heads
            )
        case _:
            # rate 125: log a = -8 * 125 r, and r is 0 to within e^-40 where coordinate 0 is not 1
            gates = {(c, 0): 2 * ON for c in range(5)}
            m = _with(m, rate=[125.0] * 5, r__weight=gates, r__bias=[-ON] * 5)
            with torch.no_grad():
                m.get_parameter("v.weight")[0] = torch.eye(6)[0]
            return m


_STRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "gdn": ("gdn", {"heads": 2, "head_dim": 3}),
    "gdn negative": ("gdn", {"heads": 2, "head_dim": 3, "negative": True}),
    "deltaproduct": ("deltaproduct", {"heads": 2, "head_dim": 3}),
    "kda": ("kda", {"heads": 2, "head_dim": 3}),
    "gla": ("gla", {"heads": 2, "head_dim": 3}),
    "hgrn2": ("hgrn2", {"heads": 2, "head_dim": 3}),
    "mamba2": ("mamba2", {"heads": 2, "head_dim": 3, "state": 4}),
    "mlstm": ("mlstm", {"heads": 2, "head_dim": 3}),
    "loglinear": ("loglinear", {"heads": 2, "head_dim": 3, "base": "gdn"}),
    "rglru": ("rglru", {"width": 5}),
}
strong = pytest.mark.parametrize("case", _STRONG)
PERIODS = pytest.mark.parametrize("period", [1, 2, 7])


def _resetting(case: str, period: int, tokens: int = 90) -> tuple[Mixer, Tensor, list[int]]:
    """A mixer, a sequence whose every `period`-th token forgets all before it, and the places of
    these.
    """
    m = _gate_of_coordinate_zero(*_STRONG[case])
    x = inputs(m, 1, tokens)
    x[..., 0] = (torch.arange(tokens) % period == 0).double()
    return m, x, list(range(0, tokens, period))


def _apart(run: Callable[[Tensor], Tensor], x: Tensor, starts: list[int]) -> Tensor:
    """Outputs of the parts that forget each other, each from the empty state."""
    return torch.cat(
        [run(x[:, a:b]) for a, b in zip(starts, [*starts[1:], x.shape[1]], strict=True)], 1
    )


@strong
@PERIODS
@torch.no_grad()
def test_a_decay_of_e_to_the_minus_1000_cuts_the_sequence(
    case: str, period: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # e^-1000 is 0 even in float64, so the parts are independent: each is run alone, by the
    # recurrence. Sums of log a reach 64,000 in a chunk, which
    # float64 holds to 64,000 * 2^-53 < 1e-11
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # many steps; shapes are checked in the other tests
    m, x, starts = _resetting(case, period, tokens=72)
    if case == "loglinear":
        m = _with(
            m, level__weight={}
        )  # equal weights ln 2 at every level: levels of a part alone are others than in the whole
    wanted = _apart(lambda part: stream(m, part)[0], x, starts)
    torch.testing.assert_close(stream(m, x)[0], wanted, rtol=1e-12, atol=1e-12)
    for chunk in (1, 7, 64):
        m.chunk = chunk
        torch.testing.assert_close(m(x), wanted, rtol=1e-9, atol=1e-10 * wanted.abs().max().item())


@strong
@PERIODS
def test_strong_decays_in_float32_are_finite_and_right(case: str, period: int) -> None:
    # scalar decays between two tokens are sums of what lies between them: good to rounding. Decays
    # per dimension are differences of sums from the
    # chunk's start, which need not go beyond 64 * 105, as e^-105 is 0 already: good to 64 * 105 *
    # 2^-24 = 4e-4. mlstm weighs its gates against each
    # other, so its sums do go to 64,000: 4e-3
    tolerance = {"kda": 4e-4, "gla": 4e-4, "hgrn2": 4e-4, "mlstm": 4e-3}.get(case, 1e-5)
    m, x, _ = _resetting(case, period)
    right, single = (
        [x.double() for x in _outputs_and_gradients(m.to(dtype), x.to(dtype))]
        for dtype in (torch.float64, torch.float32)
    )
    assert all(part.isfinite().all() for part in single)
    torch.testing.assert_close(
        single[0], right[0], rtol=0, atol=tolerance * right[0].abs().max().item()
    )
    largest = max(part.abs().max().item() for part in right[1:])
    for part, wanted in zip(single[1:], right[1:], strict=True):
        torch.testing.assert_close(part, wanted, rtol=0, atol=tolerance * largest)


def _outputs_and_gradients(m: Mixer, x: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of the sum of their squares by the input and by every
    parameter.
    """
    x = x.requires_grad_()
    y = m(x)
    return [
        y.detach(),
        *torch.autograd.grad(
            y.square().sum(), [x, *m.parameters()], materialize_grads=True, allow_unused=True
        ),
    ]


@pytest.mark.parametrize("name", ["gdn", "deltaproduct", "kda", "mamba2", "gla"])
def test_decays_whose_sums_overflow_float32(name: str) -> None:
    # log a = -e^88 ln 2 = -1e38 (gla: -3e38 / 16) at every token: nothing is kept, and what is read
    # is the token's own value, b = 1, k = q = 1
    tokens = torch.stack([torch.ones(70), torch.arange(70.0)], 1)[None]
    one = 1.0
    match name:
        case "mamba2":
            m = _made(
                name,
                2,
                {"heads": 1, "head_dim": 1, "state": 1},
                dt__weight={},
                dt__bias=[0.0],
                rate=[88.0],
                skip=[0.0],
            )
            one = log(2)
        case "gla":
            m = _made(name, 2, ONE, a__up__weight={}, a__up__bias=[-3e38])
        case "kda":
            m = _made(
                name, 2, ONE, a__up__weight={}, a__up__bias=[0.0], rate=[88.0], b__weight=[[ON, 0]]
            )
        case "gdn":
            m = _made(name, 2, ONE, a__weight={}, a__bias=[0.0], rate=[88.0], b__weight=[[ON, 0]])
        case _:
            m = _made(
                name,
                2,
                ONE | {"householders": 1},
                a__weight={},
                a__bias=[0.0],
                rate=[88.0],
                b__weight=[[0, 0]],
            )  # 2 sigmoid(0) = 1
    m = _with(m, **SCALARS).float()
    x = tokens.requires_grad_()
    with torch.no_grad():
        for y in (m(x), stream(m, x)[0]):
            torch.testing.assert_close(y[0, :, 0], one * torch.arange(70.0), rtol=1e-5, atol=1e-5)
    assert all(g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()]))


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 86.0), (torch.float64, 700.0)])
@pytest.mark.parametrize("name", ["kda", "mamba2", "gdn"])
@torch.no_grad()
def test_the_strongest_decays_that_a_format_holds_are_kept(
    name: str, dtype: torch.dtype, size: float
) -> None:
    # log a = -size = -e^rate ln 2; e^size is written at the first token, so 1 is left at the
    # second; k, v and q are coordinates 0, 1 and 2
    rate = [log(size / log(2))]
    read = {"k__weight": [[1, 0, 0]], "v__weight": [[0, 1, 0]], "q__weight": [[0, 0, 1]]}
    match name:
        case "mamba2":
            m = _made(
                name,
                3,
                {"heads": 1, "head_dim": 1, "state": 1},
                dt__weight={},
                dt__bias=[0.0],
                rate=rate,
                skip=[0.0],
                **read,
            )
        case "kda":
            m = _made(
                name,
                3,
                ONE,
                a__up__weight={},
                a__up__bias=[0.0],
                rate=rate,
                b__weight=[[ON, 0, 0]],
                **read,
            )
        case _:
            m = _made(
                name, 3, ONE, a__weight={}, a__bias=[0.0], rate=rate, b__weight=[[ON, 0, 0]], **read
            )
    m = _with(m, o__weight=[[1], [0], [0]]).to(dtype)
    written = log(2) if name == "mamba2" else 1.0  # its step size multiplies the value
    for chunk in (1, 64):
        m.chunk = chunk
        y = m(_tokens((1, exp(size) / written, 1), (0, 9, 1)).to(dtype))
        assert y[0, :, 0].tolist() == pytest.approx([exp(size), 1], rel=1e-4)
