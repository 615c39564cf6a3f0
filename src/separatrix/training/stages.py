"""Tasks at other sizes than the one trained for: the stages of a curriculum before it, and longer
prompts that are tried after it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from separatrix.errors import SizeError, SpecError
from separatrix.tasks import Task
from separatrix.tasks.resized import resized

_STAGE = re.compile(r"(?P<sizes>[^@]*)@\s*(?P<step>[0-9]{1,12})\s*")


class Stage(NamedTuple):
    """A task that is trained until a step."""

    task: Task
    until: int
    text: str
    """The stage in canonical words."""


class Other(NamedTuple):
    """A task at other sizes."""

    task: Task
    text: str
    """The sizes in canonical words."""


def stages(task: Task, texts: tuple[str, ...]) -> tuple[Stage, ...]:
    """The stages that texts such as "n=4@100" describe, in their order. Raises SpecError for a
    text of another form, and SizeError for steps that do not grow or sizes that do not fit.
    """
    found: list[Stage] = []
    for text in texts:
        match = _STAGE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"curriculum: '{text[:60]}' is no stage; write sizes and the step until which they"
                " are trained, such as 'n=4@100'"
            )
        until = int(match["step"])
        if until < 1 or (found and until <= found[-1].until):
            raise SizeError(
                f"curriculum: '{text[:60]}' ends at step {until}; the steps of stages begin at 1"
                " and grow"
            )
        stood, sizes = resized(task, match["sizes"])
        found.append(Stage(stood, until, f"{sizes}@{until}"))
    return tuple(found)


def longer_task(task: Task, text: str) -> Other:
    """The task with the sizes that a text such as "n=64" names. Raises SpecError, UnknownNameError
    or SizeError for sizes that do not fit, or that make its prompts no longer.
    """
    other, sizes = resized(task, text)
    if other.length <= task.length:
        raise SizeError(
            f"longer: '{text[:60]}' makes prompts of {other.length:,} tokens, but those trained on"
            f" have {task.length:,}; take larger sizes"
        )
    return Other(other, sizes)
