"""What the runs of a sweep show, and how much of it is choice.

Seeds of one setting are trained models, not draws of one proportion: an interval is each seed's
own, over its test prompts, and among seeds stand the median, the least and the most. What may be
pooled is how many seeds solved the task: they are independent.

The best of several learning rates is chosen by its median over the same seeds that it is then
shown with, which flatters it. So beside it stands what the choice gives where it was not made: for
each seed the rate is chosen on the other seeds, and that seed's accuracy at it is `held out`.

An accuracy is that of answers. Where several are due in a prompt, they depend on each other: its
interval counts prompts.

A diverged seed is right about nothing. A failed or unfinished one is no result: it is counted, and
left out of every other number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.outcome import FormatOutcome
from separatrix.core.evidence.records import SOLVED
from separatrix.core.numbers.seeds import Spread, best_rate
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.tasks import parse_task
from separatrix.tasks.repeats import repeats
from separatrix.training.record import drawn
from separatrix.training.run import Run
from separatrix.training.sweeps.cells import Cell, cells, varied
from separatrix.training.sweeps.comparing import Tried, Unequal, differences
from separatrix.training.sweeps.proved import Proved, proved
from separatrix.training.sweeps.stored import Status, Stored

Interval = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One seed at one learning rate."""

    key: str
    seed: int
    status: Status
    stopped: str
    """What ended its training; "" where it has not ended."""
    correct: int
    """Prompts of which every answer is right."""
    tested: int
    """Test prompts, drawn from the seed: no two seeds share a stream. 0 where there is no model
    to test.
    """
    longer: tuple[int, ...]
    """Right prompts at each longer size, of as many."""
    steps_done: int
    parameters: int
    seconds: float
    right: int = 0
    """Right answers, of all `due` in the test prompts; none where an earlier version did not count
    them.
    """
    due: int = 0
    bits: float = 0.0
    """Mean of -log2 p of the right answers."""
    bits_squares: float = 0.0
    longer_right: tuple[int, ...] = ()
    longer_due: tuple[int, ...] = ()
    formats: tuple[FormatOutcome, ...] = ()
    """The same test with rounded states."""

    @property
    def ended(self) -> bool:
        return self.status in ("done", "diverged")

    @property
    def answers(self) -> tuple[int, int]:
        """Answers right and due; prompts where single answers were not counted."""
        return (self.right, self.due) if self.due else (self.correct, self.tested)

    @property
    def accuracy(self) -> Fraction:
        """Of answers; 0 where it diverged."""
        return _share(*self.answers)

    @property
    def whole(self) -> Fraction:
        """Of prompts as a whole."""
        return _share(self.correct, self.tested)

    def longer_accuracy(self, place: int) -> Fraction:
        if self.due:
            return _share(self.longer_right[place], self.longer_due[place])
        return _share(self.longer[place], self.tested)

    def rounded_accuracy(self, name: str) -> Fraction:
        """With states rounded to a format; 0 where it diverged."""
        found = next((one for one in self.formats if one.format == name), None)
        return Fraction(0) if found is None else _share(found.right, found.due)

    @property
    def interval(self) -> Interval | None:
        """95 %, Wilson, over its test prompts; None where there are none."""
        return wilson_of_answers(*self.answers, self.tested) if self.tested else None


def _share(right: int, due: int) -> Fraction:
    return Fraction(right, due) if due else Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate of a cell, with its seeds in order."""

    learning_rate: float
    trials: tuple[Trial, ...]

    @cached_property
    def ended(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.ended)

    @cached_property
    def accuracy(self) -> Spread | None:
        return Spread.of([trial.accuracy for trial in self.ended])

    @property
    def whole(self) -> Spread | None:
        """The accuracy of prompts as a whole."""
        return Spread.of([trial.whole for trial in self.ended])

    def rounded(self, name: str) -> Spread | None:
        """The accuracy with states rounded to a format."""
        return Spread.of([trial.rounded_accuracy(name) for trial in self.ended])

    def longer(self, place: int) -> Spread | None:
        """The accuracy at the longer size of this place."""
        return Spread.of([trial.longer_accuracy(place) for trial in self.ended])

    @property
    def solved(self) -> int:
        return sum(trial.accuracy >= SOLVED for trial in self.ended)

    @property
    def solved_interval(self) -> Interval | None:
        """95 %, Wilson: among how many of all seeds it would be solved."""
        return wilson(self.solved, len(self.ended)) if self.ended else None

    def count(self, status: Status) -> int:
        return sum(trial.status == status for trial in self.trials)

    @property
    def unfinished(self) -> int:
        return self.count("waiting") + self.count("running")


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A seed, the rate that the other seeds chose, and the seed's accuracy at that rate."""

    seed: int
    learning_rate: float
    accuracy: Fraction


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A cell: a stack on a task with everything but seed and learning rate the same."""

    label: str
    run: Run
    """What its runs have in common."""
    rates: tuple[Rate, ...]
    """The grid, from the smallest on."""
    proved: Proved | None
    """None where the stack or the task is not known here."""
    repeats: str
    """A sentence where test prompts had been trained on; "" where hardly any had."""
    unequal: Unequal | None = None
    """In what its training differs from that of the stack that it is compared with."""

    @cached_property
    def best(self) -> Rate | None:
        """The rate with the highest median, on these same seeds; None where no seed has ended."""
        return best([rate for rate in self.rates if rate.ended])

    @cached_property
    def held_out(self) -> tuple[HeldOut, ...]:
        """For each seed, the rate that the other seeds would have chosen. Empty where there is
        nothing to choose, or only one seed to choose with.
        """
        if len(self.rates) < 2:
            return ()
        seeds = sorted({trial.seed for rate in self.rates for trial in rate.ended})
        found = (self._without(seed) for seed in seeds)
        return tuple(one for one in found if one is not None)

    def _without(self, seed: int) -> HeldOut | None:
        others = [
            Rate(
                learning_rate=rate.learning_rate,
                trials=tuple(trial for trial in rate.ended if trial.seed != seed),
            )
            for rate in self.rates
        ]
        chosen = best([rate for rate in others if rate.ended])
        if chosen is None:
            return None
        for rate in self.rates:
            for trial in rate.ended:
                if rate.learning_rate == chosen.learning_rate and trial.seed == seed:
                    return HeldOut(
                        seed=seed, learning_rate=rate.learning_rate, accuracy=trial.accuracy
                    )
        # that rate has not ended with this seed
        return None

    @property
    def held_out_accuracy(self) -> Spread | None:
        return Spread.of([one.accuracy for one in self.held_out])

    @property
    def parameters(self) -> int | None:
        """None before a seed has ended."""
        return next((trial.parameters for rate in self.rates for trial in rate.ended), None)

    @property
    def chance(self) -> Fraction:
        return Fraction(parse_task(self.run.task).chance)

    @property
    def several(self) -> bool:
        """Whether several answers are due in a prompt."""
        return parse_task(self.run.task).several

    def count(self, status: Status) -> int:
        return sum(rate.count(status) for rate in self.rates)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a sweep shows."""

    name: str
    cells: tuple[Measured, ...]
    versions: tuple[str, ...]
    """Of the code that ended its runs."""

    def count(self, status: Status) -> int:
        return sum(cell.count(status) for cell in self.cells)

    @property
    def damaged(self) -> list[str]:
        """The keys of damaged runs."""
        trials = (trial for cell in self.cells for rate in cell.rates for trial in rate.trials)
        return [trial.key for trial in trials if trial.status == "damaged"]

    @property
    def complete(self) -> bool:
        return not any(rate.unfinished for cell in self.cells for rate in cell.rates)


def best(rates: Sequence[Rate]) -> Rate | None:
    """The rate that `best_rate` chooses. None of none."""
    found = {rate.learning_rate: rate for rate in rates}
    chosen = best_rate(
        {value: [trial.accuracy for trial in rate.ended] for value, rate in found.items()}
    )
    return None if chosen is None else found[chosen]


def summary(name: str, rows: Iterable[Stored]) -> Summary:
    """What runs of a store show, cells in the order of their first runs."""
    stored = {row.run: row for row in rows}
    found = cells(row.run for row in stored.values())
    names = varied(found)
    measured = [_measured(cell, stored, cell.label(names)) for cell in found]
    unequal = differences(
        [
            Tried(
                label=cell.label,
                run=cell.run,
                parameters=cell.parameters,
                rates=len(cell.rates),
                seeds=max(len(rate.trials) for rate in cell.rates),
            )
            for cell in measured
        ]
    )
    return Summary(
        name=name,
        cells=tuple(
            replace(cell, unequal=points) for cell, points in zip(measured, unequal, strict=True)
        ),
        versions=tuple(sorted({row.version for row in stored.values() if row.version})),
    )


def _measured(cell: Cell, stored: Mapping[Run, Stored], label: str) -> Measured:
    rates: dict[float, list[Trial]] = {}
    for run in cell.runs:
        rates.setdefault(run.learning_rate, []).append(_trial(stored[run]))
    outcomes = [row.outcome for run in cell.runs if (row := stored[run]).outcome is not None]
    return Measured(
        label=label,
        run=cell.run,
        rates=tuple(
            Rate(
                learning_rate=rate,
                trials=tuple(sorted(rates[rate], key=lambda trial: trial.seed)),
            )
            for rate in sorted(rates)
        ),
        proved=_proved(cell.run),
        repeats=repeats(parse_task(cell.run.task), drawn(cell.run, outcomes)),
    )


def _trial(row: Stored) -> Trial:
    outcome = row.outcome
    common: dict[str, Any] = {"key": row.key, "seed": row.run.seed, "status": row.status}
    if outcome is None:
        return Trial(
            **common,
            stopped="",
            correct=0,
            tested=0,
            longer=(),
            steps_done=row.step,
            parameters=0,
            seconds=row.seconds,
        )
    return Trial(
        **common,
        stopped=outcome.stopped,
        correct=outcome.correct,
        tested=outcome.tested,
        longer=outcome.longer,
        right=outcome.right,
        due=outcome.due,
        bits=outcome.bits,
        bits_squares=outcome.bits_squares,
        longer_right=outcome.longer_right,
        longer_due=outcome.longer_due,
        formats=outcome.formats,
        steps_done=outcome.steps_done,
        parameters=outcome.parameters,
        seconds=outcome.seconds,
    )


def _proved(run: Run) -> Proved | None:
    try:
        return proved(run.architecture, run.task)
    except SeparatrixError:
        # a mixer of one's own that is not imported here
        return None
