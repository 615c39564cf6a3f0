"""A task's questions for a language model, one after the other, as every export asks them: what
stands above them, solved ones first, and what counts as the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from separatrix.tasks import Task
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.replies import Shape, partly
from separatrix.tasks.exports.source import AS_THEY_ARE, Source, manner, source_of
from separatrix.tasks.text import TextTask

_SHORT_TOKENS = 32
"""Tokens a model may write for an answer alone, more than a number or a name takes; and for each
thing of an answer of several.
"""
_LEAST_TOKENS = 256
_TOKENS_A_WORD = 8
"""With steps: this many, or so many for every word, whichever is more."""

ANSWER_ENDS = ("\n\n",)
STEPS_END = ("Numbers:", "Input:", "Question:")


def description(source: Source[Any], *, steps: bool) -> str:
    """What stands above the first question: the definition of a task in numbers, and how to
    answer.
    """
    return f"{source.lead}{manner(source.task, steps=steps)}\n\n"


def most_written(source: Source[Any], *, steps: bool) -> int:
    """Tokens that an answer may take."""
    if steps:
        return max(_LEAST_TOKENS, source.words * _TOKENS_A_WORD)
    return _SHORT_TOKENS * (1 if source.shape.kind == "number" else source.shape.size)


class Question(NamedTuple):
    """What is asked, all above it included, and what is right."""

    prompt: str
    answer: str
    choices: tuple[str, ...]
    """The answers to choose from, where these are few; else empty, and the answer is written."""
    known: tuple[str, ...]
    """All names that can be part of an answer, where a question lists them."""


@dataclass(frozen=True)
class Asking:
    """Questions of one task, none twice, and how a reply is read."""

    shape: Shape
    most: int
    """Tokens a reply may take."""
    ends: tuple[str, ...]
    """What ends a reply that no end of text ends."""
    questions: tuple[Question, ...]
    instead: Mapping[str, str] = field(default_factory=dict)
    """Words of the task -> what is written instead."""

    def read(self, reply: str, question: Question) -> str:
        """What a reply answers, as questions write it; nothing where that is not clear."""
        meant = {word.lower(): meaning for meaning, word in self.instead.items()}
        plain = re.sub(r"[^\W\d_]+", lambda at: meant.get(at[0].lower(), at[0]), reply)
        found = partly(plain, self.shape, question.known) or ""
        return self.instead.get(found, found)


def asking(
    task: Task | TextTask,
    *,
    shots: int,
    number: int,
    seed: int,
    instead: Mapping[str, str] = AS_THEY_ARE,
) -> Asking:
    """`number` questions, each behind the same `shots` solved ones, with some words of a task of
    tokens written as others `instead`. Raises SizeError where there are not so many different ones,
    SpecError for thought=pairs.
    """
    source = source_of(task, instead)
    splits = {"train": shots, "test": number}
    job = Job(source, {name: rows for name, rows in splits.items() if rows}, seed)
    rows = {name: [row for part in parts for row in _rows(part)] for name, parts in job.drawn()}
    solved = "".join(f"{row['prompt']} {row['completion']}\n\n" for row in rows.get("train", []))
    above = description(source, steps=source.stepwise) + solved
    few = source.choices if isinstance(source.choices, list) else None
    questions = []
    for row in rows["test"]:
        known = tuple(row.get("choices") or ())
        chosen = tuple(few) if few else known if source.choices else ()
        choices = () if source.stepwise else chosen
        questions.append(Question(above + row["prompt"], row["answer"], choices, known))
    most = most_written(source, steps=source.stepwise)
    ends = STEPS_END if source.stepwise else ANSWER_ENDS
    return Asking(source.shape, most, ends, tuple(questions), instead)


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
