"""Tasks: what a prompt asks, the oracle that answers it, and how many prefixes are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.tasks.base.described import name_of, read_sizes, without_preset
from separatrix.tasks.base.layout import Family as Family
from separatrix.tasks.base.task import NO_ANSWER as NO_ANSWER
from separatrix.tasks.base.task import PLAIN as PLAIN
from separatrix.tasks.base.task import Batch as Batch
from separatrix.tasks.base.task import Composition as Composition
from separatrix.tasks.base.task import Task as Task
from separatrix.tasks.chain_of_thought import Thought as Thought
from separatrix.tasks.questions import QUESTIONS
from separatrix.tasks.questions import Questions as Questions

if TYPE_CHECKING:
    from separatrix.tasks.text.base import TextTask

# A task is one file and one of these lines; their order is that of all lists of tasks.
# isort: off
from separatrix.tasks.lookups import Eva as Eva
from separatrix.tasks.lookups import Index as Index
from separatrix.tasks.recall import Recall as Recall
from separatrix.tasks.mqar import MQAR as MQAR
from separatrix.tasks.recall import NoisyRecall as NoisyRecall
from separatrix.tasks.fuzzy_recall import FuzzyRecall as FuzzyRecall
from separatrix.tasks.copying import Copying as Copying
from separatrix.tasks.copying import SelectiveCopying as SelectiveCopying
from separatrix.tasks.cgram import CGram as CGram
from separatrix.tasks.seqcomp import SeqComp as SeqComp
from separatrix.tasks.seqcomp import SeqCompForward as SeqCompForward
from separatrix.tasks.khop import KHop as KHop
from separatrix.tasks.state_recall import StateRecall as StateRecall
from separatrix.tasks.sums import TwoSum as TwoSum
from separatrix.tasks.sums import ThreeSum as ThreeSum
from separatrix.tasks.counting import Counting as Counting
from separatrix.tasks.tracking import Parity as Parity
from separatrix.tasks.tracking import Modular as Modular
from separatrix.tasks.counting import Majority as Majority
from separatrix.tasks.strings import Equality as Equality
from separatrix.tasks.strings import Disjointness as Disjointness
from separatrix.tasks.dyck import Dyck as Dyck
from separatrix.tasks.tracking import Permutation as Permutation
from separatrix.tasks.tracking import Group as Group
from separatrix.tasks.istree import IsTree as IsTree
from separatrix.tasks.qsa import QSA as QSA
from separatrix.tasks.neighbour import Neighbour as Neighbour
# isort: on

TASKS: dict[str, type[Task]] = {
    kind.name: kind
    for kind in list(globals().values())
    # only tasks that are asked for by name have a grid: neither Task itself nor Thought
    if isinstance(kind, type) and issubclass(kind, Task) and kind.grid
}
"""Name -> class, in the order of the lines above."""
PROBES = ("constant", "counts", "position", "last tokens", "nearest key")
"""What a shortcut to any task may look at. `separatrix.tasks.audits` has the probes, and what
shortcuts to single tasks look at; `Task.level` says what each may reach.
"""
AUDITED = 3
"""Sizes of a grid that are audited unless told otherwise."""


def sizes_of(text: str) -> dict[str, Any]:
    """The sizes that the text of a task names, those of its preset among them. Raises SpecError or
    SizeError for what is no size.
    """
    name = name_of(text)
    return read_sizes(without_preset(text, TASKS[name].grid), usage(name))


def task_of(task: str | Task) -> Task:
    """What a text or an object names. Raises SpecError for anything else."""
    if isinstance(task, str):
        return parse_task(task)
    if not isinstance(task, Task):
        raise SpecError(f"{task!r:.60} names no task; write one such as 'eva:n=64'")
    return task


def parse_task(text: str) -> Task:
    """The task a text describes, such as "eva:n=64,V=64", "seqcomp:L=2,m=8,n_1=4" or
    "twosum:n=32,M=64,form=query"; "recall:easy", ":medium" and ":hard" are sizes of its grid.

    "queries=all" or "queries=8" on the tasks of `QUESTIONS` asks several questions in one prompt;
    "thought=values" on a composition task asks for the whole chain of values, one after the other,
    "thought=pairs" on seqcomp for each with w. Raises UnknownNameError, SpecError or SizeError;
    `parse_task(task.spec) == task`.
    """
    name = name_of(text)
    if not name:
        raise SpecError(
            "the task is empty; write a task such as 'eva:n=64' or 'seqcomp:L=2,n=64' (`separatrix"
            " list tasks` lists all)"
        )
    if name not in TASKS:
        from separatrix.tasks.text import TEXT_TASKS

        if name in TEXT_TASKS:
            raise SpecError(
                f"'{name}' is a task in words: `task NAME` (sample, export, audit) takes it,"
                " and separatrix.tasks.text in Python"
            )
        raise UnknownNameError.of("task", name, TASKS, listing="separatrix list tasks")
    sizes = sizes_of(text)
    thought = sizes.pop("thought", PLAIN)
    several = QUESTIONS.get(name)
    own = {size: sizes.pop(size) for size in (several.own if several else ()) if size in sizes}
    task = TASKS[name].from_sizes(sizes)
    if several and own:
        if thought != PLAIN:
            raise SpecError(
                f"{name}: a chain of thought is written behind one question; leave"
                f" thought={thought} out, or {' and '.join(own)}"
            )
        return several.of(task, own)
    return task if thought == PLAIN else Thought(task=task, form=thought)


def parse_any_task(text: str) -> Task | TextTask:
    """The task of a text, of tokens or of words. Raises as `parse_task` does."""
    from separatrix.tasks.text import TEXT_TASKS, parse_text_task

    name = name_of(text)
    if name in TEXT_TASKS:
        return parse_text_task(text)
    if name and name not in TASKS:
        raise UnknownNameError.of("task", name, TASKS | TEXT_TASKS, listing="separatrix list tasks")
    return parse_task(text)


def any_task_of(task: str | Task | TextTask) -> Task | TextTask:
    """What `task_of` finds, in words too, and whatever draws instances. Raises as it does."""
    found: Any = parse_any_task(task) if isinstance(task, str) else task
    return found if hasattr(found, "sample") else task_of(found)


def usage(name: str) -> str:
    """The sizes that a text of the task of a name may give."""
    several = QUESTIONS.get(name)
    return TASKS[name].usage + (f"; {several.own_usage}" if several else "")
