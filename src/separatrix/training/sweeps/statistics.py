"""What the runs of a sweep show, and how much of it is choice.

Seeds of one setting are trained models, not draws of one proportion: an interval is each seed's
own, over its test prompts, and among seeds stand the median, the least and the most. What may be
pooled is how many seeds solved the task: they are independent.

The best of several learning rates is chosen by its median over the same seeds that it is then
shown with, which flatters it; every seed at every rate stands beside.

An accuracy is that of answers. Where several are due in a prompt, they depend on each other: its
interval counts prompts.

A diverged seed is right about nothing. A failed or unfinished one is no result: it is counted, and
left out of every other number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import SeparatrixError, StoreError
from separatrix.core.evidence.outcome import Outcome, share
from separatrix.core.evidence.records import SOLVED
from separatrix.core.evidence.rule import comparison, needed
from separatrix.core.numbers.seeds import Spread
from separatrix.core.numbers.wilson import wilson
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.tasks.resized import repeats
from separatrix.training.sweeps.cells import Proved, label, proved, varied
from separatrix.training.sweeps.reading import Status, Stored
from separatrix.training.sweeps.schema import DAMAGED, STATUSES
from separatrix.training.sweeps.store import Store

Interval = tuple[str, str]
Numbers = NDArray[np.int64]
WORDS = (*STATUSES, DAMAGED)
_DONE, _DIVERGED = WORDS.index("done"), WORDS.index("diverged")


class Counts(NamedTuple):
    """Runs at one rate, a place each, by seed."""

    seeds: Numbers
    status: Numbers
    """The place in `WORDS`."""
    step: Numbers
    correct: Numbers
    tested: Numbers
    right: Numbers
    due: Numbers

    @property
    def ended(self) -> Counts:
        places = (self.status == _DONE) | (self.status == _DIVERGED)
        return Counts(*(column[places] for column in self))

    @property
    def answers(self) -> tuple[Numbers, Numbers]:
        """Right and due; 0 of 1 where a run diverged."""
        return self.right, np.maximum(self.due, 1)


Load = Callable[[Sequence[int]], Sequence[Stored]]
"""The runs at some places of a rate's counts."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate of a cell, with its seeds in order."""

    learning_rate: float
    counts: Counts
    load: Load

    @cached_property
    def runs(self) -> tuple[Stored, ...]:
        return tuple(self.load(range(len(self.counts.seeds))))

    @cached_property
    def ended(self) -> Counts:
        return self.counts.ended

    @property
    def seeds(self) -> int:
        """How many of them have ended."""
        return len(self.ended.seeds)

    @cached_property
    def accuracy(self) -> Spread | None:
        return _spread(*self.ended.answers)

    @property
    def whole(self) -> Spread | None:
        """The accuracy of prompts as a whole."""
        return _spread(self.ended.correct, np.maximum(self.ended.tested, 1))

    def rounded(self, name: str) -> Spread | None:
        """The accuracy with states rounded to a format; 0 of what diverged."""
        found = [
            next(
                (share(one.right, one.due) for one in o.formats if one.format == name), Fraction(0)
            )
            for o in self._outcomes
        ]
        return Spread.of(found)

    def longer(self, place: int) -> Spread | None:
        """The accuracy at the longer size of this place."""
        return Spread.of([share(*o.longer_answers(place)) for o in self._outcomes])

    @property
    def _outcomes(self) -> list[Outcome]:
        return [run.outcome for run in self.runs if run.outcome is not None]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which of those that ended are right on almost all answers."""
        right, due = self.ended.answers
        return right * SOLVED.denominator >= due * SOLVED.numerator

    @property
    def solved(self) -> int:
        return int(self.right.sum())

    @property
    def solved_interval(self) -> Interval | None:
        """95 %, Wilson: among how many of all seeds it would be solved. One says nothing of it."""
        return wilson(self.solved, self.seeds) if self.seeds > 1 else None

    def count(self, status: Status) -> int:
        return int((self.counts.status == WORDS.index(status)).sum())

    @property
    def unfinished(self) -> int:
        return self.count("waiting") + self.count("running")


def _spread(right: Numbers, due: Numbers) -> Spread | None:
    if not len(right):
        return None
    # quotients of numbers below 2^26 are in order as floats, too, and equal where they are
    order = np.argsort(right / due, kind="stable")
    middle = order[[(len(order) - 1) // 2, len(order) // 2]]
    least, low, high, most = (
        Fraction(int(right[place]), int(due[place])) for place in (order[0], *middle, order[-1])
    )
    return Spread(median=(low + high) / 2, least=least, most=most)


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
    needed: int = 0
    """The steps that the rule of stopping asks for, where seeds are unsolved that had fewer."""

    @cached_property
    def best(self) -> Rate | None:
        """The rate with the highest median accuracy over its seeds, these same ones; of equals the
        one with the highest mean, and of those the smallest. None where no seed has ended.
        """

        def merit(rate: Rate) -> tuple[Fraction, Fraction, float]:
            assert rate.accuracy is not None
            return rate.accuracy.median, _mean(*rate.ended.answers), -rate.learning_rate

        return max((rate for rate in self.rates if rate.seeds), key=merit, default=None)

    @cached_property
    def parameters(self) -> int | None:
        """None before a seed has ended."""
        for rate in self.rates:
            places = np.flatnonzero(np.isin(rate.counts.status, (_DONE, _DIVERGED)))
            if len(places) and (first := rate.load([int(places[0])])[0].outcome):
                return first.parameters
        return None

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
        found: list[str] = []
        for rate in (rate for cell in self.cells for rate in cell.rates):
            places = np.flatnonzero(rate.counts.status == WORDS.index("damaged")).tolist()
            found += [run.key for run in rate.load(places)] if places else []
        return found

    @property
    def complete(self) -> bool:
        return not any(rate.unfinished for cell in self.cells for rate in cell.rates)


def _mean(right: Numbers, due: Numbers) -> Fraction:
    sums = (Fraction(int(right[due == d].sum()), int(d)) for d in np.unique(due))
    return sum(sums, Fraction(0)) / len(right)


def summary(name: str, path: Path, keys: Sequence[str] | None = None) -> Summary:
    """What the runs of a sweep in a store show, or those of these `keys`, cells in the order of
    their first runs. It is read cell by cell from what is sealed: of a million runs in seconds.
    Runs are read when they are asked for. Raises StoreError.
    """
    with Store.read(path) as store:
        columns, versions = store.shown(name, keys)
        if not columns:
            raise StoreError(f"{store.path} has no run of sweep {name}")

    def load(ids: Numbers, places: Sequence[int]) -> list[Stored]:
        with Store.read(path) as store:
            return store.numbered(ids[[*places]].tolist())

    found: dict[Run, list[Rate]] = {}
    for text, rate, ids, *numbers in columns:
        run = Run.from_json(json.loads(text) | {"seed": 0, "learning_rate": 1.0})
        own = Rate(learning_rate=rate, counts=Counts(*numbers), load=partial(load, ids))
        found.setdefault(run, []).append(own)
    names = varied(found)
    measured = [
        _measured(run, sorted(rates, key=lambda rate: rate.learning_rate), label(run, names))
        for run, rates in found.items()
    ]
    return Summary(
        name=name,
        cells=tuple(
            replace(cell, needed=steps)
            for cell, steps in zip(measured, _needed(measured), strict=True)
        ),
        versions=tuple(sorted(filter(None, versions))),
    )


def _needed(cells: Sequence[Measured]) -> list[int]:
    """For each cell under the rule of stopping the steps that it asks for, where seeds are not
    solved that had fewer; else 0.
    """
    slowest: dict[str, int] = {}
    held = [comparison(cell.run.to_json()) if cell.run.rule == "study" else "" for cell in cells]
    for cell, key in zip(cells, held, strict=True):
        # who is solved ends before the last step, or at it
        steps = [int(rate.ended.step[rate.right].max(initial=0)) for rate in cell.rates]
        slowest[key] = max(slowest.get(key, 0), *steps)
    found: list[int] = []
    for cell, key in zip(cells, held, strict=True):
        steps = needed([slowest[key]]) if key else 0
        missed = any(not rate.right.all() for rate in cell.rates)
        found.append(steps if missed and cell.run.steps < steps else 0)
    return found


def _measured(run: Run, rates: Sequence[Rate], label: str) -> Measured:
    beside = None
    # without a mixer of one's own that is not imported here
    with suppress(SeparatrixError):
        beside = proved(run.architecture, run.task)
    done = [rate.counts.step[rate.counts.status == _DONE] for rate in rates]
    return Measured(
        label=label,
        run=run,
        rates=tuple(rates),
        proved=beside,
        repeats=repeats(parse_task(run.task), run.drawn(np.concatenate(done).tolist())),
    )
