"""Audits by text: a task's name stands for the first sizes of its grid."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.tasks import AUDITED, PROBES, TASKS, parse_any_task
from separatrix.tasks.audits.run import LEAST, MOST_ANSWERS, subject_of, tried
from separatrix.tasks.base.sizes import name_of
from separatrix.tasks.text import TEXT_TASKS


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


MOST_LOOKED_AT = 1 << 20
"""Tokens of the prompts that accuracies are measured on; of long prompts there are fewer."""
LONGEST = 4096
"""Longest prompts that they are measured on."""


def accuracies(
    text: str, *, seed: int = 0, rules: Collection[str] | None = None
) -> tuple[int, dict[str, float]]:
    """On how many instances, and how often, every probe or those of `rules` are right on the task
    of a text, fitted to as many others: 4,000, but fewer of long prompts. None are tried where
    prompts are too long and answers too many to audit.

    Raises as `parse_any_task` does.
    """
    subject = subject_of(parse_any_task(text))
    names = [name for name in (*PROBES, *subject.shortcuts) if rules is None or name in rules]
    if subject.length > LONGEST or subject.answers > MOST_ANSWERS or not names:
        return 0, {}
    number = max(LEAST, min(4000, MOST_LOOKED_AT // subject.length))
    found = tried(names, subject, np.random.default_rng((seed, 0)), number, number)
    return number, {name: row.accuracy for name, row in found.items()}
