"""What the contract of tasks is tested on: one file per kind of task, each with a `CASE` written
from the task's definition, not from its code.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from separatrix.tasks import Task

Prompt = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One kind of task.

    `by_hand(task, prompt)` is the right answer by the definition: an integer, or a list with one
    entry per token (-1 where none is due). `ranges(task)` tells how many values each place of a
    prompt may hold, where every prompt of such values is an instance; a task whose places hang
    together has `instances(task)` instead, all its prompts.
    """

    kind: type[Task]
    examples: list[Task]
    """Sizes that every law is tested at."""
    tiny: list[Task]
    """Sizes with so few instances that all are tried, and the classes of prefixes are counted by
    brute force.
    """
    by_hand: Callable[[Any, list[int]], int | list[int]]
    ranges: Callable[[Any], list[int]] | None = None
    instances: Callable[[Any], Iterable[Prompt]] | None = None
    uniform: bool = False
    """Whether `sample` draws all instances alike, so that chance is a matter of counting."""
    even: bool = True
    """Whether all answers have the same probability."""
    bad: list[tuple[str, str]] = field(default_factory=list)
    """Task texts that are refused, and what the error says (a regular expression)."""

    def all_instances(self, task: Task) -> list[Prompt]:
        if self.ranges is not None:
            return list(itertools.product(*map(range, self.ranges(task))))
        assert self.instances is not None
        return list(self.instances(task))


def _cases() -> dict[str, Case]:
    modules = (
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(__path__, f"{__name__}.")
    )
    return {case.kind.name: case for case in (module.CASE for module in modules)}


CASES: dict[str, Case] = _cases()
EXAMPLES: list[Task] = [task for case in CASES.values() for task in case.examples]
TINY: list[Task] = [task for case in CASES.values() for task in case.tiny]


def few(
    tasks: Iterable[Any], *, sizes: int = 2, shifts: bool = True, rest: bool = False
) -> list[Any]:
    """Tasks, or their texts, as parameters named by their texts, without those that are like an
    earlier one; with `rest` these are slow.

    Unlike are, of every kind of task, the first `sizes`, the first of every form and of every other
    set of names, and with `shifts` one shift.
    """
    met: Counter[object] = Counter()
    chosen = []
    for task in tasks:
        name, _, given = str(task).partition(":")
        shifted = "shift=" in given
        names = tuple(
            part.partition("=")[0] for part in given.split(",") if not part.startswith("shift=")
        )
        kind = (name, "a shift") if shifted else (name, *names, *re.findall("form=[a-z]+", given))
        fast = shifts and not met[kind] if shifted else met[name] < sizes or not met[kind]
        met.update([kind] if shifted else [kind, name])
        if fast or rest:
            marks = [] if fast else [pytest.mark.slow]
            chosen.append(pytest.param(task, marks=marks, id=str(task)))
    return chosen
