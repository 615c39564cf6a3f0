"""A task's questions for a language model, and a task whose questions fit so many tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from separatrix.core.errors import MissingExtraError, SizeError, SpecError
from separatrix.core.numbers.first_size import first_size
from separatrix.tasks import PLAIN, Task, Thought
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


def description(source: Source, *, steps: bool) -> str:
    """What stands above the first question: the definition of tokens, and how to answer."""
    return f"{source.lead}{manner(source.task, steps=steps)}\n\n"


def most_written(source: Source, *, steps: bool) -> int:
    """Tokens that an answer may take."""
    if steps:
        return max(_LEAST_TOKENS, source.words * _TOKENS_A_WORD)
    return _SHORT_TOKENS * (1 if source.shape.kind == "number" else source.shape.size)


def refuse_pairs(task: Task | TextTask) -> None:
    """Raises SpecError for pairs of a chain of thought, which are written as its values."""
    if isinstance(task, Thought) and task.form == "pairs":
        values = replace(task, form="values").spec
        raise SpecError(
            f"{task.spec}: asked in words it is the same as thought=values; take {values}"
        )


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
    refuse_pairs(task)
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


Counter = Callable[[str], int]
"""How many tokens a text takes, with what a tokenizer puts around one."""
_LOOKED_AT = 4
"""Questions that tell about how long those of a size are."""
_LARGEST = 1 << 24


def counter(name: str) -> Counter:
    """Of the tokenizer in a folder or of a name. Raises MissingExtraError, SpecError."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtraError.of("counting the tokens of a tokenizer", "hf") from None
    try:
        loaded: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SpecError(f"the tokenizer {name[:200]} is not loaded: {first[:300]}") from None
    return lambda text: len(loaded(text, verbose=False)["input_ids"])


def longest(
    task: Task | TextTask,
    rows: Mapping[str, int],
    seed: int,
    count: Counter,
    most: int | None = None,
) -> int:
    """Tokens of an export's longest question and answer, or of the first beyond `most`."""
    source = source_of(task)
    job = Job(source, {name: some for name, some in rows.items() if some}, seed)
    above = description(source, steps=source.stepwise)
    room = most_written(source, steps=source.stepwise)
    found = 0
    parts = (part for _, drawn in job.drawn() for part in drawn)
    for prompt in (prompt for part in parts for prompt in part["prompt"]):
        found = max(found, count(above + prompt) + room)
        if most is not None and found > most:
            break
    return found


def fitted(
    task: Task | TextTask, tokens: int, rows: Mapping[str, int], seed: int, count: Counter
) -> tuple[Task | TextTask, int]:
    """The task at the largest size of which no question of an export takes more than so many
    tokens, and how many the longest takes. Raises SizeError where none is as small.

    Sizes are looked for by a few questions, then all are counted.
    """
    at, own, least = _sizes(task)
    known: dict[str, int] = {}

    def all_of(n: int) -> int:
        member = at(n)
        # several n may stand for one size
        if member.spec not in known:
            known[member.spec] = longest(member, rows, seed, count, tokens)
        return known[member.spec]

    def too_large(n: int) -> bool:
        try:
            return longest(at(n), {"test": _LOOKED_AT}, seed, count, tokens) > tokens
        except SizeError:
            # too small for the sampler, or too large for the task
            return n > own

    beyond = first_size(too_large, least, limit=_LARGEST, near=own)
    n = _LARGEST if beyond is None else beyond - 1
    why = ""
    while n >= least and not why:
        try:
            taken = all_of(n)
        except SizeError as error:
            why = f" ({error})"
            continue
        if taken <= tokens:
            # a few questions may have found the next size too large
            with suppress(SizeError):
                while n < _LARGEST and (more := all_of(n + 1)) <= tokens:
                    n, taken = n + 1, more
            return at(n), taken
        n -= max(1, n * (taken - tokens) // taken)
    raise SizeError(
        f"{task.spec}: a question and its answer take more than {tokens:,} tokens at every size"
        f"{why}; allow more (--tokens), or choose other sizes"
    )


def _sizes(task: Task | TextTask) -> tuple[Callable[[int], Task | TextTask], int, int]:
    """(the task at a size, the size that it has, the least one); a shift stays."""
    if not isinstance(task, Task):
        kind = type(task)
        sizes = task.sizes()
        return (lambda n: kind.from_sizes(sizes | {kind.grows: n})), sizes[kind.grows], 1
    family = task.family()
    shift = getattr(task.asked, "shift", PLAIN)

    def at(n: int) -> Task:
        member = family.at(n)
        return member if shift == PLAIN else member.with_sizes({"shift": shift})

    return at, task.sizes()[family.grows], family.smallest
