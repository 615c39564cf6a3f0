"""The law `monotone`: which mixers declare it, what it catches, and that real layers in half
formats come to rest, so that two prompts of Theorem P leave one state, bit for bit.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from support.cheats import Sums, made
from support.each import each
from support.fed_cheats import OneWay
from torch import Tensor

from separatrix.mixers import MIXERS, mixer
from separatrix.mixers.laws import LAWS, LawBroken, asking, drawn, monotone
from separatrix.mixers.laws.monotone import moves_one_way, order_of, values_of
from separatrix.mixers.plugins import own_mechanism
from separatrix.mixers.plugins.check import _result
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import MECHANISMS, mechanism
from separatrix.tasks import Parity, parse_task
from separatrix.theory import judge
from separatrix.theory.fails.p_parity import standstill


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of steps, in which a user has no shapes checked either."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class FlipsItsSign(OneWay):
    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return self.v(x) - old


class Turns(OneWay):
    """Each number becomes the one before it: a permutation, as in a rotation."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return old.roll(1, -1) + self.v(x)


class KnowsTheTime(OneWay):
    """It adds at odd places only."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return old + self.v(x) if t % 2 else old


class TurnsOnceForOrdinaryNumbers(OneWay):
    """Right but at the 300th token, and there for all numbers but those from 0.1 to 10."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        ordinary = (old.abs() > 0.1) & (old.abs() < 10)
        return torch.where(ordinary, -old, old) if t == 300 else old


class RoundsDownAtTimes(OneWay):
    """Right for all values but those between 3 and 3.02, two of bf16."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return torch.where((old > 3) & (old < 3.02), old - 1 / 32, old)


class Wraps(OneWay):
    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return (old + self.v(x)).remainder(2)


class ForgetsNaN(OneWay):
    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return (old + self.v(x)).nan_to_num()


class SwapsZeros(OneWay):
    """-0 goes to 0 and 0 to -0, which a quotient would tell."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return torch.where(old == 0, -old, old)


class TurnsAtSomeTokens(OneWay):
    """A decay of either sign, as tanh gives: it may be above 0 at the token that is tried first."""

    sign = 1

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return old * (self.sign * self.v(x)[:, :1]).sign() + self.v(x)


class TurnsAtTheOthers(TurnsAtSomeTokens):
    sign = -1


CHEATS: dict[type[OneWay], str] = {
    FlipsItsSign: "falls",
    Turns: "falls|depends on other numbers",
    KnowsTheTime: "another one 1 tokens later",
    TurnsOnceForOrdinaryNumbers: "another one 292 tokens later",
    RoundsDownAtTimes: "falls",
    Wraps: "falls",
    ForgetsNaN: "turns NaN into a number",
    SwapsZeros: "falls",
    TurnsAtSomeTokens: "falls",
    TurnsAtTheOthers: "falls",
}


@pytest.mark.parametrize(
    "cheat",
    [
        pytest.param(cheat, marks=[pytest.mark.slow] if cheat is RoundsDownAtTimes else [])
        for cheat in CHEATS
    ],
)
def test_every_cheat_is_caught(cheat: type[OneWay], monkeypatch: pytest.MonkeyPatch) -> None:
    # four numbers: all values of 16 bits, where one that falls is to be found
    monkeypatch.setattr(monotone, "MOST", 1 << (18 if cheat is RoundsDownAtTimes else 14))
    with pytest.raises(LawBroken, match=CHEATS[cheat]):
        moves_one_way(made(cheat))


def test_the_honest_one_keeps_it_and_who_does_not_declare_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monotone, "MOST", 1 << 14)
    monkeypatch.setattr(monotone, "OTHERS", 0)
    moves_one_way(made(OneWay))

    class Silent(FlipsItsSign):
        monotone = False

    moves_one_way(made(Silent))


def test_check_mechanism_says_where_it_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monotone, "MOST", 1 << 12)
    monkeypatch.setattr(monotone, "OTHERS", 0)
    found = [_result("monotone", LAWS["monotone"], made(cls)) for cls in (Sums, OneWay, Wraps)]
    assert [(r.applies, r.holds) for r in found] == [(False, True), (True, True), (True, False)]


def test_theorem_p_speaks_of_a_users_own_mixer_that_declares_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cls in (OneWay, Sums):
        own = own_mechanism(cls)
        monkeypatch.setitem(MECHANISMS, own.name, own)
    stack = Architecture.parse("one_way*2 @ bf16, width=4, positions=none")
    (found,) = judge(stack, Parity(n=300_000))
    # 2^16 - 1 steps in each of two layers
    assert (found.status, found.theorem, found.n) == ("FAILS", "P", 2 * (1 + 2 * 65_535) + 1)
    # a declaration, and a test of it, is no proof: the verdict itself says so
    assert found.statement.startswith("if, as its ")
    assert any("moves one way" in a for a in found.assumptions)
    assert standstill(Architecture.parse("one_way*2 @ bf16, width=4")) is None
    assert standstill(Architecture.parse("one_way + sums @ width=4, positions=none")) is None


SMALL: dict[str, dict[str, Any]] = {
    "linear": {"heads": 1, "head_dim": 2, "feature": "identity"},
    "lightning": {"heads": 1, "head_dim": 2},
    "gla": {"heads": 1, "head_dim": 2, "conv": 3},
    "hgrn2": {"heads": 1, "head_dim": 2},
    "mamba": {"width": 2, "state": 2, "conv": 4, "norms": True},
    "mamba2": {"heads": 2, "head_dim": 2, "state": 2, "conv": 2},
    "rglru": {"width": 4, "conv": 3},
    "mlstm": {"heads": 1, "head_dim": 2, "conv": 2},
    "rwkv": {"heads": 1, "head_dim": 2, "version": 6, "shifts": 2, "width": 4},
}
MOVED = ("retnet", "deltanet", "gdn", "deltaproduct", "kda", "rwkv", "loglinear")


def test_every_declared_mixer_is_measured() -> None:
    """By the contract of mixers, at small sizes and so over all values of bf16 and fp16."""
    made_here = {name for name in MIXERS if name in MECHANISMS}
    declared = {n for n in made_here if MECHANISMS[n](**SMALL.get(n, {})).monotone}
    assert declared == set(SMALL)


@pytest.mark.parametrize("name", MOVED)
def test_who_does_not_declare_it_would_be_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monotone, "MOST", 1 << 12)
    kind = mechanism(name, heads=2, head_dim=2)
    if name == "rwkv":
        kind = mechanism(name, heads=2, head_dim=2, width=4)
    made_of = drawn(mixer(kind, width=4))
    monkeypatch.setattr(type(made_of.mechanism), "monotone", True)
    with pytest.raises(Exception, match=r"state\['S'\]"):
        moves_one_way(made_of)


def test_all_values_of_a_running_maximum_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of bf16, of its 65,282, at which the maximum falls below what the next lower one
    becomes.
    """
    mlstm = drawn(mixer(mechanism("mlstm", heads=2, head_dim=3, value_dim=5), width=6))
    right = type(mlstm)._step

    def falls(self: Any, x: Tensor, state: Any, t: int) -> Any:
        y, new = right(self, x, state, t)
        # 77.5 is one of bf16, and beyond what a step adds
        return y, new | {"m": torch.where(state["m"] == 77.5, 0, new["m"])}

    with asking(formats=("bf16",)):
        monkeypatch.setattr(monotone, "OTHERS", 0)
        monkeypatch.setattr(monotone, "PLACES", 20)
        monkeypatch.setattr(type(mlstm), "_step", falls)
        with pytest.raises(LawBroken, match=r"state\['m'\] falls: 77.5 goes to 0"):
            moves_one_way(mlstm)


def test_the_values_are_all_there_are_in_order() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        values = values_of(dtype, 1 << 17)
        # 2^16 patterns, without the NaNs: an exponent of ones and a fraction that is not 0
        fraction = 7 if dtype == torch.bfloat16 else 10
        assert len(values) == 2**16 - 2 * (2**fraction - 1)
        assert (values.diff() >= 0).all()
        assert (order_of(values).diff() > 0).all()
        assert values[0] == -torch.inf
        assert values[-1] == torch.inf
        assert len(values_of(dtype, 1 << 12)) >= 1 << 11
    wide = values_of(torch.float32, 1 << 12)
    assert (order_of(wide).diff() > 0).all()
    assert not wide.isnan().any()


def minifloats(bits: int, exponent: int) -> list[Fraction]:
    """The finite values of a small format with subnormal numbers, in order."""
    fraction = bits - 1 - exponent
    bias = 2 ** (exponent - 1) - 1
    found = {Fraction(0)}
    for e, m in itertools.product(range(2**exponent - 1), range(2**fraction)):
        scale = Fraction(2) ** ((e or 1) - bias - fraction)
        found |= {sign * scale * ((2**fraction if e else 0) + m) for sign in (-1, 1)}
    return sorted(found)


@each("bits, exponent", [(4, 2), (5, 2), (5, 3), (6, 3)])
def test_rounded_diagonal_steps_never_fall(bits: int, exponent: int) -> None:
    """round(a s + b) and round(round(a s) + b) for every a >= 0 and b of a small format: theory.md,
    section 10. With a < 0 both do.
    """
    values = np.array([float(v) for v in minifloats(bits, exponent)])

    def rounded(x: Any) -> Any:
        # to the nearest, the even one where two are as near
        near = np.searchsorted((values[1:] + values[:-1]) / 2, x)
        tie = np.isin(x, (values[1:] + values[:-1]) / 2)
        return values[np.where(tie & (near % 2 == 1), near + 1, near).clip(0, len(values) - 1)]

    s = values[:, None, None]
    falls = set()
    for a, b in ((values[None, :, None], values[None, None, :]),):
        for new in (rounded(a * s + b), rounded(rounded(a * s) + b)):
            falls |= set(values[(np.diff(new, axis=0) < 0).any(axis=(0, 2))])
    assert falls
    assert max(falls) < 0


STACKS = (
    "mlstm + window(size=5) @ heads=2, head_dim=4",
    "rwkv(version=6, shifts=2, heads=2, head_dim=4, width=8) + shortconv(width=8)",
    "hgrn2|gla @ heads=2, head_dim=4",
)


@torch.no_grad()
def ends(spec: str, task: Parity, prompt: list[int]) -> tuple[list[int], list[Tensor], Tensor]:
    """After which token of each run the state stood still, the last state, and the last logits."""
    model = build(Architecture.parse(spec), task, width=8, seed=3, exact_state=True).eval()
    model = model.to(torch.bfloat16)
    cache = model.init_cache(1)
    still: list[int] = [0]
    logits = torch.zeros(0)
    before: list[Tensor] = []
    for t, token in enumerate(prompt):
        if t and token != prompt[t - 1]:
            still.append(t)
        logits, cache = model.step(torch.tensor([token]), cache, t)
        now = [x.clone() for states in cache for state in states for x in state.values()]
        if len(before) != len(now) or not all(map(torch.equal, before, now)):
            still[-1] = t
        before = now
    return still, before, logits


@pytest.mark.slow
@pytest.mark.parametrize("spec", STACKS)
def test_two_prompts_leave_one_state_bit_for_bit(spec: str) -> None:
    """Far below the bound: a drawn stack in bf16 stands still within some hundred equal tokens."""
    task = Parity(n=1601)
    spec += (", " if "@" in spec else " @ ") + "positions=none, bf16"
    assert standstill(Architecture.parse(spec)) is not None
    runs = task.two_runs()
    assert runs is not None
    first, second = (ends(spec, task, prompt.tolist()) for prompt in runs.prompts())
    # it moved in both runs, and stood still before either ended
    for still, _, _ in (first, second):
        assert 2 < still[0] < 800 < still[1] < 1600
    assert all(map(torch.equal, first[1], second[1]))
    assert torch.equal(first[2], second[2])
    assert task.answer(runs.prompts()).tolist() in ([0, 1], [1, 0])


@pytest.mark.slow
def test_a_counter_in_bf16_is_still_before_the_bound() -> None:
    """s <- s + 1 from -2^8 stands still at 2^8: 512 of the 65,535 steps that the bound allows."""
    s = torch.tensor(-256.0, dtype=torch.bfloat16)
    steps = 0
    while (new := (s.float() + 1).to(torch.bfloat16)) != s:
        s = new
        steps += 1
    assert steps == 512
    (found,) = judge(
        Architecture.parse("gla @ bf16, positions=none"), parse_task("parity:n=131073")
    )
    assert found.numbers["c_1"] == 2**16 - 1 >= steps
