"""What a watcher of a sweep sees: its cells, how far each is, and the best accuracy so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from separatrix.training.run import Run
from separatrix.training.sweeps.cells import cells, varied
from separatrix.training.sweeps.snapshot import Snapshot
from separatrix.training.sweeps.stored import Stored

ENDED = ("done", "diverged", "failed", "damaged")
"""Statuses of a run that is not trained any more."""

AROUND = 10.0
"""Seconds between two looks at what other processes have ended."""


@dataclass(kw_only=True)
class Line:
    """A cell at one moment."""

    label: str
    total: int
    ended: int = 0
    running: int = 0
    step: int = 0
    """How far its pack is that began last."""
    accuracy: float | None = None
    """The best of the runs being trained, on the prompts they trained on."""
    right: int | None = None
    """Right answers of the best ended run, of `due` in fresh instances."""
    due: int | None = None
    rate: float | None = None
    """The learning rate of that run."""

    @property
    def best(self) -> float:
        """The accuracy of that run; below any other where there is none."""
        return -1.0 if self.right is None or not self.due else self.right / self.due


class Board:
    """Keeps up with a sweep: of what has ended it looks up the outcome, once."""

    def __init__(
        self,
        runs: Sequence[Run],
        rows: Iterable[Stored],
        look: Callable[[str], Stored] | None = None,
        look_around: Callable[[], Iterable[Stored]] = tuple,
    ) -> None:
        """`rows` is what the store had of them, `look` gives a run as it has it now, and
        `look_around` all of them.
        """
        found = cells(runs)
        names = varied(found)
        self.lines = [Line(label=cell.label(names), total=len(cell.runs)) for cell in found]
        self.best: Line | None = None
        """The cell of the best accuracy so far."""
        self._line = {
            run.key: line for cell, line in zip(found, self.lines, strict=True) for run in cell.runs
        }
        self._look = look
        self._look_around = look_around
        self._looked = time.monotonic()
        self._elsewhere = False
        self._ended: set[str] = set()
        self._seen: set[str] = set()
        """Runs that were being trained, and whose end is not known."""
        for row in rows:
            self._take(row)

    def heard(self, snapshot: Snapshot) -> None:
        """Takes in how the sweep stands now."""
        # before its first metric, a pack may have members that ended in an earlier sweep
        going = {
            key
            for standing in snapshot.packs
            for key in ({metric.key for metric in standing.metrics} or standing.pack.keys)
        }
        # between two slices a run is not computed, and has not ended either
        if self._look is not None:
            for key in self._seen - going:
                self._take(self._look(key))
        # when the last one elsewhere has ended nobody would look again
        last = self._elsewhere and not snapshot.elsewhere
        if last or (snapshot.elsewhere and time.monotonic() - self._looked >= AROUND):
            for row in self._look_around():
                self._take(row)
            self._looked = time.monotonic()
        self._elsewhere = snapshot.elsewhere > 0
        self._seen = (self._seen | going) - self._ended
        for line in self.lines:
            line.running = 0
            line.step = 0
            line.accuracy = None
        # a pack may hold runs of another sweep, which have no line here
        for key in going & self._line.keys() - self._ended:
            self._line[key].running += 1
        for standing in snapshot.packs:
            for metric in standing.metrics:
                if (line := self._line.get(metric.key)) is not None:
                    line.step = standing.step
                    line.accuracy = max(metric.accuracy, line.accuracy or 0.0)

    def _take(self, row: Stored) -> None:
        line = self._line.get(row.key)
        if row.status not in ENDED or row.key in self._ended:
            return
        self._ended.add(row.key)
        if line is None:
            return
        line.ended += 1
        outcome = row.outcome
        if outcome is None or row.status != "done":
            return
        right, due = outcome.answers
        if right / due > line.best:
            line.right = right
            line.due = due
            line.rate = row.run.learning_rate
        if self.best is None or line.best > self.best.best:
            self.best = line
