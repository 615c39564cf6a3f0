"""Checks recorded results: one run, drawn at random, is trained again and compared.

On the same kind of machine and with the same code a training gives the same counts. Elsewhere
float32 rounds otherwise, and a long training may end like another seed: then the two accuracies are
compared as shares of two independent sets of test prompts, by Fisher's exact test. Bits likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isclose, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np

from separatrix.cards.measured.table import Row, Table
from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.base import recorded_run
from separatrix.findings.exact import fisher
from separatrix.findings.running import trial

RARE = 1e-3
"""In how many of all comparisons of equally good models luck alone says that they differ, at
most.
"""
_DEVIATIONS = sqrt(2) * NormalDist().inv_cdf(1 - RARE / 2)
"""Standard errors by which two means of one expectation differ at most, but for `RARE`."""
_ROUNDING = 1e-3
"""By what share of them equal bits may differ: sums are taken in another order elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A recorded training beside the same one made again."""

    row: Row
    learning_rate: float
    recorded: Outcome
    again: Outcome

    @property
    def seeds(self) -> tuple[Outcome, ...]:
        """All recorded seeds at this rate."""
        (rate,) = (one for one in self.row.rates if one.learning_rate == self.learning_rate)
        return rate.trials

    @property
    def unlike_bits(self) -> tuple[str, ...]:
        """Which mean bits lie outside of those of the recorded seeds by more than luck: "bits",
        and formats to which states were rounded.
        """
        kept = [_bits(one) for one in self.seeds if not one.diverged]
        apart = _DEVIATIONS * max(_error(self.recorded), _error(self.again))
        return tuple(
            name
            for name, value in _bits(self.again).items()
            if (found := [one[name] for one in kept if name in one])
            and not min(found) - apart <= value <= max(found) + apart
        )

    @property
    def found(self) -> Literal["equal", "agrees", "differs"]:
        one, other = self.recorded, self.again
        if _counts(one) == _counts(other):
            pairs = zip(_bits(one).values(), _bits(other).values(), strict=True)
            if all(isclose(*two, rel_tol=_ROUNDING, abs_tol=1e-9) for two in pairs):
                return "equal"
        if one.parameters != other.parameters or one.diverged or other.diverged:
            return "differs"
        found = [seed.accuracy for seed in self.seeds]
        near = min(found) <= other.accuracy <= max(found) or any(map(self._like, self.seeds))
        return "agrees" if near and not self.unlike_bits else "differs"

    @property
    def by_luck(self) -> bool:
        """Whether both accuracies may be one and the same, told from different prompts."""
        return self._like(self.recorded)

    def _like(self, one: Outcome) -> bool:
        return bool(one.tested and self.again.tested) and alike(
            one, self.again.accuracy, self.again.tested
        )


def alike(one: Outcome, accuracy: Fraction, tested: int) -> bool:
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
    again = _again(row, rate.learning_rate, recorded.seed, device, told)
    return Compared(row=row, learning_rate=rate.learning_rate, recorded=recorded, again=again)


def _again(
    row: Row, rate: float, seed: int, device: str, told: Callable[[int, int], None]
) -> Outcome:
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


def _counts(one: Outcome) -> Outcome:
    """What two equal trainings have in common."""
    formats = tuple(replace(each, bits=0.0) for each in one.formats)
    return replace(one, seconds=0.0, bits=0.0, bits_squares=0.0, formats=formats)


def _bits(one: Outcome) -> dict[str, float]:
    """The mean bits of a model as it is, and with its states rounded."""
    return {"bits": one.bits} | {each.format: each.bits for each in one.formats}


def _error(one: Outcome) -> float:
    """The standard error of the mean bits, over prompts."""
    return sqrt(max(0.0, one.bits_squares - one.bits**2) / one.tested)


def said(compared: Compared) -> str:
    """What was found, in sentences."""
    one, other = compared.recorded, compared.again
    labels = ", ".join(f"{name} {value}" for name, value in compared.row.labels.items())
    head = (
        f"{compared.found}: {labels}, learning rate {compared.learning_rate:g}, seed {one.seed}:"
        f" {other.right:,} of {other.due:,} answers right after {other.steps_done:,} steps;"
        f" recorded: {one.right:,} of {one.due:,} after {one.steps_done:,}"
    )
    if compared.found == "equal":
        return f"{head}."
    if not (one.diverged or other.diverged) and compared.unlike_bits:
        head += f"; bits per answer {other.bits:.4g}, recorded: {one.bits:.4g}"
    found = [100 * float(seed.accuracy) for seed in compared.seeds]
    beside = f"Recorded seeds lie from {min(found):.1f} to {max(found):.1f} %."
    inside = "the same model" if compared.by_luck else "another seed"
    agrees = f" It agrees as {inside} would." if compared.found == "agrees" else ""
    return f"{head}. {beside}{agrees}"
