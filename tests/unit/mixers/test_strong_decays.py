"""Decays as strong as a format holds, and stronger: recurrences in float32 and float64."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import exp, log
from typing import Any

import jaxtyping
import pytest
import torch
from support.mixers import ON, ONE, SCALARS, made_with, tokens_of, with_weights
from torch import Tensor

from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import inputs, stream
from separatrix.stacks.mechanisms import mechanism


def _gate_of_coordinate_zero(name: str, sizes: dict[str, Any]) -> Mixer:
    """Gates read coordinate 0 alone: where it is 1, log a is about -1000, and where it is 0,
    mild; queries, keys and values are drawn.
    """
    m = made_with(name, 6, sizes)
    heads = sizes.get("heads", 0)
    d = sizes.get("head_dim", 0)
    scalar = {(h, 0): 1000 for h in range(heads)}
    matrix = {(c, 0): 1000 for c in range(heads * d)}
    match name:
        case "gdn" | "deltaproduct" | "loglinear" if sizes.get("base") != "mamba2":
            return with_weights(m, a__weight=scalar, a__bias=[-3.0] * heads, rate=[0.0] * heads)
        case "kda":
            return with_weights(
                m,
                a__down__weight={(0, 0): 1},
                a__up__weight=matrix,
                a__up__bias=[-3.0] * heads * d,
                rate=[0.0] * heads,
            )
        case "gla":
            weight = {place: -16 * size for place, size in matrix.items()}
            return with_weights(
                m, a__down__weight={(0, 0): 1}, a__up__weight=weight, a__up__bias=[3.0] * heads * d
            )
        case "hgrn2":
            with torch.no_grad():
                m.get_parameter("k.weight")[:, 0] = -1000
            return m
        case "mamba2" | "loglinear":
            return with_weights(m, dt__weight=scalar, dt__bias=[-3.0] * heads, rate=[0.0] * heads)
        case "mlstm":
            return with_weights(
                m, f__weight={place: -size for place, size in scalar.items()}, f__bias=[3.0] * heads
            )
        case _:
            # rate 125: log a = -8 * 125 r, and r is 0 to within e^-40 where coordinate 0 is not 1
            gates = {(c, 0): 2 * ON for c in range(5)}
            m = with_weights(m, rate=[125.0] * 5, r__weight=gates, r__bias=[-ON] * 5)
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
    "loglinear mamba2": ("loglinear", {"heads": 2, "head_dim": 3, "base": "mamba2"}),
    "rglru": ("rglru", {"width": 5}),
}


strong = pytest.mark.parametrize("case", _STRONG)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mamba", "mamba2", "gdn", "deltaproduct", "gla", "kda", "hgrn2", "rwkv", "rwkv6"]
)
@torch.no_grad()
def test_float32_forms_agree_under_strong_gates(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # many steps; shapes are checked in the other tests
    # gates drawn far from their start: decays from 1 down to e^-1000 in one chunk
    sizes: dict[str, Any] = {
        "mamba": {"width": 8, "state": 4, "rank": 2},
        "mamba2": {"heads": 2, "head_dim": 4, "state": 4},
    }.get(name, {"heads": 2, "head_dim": 4})
    if name == "rwkv6":
        name, sizes = "rwkv", sizes | {"version": 6}
    m = mixer(mechanism(name, **sizes), width=8)
    generator = torch.Generator().manual_seed(0)
    m.reset(generator)
    for parameter in (
        p for k, p in m.named_parameters() if k.split(".")[0] in ("a", "b", "dt", "rate", "w")
    ):
        parameter.add_(2 * torch.randn(parameter.shape, generator=generator))
    x = torch.randn(1, 300, 8, generator=generator)
    exact = copy.deepcopy(m).double()(x.double())
    for found in (m(x), stream(m, x)[0]):
        assert (found - exact).abs().max() < 1e-4 * exact.abs().max()


@pytest.mark.slow
@strong
@pytest.mark.parametrize("period", [1, 7])
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
    if case.startswith("loglinear"):
        m = with_weights(
            m, level__weight={}
        )  # equal weights ln 2 at every level: levels of a part alone are others than in the whole
    wanted = _apart(lambda part: stream(m, part)[0], x, starts)
    torch.testing.assert_close(stream(m, x)[0], wanted, rtol=1e-12, atol=1e-12)
    for chunk in (1, 7, 64):
        m.chunk = chunk
        torch.testing.assert_close(m(x), wanted, rtol=1e-9, atol=1e-10 * wanted.abs().max().item())


@pytest.mark.parametrize(
    ("case", "period"), [(case, (1, 2, 7)[i % 3]) for i, case in enumerate(_STRONG)]
)
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


@pytest.mark.parametrize("name", ["gdn", "deltaproduct", "kda", "mamba2", "gla"])
def test_decays_whose_sums_overflow_float32(name: str) -> None:
    # log a = -e^88 ln 2 = -1e38 (gla: -3e38 / 16) at every token: nothing is kept, and what is read
    # is the token's own value, b = 1, k = q = 1
    tokens = torch.stack([torch.ones(70), torch.arange(70.0)], 1)[None]
    one = 1.0
    match name:
        case "mamba2":
            m = made_with(
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
            m = made_with(name, 2, ONE, a__up__weight={}, a__up__bias=[-3e38])
        case "kda":
            m = made_with(
                name, 2, ONE, a__up__weight={}, a__up__bias=[0.0], rate=[88.0], b__weight=[[ON, 0]]
            )
        case "gdn":
            m = made_with(
                name, 2, ONE, a__weight={}, a__bias=[0.0], rate=[88.0], b__weight=[[ON, 0]]
            )
        case _:
            m = made_with(
                name,
                2,
                ONE | {"householders": 1},
                a__weight={},
                a__bias=[0.0],
                rate=[88.0],
                b__weight=[[0, 0]],
            )  # 2 sigmoid(0) = 1
    m = with_weights(m, **SCALARS).float()
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
            m = made_with(
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
            m = made_with(
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
            m = made_with(
                name, 3, ONE, a__weight={}, a__bias=[0.0], rate=rate, b__weight=[[ON, 0, 0]], **read
            )
    m = with_weights(m, o__weight=[[1], [0], [0]]).to(dtype)
    written = log(2) if name == "mamba2" else 1.0  # its step size multiplies the value
    for chunk in (1, 64):
        m.chunk = chunk
        y = m(tokens_of((1, exp(size) / written, 1), (0, 9, 1)).to(dtype))
        assert y[0, :, 0].tolist() == pytest.approx([exp(size), 1], rel=1e-4)
