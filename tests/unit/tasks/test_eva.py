"""Eva: sizes, the default of V, answers by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from separatrix.tasks import Eva, parse_task


def test_v_is_n_unless_given() -> None:
    assert Eva(n=6) == Eva(n=6, V=6) == parse_task("eva:n=6") == parse_task(" eva : n = 6 , V=6 ")
    assert Eva(n=6).spec == "eva:n=6,V=6"
    assert hash(Eva(n=6)) == hash(Eva(n=6, V=6))
    assert replace(Eva(n=6), n=3) == Eva(n=3, V=6)


def test_answers_by_hand() -> None:
    """The first prompt is the table that opens the module."""
    assert Eva(n=4).answer(
        np.array([[2, 0, 3, 0, 2], [2, 0, 3, 0, 0], [2, 0, 3, 1, 3]])
    ).tolist() == [3, 2, 1]


def test_one_argument_is_enough() -> None:
    task = Eva(n=1, V=5)
    tokens, targets = task.sample(100, np.random.default_rng(0))
    assert (tokens[:, 1] == 0).all()
    assert (targets == tokens[:, 0]).all()
    assert set(targets) == set(range(5))


def test_arguments_and_values_are_uniform() -> None:
    """Chi-square of f(0), f(2) and x: below freedom + 5 sigma."""
    tokens, _ = Eva(n=5, V=7).sample(70_000, np.random.default_rng(6))
    for place, values in ((0, 7), (2, 7), (5, 5)):
        counts = np.bincount(tokens[:, place], minlength=values)
        assert len(counts) == values
        expected = len(tokens) / values
        assert ((counts - expected) ** 2 / expected).sum() < values - 1 + 5 * (
            2 * (values - 1)
        ) ** 0.5


@pytest.mark.parametrize(
    ("shift", "chance"),
    [("zipf", Fraction(20, 49)), ("few", Fraction(1, 4)), ("local", Fraction(1, 6))],
)
def test_shifts_by_hand(shift: str, chance: Fraction) -> None:
    """H_6 = 49/20. Of ten entries the last four are asked for under "local"."""
    task = Eva(n=10, V=6, shift=shift)
    tokens, targets = task.sample(30_000, np.random.default_rng(7))
    counts = np.bincount(targets, minlength=6)
    assert task.chance == chance
    assert abs(counts[0] / 30_000 - float(chance)) < 5 * (0.25 / 30_000) ** 0.5
    assert (task.answer(tokens) == targets).all()
    assert tokens[:, -1].min() == (6 if shift == "local" else 0)
    assert (counts > 0).sum() == (4 if shift == "few" else 6)
    assert (parse_task(task.spec), task.family().at(10)) == (task, Eva(n=10, V=6))


def test_levels_by_hand() -> None:
    """Two entries of two values: any one of them is right in 3/4; of counts there is a bound."""
    levels = {
        probe: Eva(n=2, V=2).level(probe)
        for probe in ("constant", "counts", "position", "last tokens", "nearest key")
    }
    assert levels == {"constant": Fraction(1, 2), "counts": 1} | dict.fromkeys(
        ("position", "last tokens", "nearest key"), Fraction(3, 4)
    )
    assert Eva(n=6, V=6).level("position") == Fraction(11, 36)
