"""What every check asks of a record: canonical texts, and where two pieces of JSON differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from separatrix.core.errors import (
    CannotCheck,
    CheckFailed,
    EvidenceError,
    SeparatrixError,
    UnknownNameError,
)
from separatrix.core.evidence.canonical import canonical, json_list, json_object
from separatrix.core.evidence.records import Certificate, Construction, Evidence
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task


@contextmanager
def holding(what: str) -> Iterator[None]:
    """Says in an error what does not hold, or cannot be checked."""
    try:
        yield
    except CannotCheck:
        raise
    except SeparatrixError as error:
        if isinstance(error, UnknownNameError) and error.kind == "mechanism":
            raise CannotCheck(f"{what} cannot be checked: {error}") from None
        raise CheckFailed(f"{what} does not hold: {error}") from None


def told_by(record: Evidence) -> tuple[Architecture, Task]:
    """Its architecture and its task. Raises EvidenceError where a text is not as we write it, and
    where the model that a record describes is of another architecture: what it takes to build is
    estimated from the one that the record names.
    """
    architecture, task = Architecture.parse(record.architecture), parse_task(record.task)
    for text, spec in ((record.architecture, architecture.spec), (record.task, task.spec)):
        if text != spec:
            raise EvidenceError(f"'{text[:200]}' is not in canonical form; the file was edited")
    model = record.model if isinstance(record, Certificate | Construction) else {}
    inside = model.get("architecture")
    if isinstance(inside, str) and Architecture.parse(inside).spec != architecture.spec:
        raise EvidenceError(
            f"the model inside is '{inside[:200]}', but the record is about"
            f" '{record.architecture[:200]}'"
        )
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
