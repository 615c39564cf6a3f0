"""Checks recorded results: one run, drawn at random, is trained again and compared.

On the same kind of machine and with the same code a training gives the same counts. Elsewhere
float32 rounds otherwise, and a long training may end like another seed: then the two accuracies are
compared as what they are, shares of two independent sets of test prompts at most, by Fisher's exact
test: at 100 % it leaves room for one point where it leaves ten at 50 %. Bits likewise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isclose, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np

from separatrix.cards.measured.table import Row, Table, Trial
from separatrix.core.errors import SizeError
from separatrix.core.evidence.code import code_version
from separatrix.findings.base import recorded_run
from separatrix.findings.exact import fisher
from separatrix.findings.running import trial

RARE = 1e-3
"""In how many of all comparisons of equally good models luck alone says that they differ, at
most.
"""
Found = Literal["equal", "agrees", "differs"]
_ROUNDING = 1e-3
"""By what share of them equal bits may differ: sums are taken in another order elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A recorded training beside the same one made again."""

    row: Row
    learning_rate: float
    recorded: Trial
    again: Trial
    version: str
    """Of the code that trained it again."""

    @cached_property
    def room(self) -> tuple[float, float]:
        """The least and the most accuracy that luck alone makes of the recorded one."""
        tested = self.again.tested
        near = round(self.recorded.accuracy * tested)

        def apart(right: int) -> bool:
            return not alike(self.recorded, Fraction(right, tested), tested)

        # the farther, the less alike
        below = bisect_left(range(near), True, key=lambda right: not apart(right))
        above = near + bisect_left(range(near, tested + 1), True, key=apart)
        return below / tested, (above - 1) / tested

    @property
    def seeds(self) -> tuple[Trial, ...]:
        """All recorded seeds at this rate."""
        (rate,) = (one for one in self.row.rates if one.learning_rate == self.learning_rate)
        return rate.trials

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most accuracy of all recorded seeds at this rate."""
        found = [float(one.accuracy) for one in self.seeds]
        return min(found), max(found)

    @property
    def unlike_bits(self) -> tuple[str, ...]:
        """Which mean bits lie outside of those of the recorded seeds by more than luck: "bits",
        and formats to which states were rounded.
        """
        kept = [_bits(one) for one in self.seeds if not one.diverged]
        apart = _rare_deviations() * max(_error(self.recorded), _error(self.again))
        return tuple(
            name
            for name, value in _bits(self.again).items()
            if (found := [one[name] for one in kept if name in one])
            and not min(found) - apart <= value <= max(found) + apart
        )

    @property
    def found(self) -> Found:
        if self.recorded.parameters != self.again.parameters:
            return "differs"
        if _counts(self.recorded) == _counts(self.again) and _alike(self.recorded, self.again):
            return "equal"
        if self.recorded.diverged or self.again.diverged or self.unlike_bits:
            return "differs"
        low, high = self.spread
        between = low <= float(self.again.accuracy) <= high
        return "agrees" if between or any(map(self._like, self.seeds)) else "differs"

    @property
    def by_luck(self) -> bool:
        """Whether both accuracies may be one and the same, told from different prompts."""
        return self._like(self.recorded)

    def _like(self, one: Trial) -> bool:
        return bool(one.tested and self.again.tested) and alike(
            one, self.again.accuracy, self.again.tested
        )


def alike(one: Trial, accuracy: Fraction, tested: int) -> bool:
    """Whether models that are equally good are told so far apart in more than `RARE` of all cases,
    each prompt a coin: where several answers are due in it, its share varies no more than that.
    """
    right = round(one.accuracy * one.tested)
    return fisher(right, one.tested, round(accuracy * tested), tested) > RARE


def check(
    table: Table,
    *,
    seed: int | None = None,
    device: str = "cpu",
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Compared:
    """Trains one of the runs of a table again, drawn with `seed`; anew each time without one.

    Raises SizeError for a table without runs, and what training raises where this version cannot
    train the run.
    """
    choices = [(row, rate, one) for row in table.rows for rate in row.rates for one in rate.trials]
    if not choices:
        raise SizeError(f"the recorded results of {table.experiment} hold no run")
    row, rate, recorded = choices[int(np.random.default_rng(seed).integers(len(choices)))]
    return Compared(
        row=row,
        learning_rate=rate.learning_rate,
        recorded=recorded,
        again=_again(row, rate.learning_rate, recorded.seed, device, told),
        version=code_version(),
    )


def _again(
    row: Row, rate: float, seed: int, device: str, told: Callable[[int, int], None]
) -> Trial:
    from separatrix.training.engine import Trainer
    from separatrix.training.packs import Pack

    run = recorded_run(row, rate, seed)
    run.check()
    trainer = Trainer(Pack((run,)), device=device)
    while trainer.active:
        trainer.advance(5)
        told(trainer.step, run.steps)
    (outcome,) = trainer.outcomes().values()
    return trial(run, outcome)


def _counts(one: Trial) -> tuple[object, ...]:
    """What two equal trainings have in common."""
    rounded = [(each.format, each.correct, each.right, each.due) for each in one.formats]
    return (
        one.stopped,
        one.steps,
        one.correct,
        one.tested,
        one.right,
        one.due,
        one.longer,
        rounded,
    )


def _bits(one: Trial) -> dict[str, float]:
    """The mean bits of a model as it is, and with its states rounded."""
    return {"bits": one.bits} | {each.format: each.bits for each in one.formats}


def _alike(one: Trial, other: Trial) -> bool:
    """Whether bits are equal but for the order of sums."""
    first, second = _bits(one), _bits(other)
    return first.keys() == second.keys() and all(
        isclose(first[name], second[name], rel_tol=_ROUNDING, abs_tol=1e-9) for name in first
    )


def _error(one: Trial) -> float:
    """The standard error of the mean bits, over prompts."""
    return sqrt(max(0.0, one.bits_squares - one.bits**2) / one.tested)


def _rare_deviations() -> float:
    """How many standard errors two means of one expectation differ at most, but for `RARE`."""
    return sqrt(2) * NormalDist().inv_cdf(1 - RARE / 2)


def said(compared: Compared) -> str:
    """What was found, in sentences."""
    one, other = compared.recorded, compared.again
    labels = ", ".join(f"{name} {value}" for name, value in compared.row.labels.items())
    head = (
        f"{compared.found}: {labels}, learning rate {compared.learning_rate:g}, seed {one.seed}:"
        f" {other.right:,} of {other.due:,} answers right after {other.steps:,} steps; recorded:"
        f" {one.right:,} of {one.due:,} after {one.steps:,}"
    )
    if compared.found == "equal":
        return f"{head}."
    if not (one.diverged or other.diverged) and compared.unlike_bits:
        head += f"; bits per answer {other.bits:.4g}, recorded: {one.bits:.4g}"
    low, high = compared.spread
    beside = f" Recorded seeds lie from {100 * low:.1f} to {100 * high:.1f} %"
    if one.tested and other.tested:
        least, most = compared.room
        beside += (
            f"; luck alone makes {100 * least:.1f} to {100 * most:.1f} % of the recorded"
            f" {100 * float(one.accuracy):.1f} % over {other.tested:,} prompts, in all but one of"
            f" {round(1 / RARE):,} cases"
        )
    inside = "as the same model would" if compared.by_luck else "as another seed would"
    return f"{head}.{beside}.{f' It agrees {inside}.' if compared.found == 'agrees' else ''}"
