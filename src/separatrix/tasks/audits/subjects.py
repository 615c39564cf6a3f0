"""The subject of an audit: all that it needs to know of a task, of tokens or of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.core.errors import SpecError
from separatrix.tasks import NO_ANSWER, PLAIN, Task
from separatrix.tasks.audits.guess import Learner
from separatrix.tasks.audits.prompts import Prompts, cut
from separatrix.tasks.audits.shortcuts import shortcut
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.measured import stated

Draw = Callable[[int, np.random.Generator], tuple[Prompts, Tokens]]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """`draw(instances, rng)` gives prompts of at most `length` tokens and their right answers
    (instances,), classes in [0, answers).
    """

    spec: str
    answers: int
    length: int
    chance: Fraction
    level: Callable[[str], Fraction]
    draw: Draw
    shortcuts: Mapping[str, Learner[Prompts]]
    """Probes that look at what this kind of task is made of."""
    promised: bool = True
    """Whether the task promises its levels: no shift does."""
    note: str = ""


def of_tokens(task: Task) -> Subject:
    """The prompts as they are; where answers are due at several places, each cut at a uniform
    one of them. Raises SpecError for a chain of thought.
    """
    if task.stepwise:
        raise SpecError(
            f"{task.spec}: a chain of thought is there to be followed, and no shortcut; audit the"
            f" task without it: {task.asked.spec}"
        )

    shift = getattr(task, "shift", PLAIN)

    def draw(instances: int, rng: np.random.Generator) -> tuple[Prompts, Tokens]:
        tokens, targets = task.sample(instances, rng)
        if not task.several:
            return Prompts(tokens, tokens, task.vocabulary), targets
        # the largest of equally distributed numbers is at each place due equally often
        places = np.where(targets != NO_ANSWER, rng.random(targets.shape), -1.0).argmax(axis=1)
        return cut(tokens, places, nothing=task.vocabulary), targets[np.arange(instances), places]

    return Subject(
        spec=task.spec,
        answers=task.answers,
        length=task.length,
        chance=task.chance,
        # a shift may make its own chance larger than a level of the task without it
        level=lambda probe: max(stated(task, probe) or Fraction(1), task.chance),
        draw=draw,
        shortcuts={name: shortcut(name, task) for name in task.shortcuts},
        promised=shift == PLAIN,
        note=(
            ""
            if shift == PLAIN
            else (
                f"shift={shift} promises nothing about shortcuts; the levels are those of the task"
                " without it"
            )
        ),
    )
