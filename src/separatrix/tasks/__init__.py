"""Tasks: what a prompt asks, the oracle that answers it, and how many prefixes must be told apart."""

from __future__ import annotations

import re
from typing import Any

from separatrix.errors import SizeError, SpecError, UnknownNameError
from separatrix.tasks._base import Batch, Task
from separatrix.tasks.dyck import Dyck
from separatrix.tasks.equality import Equality
from separatrix.tasks.eva import Eva
from separatrix.tasks.seqcomp import SeqComp
from separatrix.tasks.twosum import TwoSum

__all__ = ["TASKS", "Batch", "Dyck", "Equality", "Eva", "SeqComp", "Task", "TwoSum", "parse_task"]

TASKS: dict[str, type[Task]] = {task.name: task for task in (Eva, SeqComp, TwoSum, Equality, Dyck)}
_MOST_DIGITS = 128


def parse_task(text: str) -> Task:
    """The task a text describes, such as "eva:n=64,V=64", "seqcomp:L=2,m=8,n_1=4" or "twosum:n=32,M=64,form=query".

    Raises UnknownNameError, SpecError or SizeError; `parse_task(task.spec) == task`.
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not name:
        raise SpecError("the task is empty; write a task such as 'eva:n=64' or 'seqcomp:L=2,n=64' (`separatrix tasks` lists all)")
    if name not in TASKS:
        raise UnknownNameError.of("task", name, TASKS, listing="separatrix tasks")
    sizes: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise SpecError(f"expected size=value, found '{part.strip()}' in the task '{text}'; sizes are {TASKS[name].usage}")
        if key in sizes:
            raise SpecError(f"size '{key}' is given twice in the task '{text}'")
        sizes[key] = _value(key, value, text)
    return TASKS[name].from_sizes(sizes)


def _value(key: str, value: str, text: str) -> int | str:
    if not re.fullmatch(r"[-+]?[0-9]+(_[0-9]+)*", value):
        return value
    if len(value) > _MOST_DIGITS:
        raise SizeError(f"{key}={value[:12]}... in the task '{text[:40]}...' is too large; no size goes beyond 10^100")
    return int(value)
