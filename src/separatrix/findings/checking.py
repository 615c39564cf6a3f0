"""Checks recorded results: one run, drawn at random, is trained again and compared.

On the same kind of machine and with the same code a training gives the same counts. Elsewhere
float32 rounds otherwise, and a long training may end like another seed: then the two accuracies are
compared as shares of two independent sets of test prompts, by Fisher's exact test. Bits per answer
feed no sentence and are not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    def found(self) -> Literal["equal", "agrees", "differs"]:
        one, other = self.recorded, self.again
        if _counts(one) == _counts(other):
            return "equal"
        if one.parameters != other.parameters or one.diverged or other.diverged:
            return "differs"
        found = [seed.accuracy for seed in self.seeds]
        near = min(found) <= other.accuracy <= max(found)
        return "agrees" if near or any(alike(seed, other) for seed in self.seeds) else "differs"

    @property
    def by_luck(self) -> bool:
        """Whether both accuracies may be one and the same, told from different prompts."""
        return alike(self.recorded, self.again)


def alike(*two: Outcome) -> bool:
    """Whether models that are equally good are told so far apart in more than `RARE` of all cases,
    each prompt a coin: where several answers are due in it, its share varies no more than that.
    """
    counts = [(round(one.accuracy * one.tested), one.tested) for one in two if one.tested]
    return len(counts) == 2 and fisher(*counts[0], *counts[1]) > RARE


def check(
    table: Table,
    *,
    seed: int | None = None,
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
    again = _again(row, rate.learning_rate, recorded.seed, told)
    return Compared(row=row, learning_rate=rate.learning_rate, recorded=recorded, again=again)


def _again(row: Row, rate: float, seed: int, told: Callable[[int, int], None]) -> Outcome:
    from separatrix.training.engine import Trainer
    from separatrix.training.packs import Pack

    run = recorded_run(row, rate, seed)
    run.check()
    trainer = Trainer(Pack((run,)), device="cpu")
    while trainer.active:
        trainer.advance(5)
        told(trainer.step, run.steps)
    (outcome,) = trainer.outcomes().values()
    return trial(run, outcome)


def _counts(one: Outcome) -> Outcome:
    """What two equal trainings have in common."""
    formats = tuple(replace(each, bits=0.0) for each in one.formats)
    return replace(one, seconds=0.0, bits=0.0, bits_squares=0.0, formats=formats)


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
    found = [100 * float(seed.accuracy) for seed in compared.seeds]
    beside = f"Recorded seeds lie from {min(found):.1f} to {max(found):.1f} %."
    inside = "the same model" if compared.by_luck else "another seed"
    agrees = f" It agrees as {inside} would." if compared.found == "agrees" else ""
    return f"{head}. {beside}{agrees}"
