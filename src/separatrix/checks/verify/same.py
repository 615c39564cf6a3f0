"""What every check asks of a record: canonical texts, and where two pieces of JSON differ."""

from __future__ import annotations

from typing import Any

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import canonical, json_list, json_object
from separatrix.core.evidence.records import Evidence
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task


def told_by(record: Evidence) -> tuple[Architecture, Task]:
    """Its architecture and its task. Raises EvidenceError where a text is not as we write it."""
    architecture, task = Architecture.parse(record.architecture), parse_task(record.task)
    for text, spec in ((record.architecture, architecture.spec), (record.task, task.spec)):
        if text != spec:
            raise EvidenceError(f"'{text[:200]}' is not in canonical form; the file was edited")
    return architecture, task


def difference(ours: Any, theirs: Any, where: str) -> str:
    """The first place where two pieces of JSON differ, in words."""
    mine = json_object(ours)
    other = json_object(theirs)
    if mine is not None and other is not None:
        odd = sorted(set(mine).symmetric_difference(other))
        if odd:
            there = "has no" if odd[0] in mine else "has an unknown"
            return f"{where} {there} field {odd[0][:60]!r}"
        for name, value in sorted(mine.items()):
            if canonical(value) != canonical(other[name]):
                return difference(value, other[name], f"{where}, {name[:60]}")
    entries = json_list(ours)
    others = json_list(theirs)
    if entries is not None and others is not None:
        if len(entries) != len(others):
            return f"{where} has {len(others)} entries instead of {len(entries)}"
        for number, (value, given) in enumerate(zip(entries, others, strict=True), 1):
            if canonical(value) != canonical(given):
                return difference(value, given, f"{where}, entry {number}")
    return f"{where} is {canonical(theirs)[:60]} instead of {canonical(ours)[:60]}"
