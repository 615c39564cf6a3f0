"""A task with some of its sizes changed, so that a model made for the one can read the other: what
an id or an answer stands for must stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from separatrix.core.errors import SeparatrixError, SizeError, SpecError
from separatrix.tasks.base.sizes import read_sizes
from separatrix.tasks.base.task import PLAIN, Task

_LONGEST_TEXT = 1_000


class Resized(NamedTuple):
    """A task at other sizes."""

    task: Task
    text: str
    """The sizes that differ, in canonical words."""


def resized(task: Task, text: str) -> Resized:
    """The task with the sizes that a text such as "n=64,K=8" names, for a model made for `task`.

    Raises SpecError for a text of another form, UnknownNameError or SizeError for sizes that the
    task does not have, and SizeError where a model of the one cannot read the other.
    """
    sizes = _read(task, text)
    other = task.with_sizes(sizes)
    own = task.sizes()
    new = other.sizes()
    if "shift" in own:
        # sizes leave the plain draw out
        new.setdefault("shift", PLAIN)
    changed = {name: value for name, value in new.items() if own.get(name) != value}
    if not changed:
        raise SizeError(f"'{text[:60]}' leaves {task.spec} as it is; name a size that differs")
    trouble = unreadable(other, task)
    if trouble:
        raise SizeError(f"'{text[:60]}': {trouble}{_remedy(task, sizes)}")
    return Resized(other, ",".join(f"{name}={value}" for name, value in changed.items()))


def unreadable(other: Task, task: Task) -> str | None:
    """Why a model made for `task` cannot read `other` with the same meanings; None where it can."""
    return _differing(other, other.token_ids, task, task.token_ids, "token") or _differing(
        other, other.answer_ids, task, task.answer_ids, "answer"
    )


def _differing(
    other: Task, ids: Mapping[str, range], task: Task, known: Mapping[str, range], kind: str
) -> str | None:
    for meaning, own in ids.items():
        if not own:
            continue
        there = known.get(meaning)
        if there is None:
            return (
                f"{other.spec} has {kind}s that stand for a {meaning}, which none of"
                f" {task.spec} does: one model cannot read both"
            )
        if own.start != there.start:
            return (
                f"the {kind} ids of '{meaning}' begin at {own.start:,} in {other.spec}, but at"
                f" {there.start:,} in {task.spec}: one model cannot read both"
            )
        if own.stop > there.stop:
            return (
                f"{other.spec} has {own.stop - own.start:,} {kind} ids of '{meaning}', a model of"
                f" {task.spec} {there.stop - there.start:,}"
            )
    return None


def _read(task: Task, text: str) -> dict[str, Any]:
    """The sizes a text names, each a whole number; a shift is a word."""
    if len(text) > _LONGEST_TEXT:
        raise SpecError(
            f"'{text[:40]}...' has {len(text):,} letters; sizes take no more than 1,000"
        )
    if not text.strip():
        raise SpecError("no size is named; write one such as 'n=64', or several joined by commas")
    sizes = read_sizes(f"{task.name}:{text}", task.asked.usage)
    for name, value in sizes.items():
        if not isinstance(value, int) and name != "shift":
            raise SpecError(
                f"'{text[:60]}': {name} is '{str(value)[:40]}'; only sizes that are whole numbers,"
                " and the shift, can change"
            )
    return sizes


def _remedy(task: Task, sizes: Mapping[str, Any]) -> str:
    """What to change so that it can be read, where one size is enough."""
    for name in sizes:
        kept = {size: value for size, value in sizes.items() if size != name}
        if kept and name in task.sizes() and _reads(task, kept):
            return f"; leave {name} as it is ({name}={task.sizes()[name]})"
    for name, value in task.sizes().items():
        if type(value) is int and name not in sizes:
            for larger in sorted(set(sizes.values())):
                trained = _tried(task, {name: larger})
                if trained is not None and larger > value and _reads(trained, sizes):
                    return f"; train on {trained.spec} ({name}={larger}), which has the same ids"
    return ""


def _reads(task: Task, sizes: Mapping[str, Any]) -> bool:
    other = _tried(task, sizes)
    return other is not None and unreadable(other, task) is None


def _tried(task: Task, sizes: Mapping[str, Any]) -> Task | None:
    try:
        return task.with_sizes(dict(sizes))
    except SeparatrixError:
        return None
