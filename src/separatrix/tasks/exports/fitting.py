"""A task at the largest size whose questions fit so many tokens of a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from separatrix.core.errors import MissingExtraError, SizeError, SpecError
from separatrix.core.numbers.first_size import first_size
from separatrix.tasks import PLAIN, Task
from separatrix.tasks.exports.asking import description, most_written
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.source import source_of
from separatrix.tasks.text import TextTask

Counter = Callable[[str], int]
"""How many tokens a text takes, with what a tokenizer puts around one."""
_LOOKED_AT = 4
"""Questions that tell about how long those of a size are."""
_LARGEST = 1 << 24


def counter(name: str) -> Counter:
    """Of the tokenizer in a folder, or of that name. Raises MissingExtraError without transformers,
    SpecError for what it does not load without code of others.
    """
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
    """Tokens of the longest question that an export of these rows asks, with what stands above it,
    without solved ones, and with room for the answer; or of the first that takes more than `most`.
    """
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
