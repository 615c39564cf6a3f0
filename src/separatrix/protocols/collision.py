"""Two inputs that a protocol cannot tell apart though their right answers differ, and the check
of such a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from separatrix.errors import CheckFailed, SeparatrixError
from separatrix.protocols.one_reading import Entries, Run
from separatrix.tasks import SeqComp


class AdversaryFailed(SeparatrixError):
    """The steps of a proof ended without two such inputs.

    `step` is 'a' or 'b', the inequality that the failing step needs; `promised` whether it holds
    and every z_2 was tried: then the theorem, or its code, is wrong.
    """

    def __init__(
        self, theorem: str, step: str, what: str, *, holds: bool, all_tried: bool = True
    ) -> None:
        self.step = step
        self.promised = holds and all_tried
        why = "which does not hold at these sizes: allow fewer values"
        if holds:
            why = (
                "which holds: the theorem or its code is wrong"
                if all_tried
                else "which holds: give more contents of z_2"
            )
        super().__init__(f"Theorem {theorem}: {what}; this step needs inequality ({step}), {why}")


class Line(Protocol):
    """A line protocol of some sizes, run on a prompt."""

    @property
    def sizes(self) -> Any: ...

    def run(self, tokens: Entries, /) -> Run: ...


@dataclass(frozen=True)
class Collision:
    """Two prompts with one view of the last token, so with one answer, and their right answers,
    which differ.
    """

    first: Entries
    second: Entries
    view: tuple[Any, ...]
    answer: int
    right: tuple[int, int]


def check_collision(line: Line, collision: Collision) -> None:
    """Runs the protocol on both prompts and asks the task's oracle. Raises CheckFailed where the
    collision is not what it says, and SizeError for prompts that are no instance of the task.
    """
    runs = [line.run(tokens) for tokens in (collision.first, collision.second)]
    right = tuple(oracle(line.sizes.task, (collision.first, collision.second)))
    if any(run.view != collision.view for run in runs):
        raise CheckFailed("the last token does not get the same from both prompts")
    if any(run.answer != collision.answer for run in runs):
        raise CheckFailed("the protocol's answers are not the one recorded")
    if right != collision.right:
        raise CheckFailed(f"the right answers are {right}, not {collision.right}")
    if right[0] == right[1]:
        raise CheckFailed(f"both prompts have the right answer {right[0]}, so nothing is shown")


def collide(line: Line, first: Entries, second: Entries) -> Collision:
    """The collision of two prompts, checked before it is returned; raises CheckFailed if it is
    none.
    """
    run, (one, other) = line.run(first), oracle(line.sizes.task, (first, second))
    collision = Collision(first, second, run.view, run.answer, (one, other))
    check_collision(line, collision)
    return collision


def oracle(task: SeqComp, prompts: Sequence[Entries]) -> list[int]:
    """The right answers by the task's own oracle."""
    return [int(answer) for answer in task.answer(np.array(prompts, dtype=np.int64))]
