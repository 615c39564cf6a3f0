"""Recorded runs trained again: equal, agreeing, or different."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb
from types import SimpleNamespace

import pytest
from support.each import each
from support.practice_tables import diverged, row, table, trial

from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import FormatOutcome, Outcome
from separatrix.findings.checking import alike, check, compared
from separatrix.models.stored.run import Run


def found(again: Outcome, recorded: Outcome | None = None) -> str:
    seeds = [recorded or trial(0, 500), trial(1, 550), trial(2, 950)]
    return compared(seeds[0], seeds, again)


def test_what_luck_makes_is_counted() -> None:
    """All ways to put the wrong answers into two boxes of 250: 10 of 500 all into one of them is 2
    of 1,781 of all, 9 is more than one in a thousand; and at 50 % the room is wide.
    """
    share = Fraction(2 * comb(250, 10), comb(500, 10))
    assert share < Fraction(1, 1000) * 2
    sure = trial(0, 1000)
    assert [alike(sure, trial(1, 4 * k)) for k in (250, 240, 239)] == [True, True, False]
    even = trial(0, 500)
    assert [alike(even, trial(1, 4 * k)) for k in (87, 88, 162, 163)] == [
        False,
        True,
        True,
        False,
    ]


@each("right", [0, 1, 4, 9])
def test_what_luck_makes_by_all_cases(right: int) -> None:
    """Of so many right among 24 prompts, every way in which half of them are the one model's."""
    for one in range(max(0, right - 12), min(12, right) + 1):
        ways = {
            k: comb(12, k) * comb(12, right - k)
            for k in range(max(0, right - 12), min(12, right) + 1)
        }
        rare = sum(n for n in ways.values() if n <= ways[one]) / comb(24, right)
        two = (replace(trial(0, 0), tested=12, right=k, due=12) for k in (one, right - one))
        assert alike(*two) == (rare > 1e-3)


def test_equal_counts_are_equal_whatever_they_took() -> None:
    assert found(replace(trial(0, 500), seconds=99.0, bits=1.5 + 1e-9)) == "equal"


@each(
    "right, expected",
    [
        (504, "agrees"),
        (652, "agrees"),
        (1000, "differs"),
        (980, "agrees"),
        (352, "agrees"),
        (348, "differs"),
        (0, "differs"),
    ],
)
def test_other_counts(right: int, expected: str) -> None:
    """Recorded seeds lie from 50 to 95 %; of 125 in 250, luck makes 88 to 162 (by logarithms of
    factorials elsewhere), and of 237 or 238 not 250.
    """
    assert found(trial(0, right)) == expected


def test_other_counts_of_rounded_states_and_other_parameters_are_seen() -> None:
    rounded = FormatOutcome(format="bf16", correct=100, right=480, due=1000, bits=1.6)
    kept = trial(0, 500, formats=(rounded,))
    assert found(kept, kept) == "equal"
    fewer = replace(kept, formats=(replace(rounded, right=479),))
    assert found(kept, fewer) == "agrees"
    assert found(trial(0, 500, parameters=5)) == "differs"


def test_what_diverges_only_once_differs() -> None:
    assert found(diverged(0)) == "differs"
    assert found(trial(0, 500), diverged(0)) == "differs"
    assert found(diverged(0), diverged(0)) == "equal"


def test_a_table_without_runs_is_refused() -> None:
    with pytest.raises(SizeError, match="hold no run"):
        check(table("toy", row({"n": 8}, {})))


def test_every_run_may_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one seed always the same."""
    drawn: list[tuple[float, int]] = []

    def again(run: Run, **_: object) -> SimpleNamespace:
        drawn.append((run.learning_rate, run.seed))
        return SimpleNamespace(outcome=trial(run.seed, 500))

    monkeypatch.setattr("separatrix.training.alone.train", again)
    cell = row({"n": 8}, {rate: [trial(seed, 500) for seed in (0, 1)] for rate in (1e-3, 3e-3)})
    every = table("toy", cell)
    for seed in range(40):
        word, said = check(every, seed=seed)
        assert word == "equal"
        assert said.startswith("equal: n 8, learning rate ")
    assert set(drawn) == {(rate, seed) for rate in (1e-3, 3e-3) for seed in (0, 1)}
    first = drawn[0]
    check(every, seed=0)
    assert drawn[-1] == first
