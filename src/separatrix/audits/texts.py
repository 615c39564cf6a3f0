"""Audits by text: a task's name stands for the first sizes of its grid."""

from __future__ import annotations

from separatrix.audits.run import ANSWERS, audit
from separatrix.errors import SizeError, UnknownNameError
from separatrix.tasks import AUDITED, TASKS
from separatrix.tasks.base.sizes import name_of
from separatrix.tasks.text import TEXT_TASKS, parse_any_task


def audit_texts(name_or_text: str, *, sizes: int = AUDITED) -> tuple[str, ...]:
    """Task texts to audit: of a bare name the first `sizes` of its grid, a text with sizes by
    itself. Raises UnknownNameError, SizeError.
    """
    name = name_of(name_or_text)
    every = TASKS | TEXT_TASKS
    if name not in every:
        raise UnknownNameError.of("task", name, every, listing="separatrix tasks")
    if type(sizes) is not int or sizes < 1:
        raise SizeError(f"audit: sizes is {sizes!r}; it must be an integer of at least 1")
    if ":" in name_or_text:
        return (name_or_text.strip(),)
    return tuple(f"{name}:{text}" for text in every[name].grid[:sizes])


def accuracies(text: str, *, seed: int = 0) -> dict[str, float]:
    """Accuracy of every probe on the task of a text, on instances it was not fitted to; raises
    as `audit` and `parse_task` do.
    """
    found = audit(parse_any_task(text), seed=seed)
    return {row.probe: row.accuracy for row in found.rows if row.probe != ANSWERS}
