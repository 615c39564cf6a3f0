"""How a training goes: its learning rate over the steps, and when a member of a pack ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from separatrix.core.evidence.outcome import Stopped
from separatrix.core.evidence.rule import WINDOW
from separatrix.training.run import Run

END = 0.1
"""What is left of the rate at the end, of cosine and linear schedules."""


def rate(schedule: str, step: int, steps: int, warmup: int = 0) -> float:
    """Learning rate over its peak at `step`, which counts from 0: a linear warm-up over so many
    steps (0: the first 5 %, 10 at least), then the schedule.
    """
    warm = warmup or max(10, steps // 20)
    if step < warm:
        return (step + 1) / warm
    done = min(1.0, (step - warm) / max(1, steps - warm))
    match schedule:
        case "cosine":
            return END + (1 - END) * (1 + math.cos(math.pi * done)) / 2
        case "linear":
            return 1 - (1 - END) * done
        case _:
            return 1.0


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
