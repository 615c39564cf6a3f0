"""Two inputs that a protocol cannot tell apart though their right answers differ, and the check
of such a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.protocols.one_reading import Entries, Transcript
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

    def run(self, tokens: Entries, /) -> Transcript: ...


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
    transcripts = [line.run(tokens) for tokens in (collision.first, collision.second)]
    right = tuple(oracle(line.sizes.task, (collision.first, collision.second)))
    if any(one.view != collision.view for one in transcripts):
        raise CheckFailed("the last token does not get the same from both prompts")
    if any(one.answer != collision.answer for one in transcripts):
        raise CheckFailed("the protocol's answers are not the one recorded")
    if right != collision.right:
        raise CheckFailed(f"the right answers are {right}, not {collision.right}")
    if right[0] == right[1]:
        raise CheckFailed(f"both prompts have the right answer {right[0]}, so nothing is shown")


def collide(line: Line, first: Entries, second: Entries) -> Collision:
    """The collision of two prompts, checked before it is returned; raises CheckFailed if it is
    none.
    """
    transcript = line.run(first)
    one, other = oracle(line.sizes.task, (first, second))
    collision = Collision(first, second, transcript.view, transcript.answer, (one, other))
    check_collision(line, collision)
    return collision


def oracle(task: SeqComp, prompts: Sequence[Entries]) -> list[int]:
    """The right answers by the task's own oracle."""
    return [int(answer) for answer in task.answer(np.array(prompts, dtype=np.int64))]


def side_by_side(line: Line, collision: Collision) -> str:
    """The two prompts for a person to read, function by function, with differing tokens in
    brackets.
    """
    task = line.sizes.task
    names = [f"z_{level}" for level in range(task.L, 0, -1)]
    counts = [task.entries(level) for level in range(task.L, 0, -1)]
    header = [*names, "z_0", "w", "right answer"]
    rows = [header]
    for tokens, right in zip((collision.first, collision.second), collision.right, strict=True):
        written = [
            f"[{token}]" if one != other else str(token)
            for token, one, other in zip(tokens, collision.first, collision.second, strict=True)
        ]
        # the functions take their entries one after the other; z_0 and w stand alone
        entries = iter(written)
        cells = [" ".join(islice(entries, count)) for count in (*counts, 1, 1)]
        rows.append([*cells, str(right)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    said = (
        f"The last token gets the same from both prompts and answers {collision.answer}, which is"
        " wrong on one of them."
    )
    return "\n".join([*table, said])
