"""What rules that do not solve a task reach: levels.json, written by tools/levels.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from math import ceil
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError
from separatrix.tasks import PLAIN, PROBES, TASKS, Task, parse_any_task
from separatrix.tasks.questions import ASKED
from separatrix.tasks.text import TEXT_TASKS, TextTask

MEANT = (
    "the most that the rules of the task's audit may reach; one that does part of the task itself,"
    " such as a look-up by half a key, may stand above"
)
"""What a level is, in words."""
_ALLOWED = Fraction(1, 100)
"""What the level of a measured rule is above its measurement, which is off by that much itself."""


class Rule(NamedTuple):
    """The best rule of the audit: its name, how often it was right, of how many instances."""

    name: str
    accuracy: float
    judged: int


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    return json.loads(files("separatrix.tasks").joinpath("levels.json").read_text("utf-8"))


def measured(name: str) -> Iterator[str]:
    """What is measured of a task: its grid, several questions, each shift at its first size."""
    kind = (TASKS | TEXT_TASKS)[name]
    for sizes in (*kind.grid, *ASKED.get(name, ())):
        yield parse_any_task(f"{name}:{sizes}").spec
    for shift in kind.shifts:
        yield next(filter(None, (_shifted(f"{name}:{sizes},shift={shift}") for sizes in kind.grid)))


def _shifted(text: str) -> str:
    """The canonical text; nothing where this size has no such shift."""
    try:
        return parse_any_task(text).spec
    except SizeError:
        return ""


def rules(spec: str) -> Mapping[str, float]:
    """Accuracy of every rule tried on the task of a canonical text; none where none was."""
    return _file()["sizes"].get(spec, {}).get("rules", {})


def best_rule(spec: str) -> Rule | None:
    """The rule that is right most often; None where none was tried."""
    reached = rules(spec)
    name = max(reached, key=lambda rule: reached[rule], default="")
    return Rule(name, reached[name], _file()["sizes"][spec]["judged"]) if name else None


def stated(task: Task | TextTask, rule: str) -> Fraction | None:
    """A rule's level, or its measurement and a hundredth; elsewhere a probe's bound, or None."""
    # whatever draws instances is audited, also what is no task of ours
    told = getattr(task, "measured", ())
    found = rules(task.spec).get(rule) if rule in told else None
    if found is not None:
        return _reached(found)
    return task.level(rule) if rule in PROBES or rule not in told else None


def _reached(found: float) -> Fraction:
    return min(Fraction(1), Fraction(ceil(found * 1000), 1000) + _ALLOWED)


def level(task: Task | TextTask) -> Fraction | None:
    """The accuracy beyond which a model does more than the audit's rules: the largest level of
    those tried, or of a rule that may do anything, as counts may of what is asked by counting, what
    it reached; None at sizes where none was, and under shifts, which promise none.
    """
    if getattr(task, "shift", PLAIN) != PLAIN:
        return None
    levels = ((stated(task, rule), _reached(found)) for rule, found in rules(task.spec).items())
    return max((found if may in (None, 1) else may for may, found in levels), default=None)
