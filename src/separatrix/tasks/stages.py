"""Tasks at other sizes than the one trained for: the stages of a curriculum before it, and longer
prompts that are tried after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from separatrix.core.errors import SizeError, SpecError
from separatrix.tasks.base.task import Task
from separatrix.tasks.questions.base import Questions
from separatrix.tasks.resized import Resized, resized

MOST_TEXTS = 64
"""Stages of a curriculum, and longer sizes, at most."""
_STAGE = re.compile(r"(?P<sizes>[^@]*)@\s*(?P<step>[0-9]{1,12})\s*")


class Stage(NamedTuple):
    """A task that is trained until a step."""

    task: Task
    until: int
    text: str
    """The stage in canonical words."""


def read_stages(task: Task, texts: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that texts such as "n=4@100" describe, in their order. Raises SpecError for a
    text of another form, SizeError for steps that do not grow, and what `resized` raises.
    """
    _few("curriculum", texts)
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


def read_longer(task: Task, texts: Sequence[str], trained: int) -> tuple[Resized, ...]:
    """The tasks of sizes such as "n=64", whose prompts are longer than the `trained` tokens that
    training shows, or drawn otherwise: "shift=zipf", or of equal length and asked otherwise:
    "queries=8" for the last places alone. Raises SizeError where they are none of these or one
    stands there twice, and what `resized` raises.
    """
    _few("longer", texts)
    found: list[Resized] = []
    for text in texts:
        other = resized(task, text)
        drawn_alike = other.task.sizes().get("shift") == task.sizes().get("shift")
        asked_alike = _asked(other.task) == _asked(task) or other.task.length < trained
        if other.task.length <= trained and drawn_alike and asked_alike:
            raise SizeError(
                f"longer: '{text[:60]}' makes prompts of {other.task.length:,} tokens, but training"
                f" shows {trained:,}; take larger sizes, another shift, or other"
                " queries of as long a prompt"
            )
        if other in found:
            raise SizeError(f"longer: '{text[:60]}' stands there twice; leave one of them out")
        found.append(other)
    return tuple(found)


def _asked(task: Task) -> dict[str, object]:
    """What a task says of its questions beside its sizes."""
    own = task.own if isinstance(task, Questions) else ()
    return {name: value for name, value in task.sizes().items() if name in own}


def _few(name: str, texts: Sequence[str]) -> None:
    if len(texts) > MOST_TEXTS:
        raise SizeError(f"{name}: {len(texts):,} sizes; at most {MOST_TEXTS} are taken")
