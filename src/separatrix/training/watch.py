"""When training of a member ends: solved, on a plateau, out of its budget, or diverged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from separatrix.core.evidence.outcome import Stopped
from separatrix.core.evidence.rule import WINDOW
from separatrix.training.run import Run

_PROGRESS = 0.01
"""A running loss that is lower by this part than any before is progress."""


class Watch:
    """The running loss of one member, and since when it has not become better."""

    def __init__(self) -> None:
        self.best = math.inf
        self.since = 0

    def ended(
        self, run: Run, losses: Sequence[float], accuracies: Sequence[float], step: int
    ) -> tuple[Stopped | None, int]:
        """Why training ends after `step` steps, and how many steps count. The numbers are those of
        the last steps, `WINDOW` of them at most.
        """
        first = step - len(losses) + 1
        for number, loss in enumerate(losses):
            if not math.isfinite(loss):
                return "diverged", first + number
        trained_alone = step - (run.stages[-1].until if run.stages else 0)
        # what is easier says nothing about the task itself
        whole = len(losses) == WINDOW <= trained_alone
        if whole and sum(accuracies) >= run.stop_at * WINDOW:
            return "solved", step
        running = sum(losses) / len(losses)
        if not whole or running < self.best * (1 - _PROGRESS):
            self.best = running if whole else math.inf
            self.since = step
        if run.plateau and step - self.since >= run.plateau:
            return "plateau", step
        return ("steps" if step >= run.steps else None), step
