"""A task at other sizes, ids and answers kept: curricula, longer prompts; repeated prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError, SpecError
from separatrix.tasks.base.described import read_sizes
from separatrix.tasks.base.task import PLAIN, Task
from separatrix.tasks.questions.base import Questions

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
    other = task.with_sizes(_read(task, text))
    own = task.sizes()
    new = other.sizes()
    if "shift" in own:
        # sizes leave the plain draw out
        new.setdefault("shift", PLAIN)
    changed = {name: value for name, value in new.items() if own.get(name) != value}
    if not changed:
        raise SizeError(f"'{text[:60]}' leaves {task.spec} as it is; name a size that differs")
    if trouble := unreadable(other, task):
        raise SizeError(f"'{text[:60]}': {trouble}")
    return Resized(other, ",".join(f"{name}={value}" for name, value in changed.items()))


def unreadable(other: Task, task: Task) -> str | None:
    """Why a model made for `task` cannot read `other` with the same meanings; None where it can."""
    for kind, ids, known in (
        ("token", other.token_ids, task.token_ids),
        ("answer", other.answer_ids, task.answer_ids),
    ):
        for meaning, own in ids.items():
            there = known.get(meaning, range(0))
            if own and (not there or own.start != there.start or own.stop > there.stop):
                return (
                    f"the {kind} ids of '{meaning}' are {_told(own)} in {other.spec}, but"
                    f" {_told(there)} in {task.spec}: one model cannot read both"
                )
    return None


def _told(ids: range) -> str:
    return f"{ids.start:,} to {ids.stop - 1:,}" if ids else "none"


def _read(task: Task, text: str) -> dict[str, Any]:
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


MOST_TEXTS = 64
"""Stages of a curriculum, and longer sizes, at most."""
_STAGE = re.compile(r"(?P<sizes>[^@]*)@\s*(?P<step>[0-9]{1,12})\s*")


class Stage(NamedTuple):
    """A task that is trained until a step."""

    task: Task
    until: int
    text: str
    """The stage in canonical words."""


def read_stages(task: Task, texts: Sequence[str]) -> tuple[Stage, ...]:
    """Stages such as "n=4@100", in order. Raises SpecError, SizeError for steps, as `resized`."""
    _few("curriculum", texts)
    found: list[Stage] = []
    for text in texts:
        match = _STAGE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"curriculum: '{text[:60]}' is no stage; write sizes and the step until which they"
                " are trained, such as 'n=4@100'"
            )
        until = int(match["step"])
        if until < 1 or (found and until <= found[-1].until):
            raise SizeError(
                f"curriculum: '{text[:60]}' ends at step {until}; the steps of stages begin at 1"
                " and grow"
            )
        stood, sizes = resized(task, match["sizes"])
        found.append(Stage(stood, until, f"{sizes}@{until}"))
    return tuple(found)


def read_longer(task: Task, texts: Sequence[str], trained: int) -> tuple[Resized, ...]:
    """The tasks of sizes such as "n=64", whose prompts are longer than the `trained` tokens that
    training shows, or drawn otherwise: "shift=zipf", or of equal length and asked otherwise:
    "queries=8" for the last places alone. Raises SizeError where they are none of these or one
    stands there twice, and what `resized` raises.
    """
    _few("longer", texts)
    found: list[Resized] = []
    for text in texts:
        other = resized(task, text)
        drawn_alike = other.task.sizes().get("shift") == task.sizes().get("shift")
        asked_alike = _asked(other.task) == _asked(task) or other.task.length < trained
        if other.task.length <= trained and drawn_alike and asked_alike:
            raise SizeError(
                f"longer: '{text[:60]}' makes prompts of {other.task.length:,} tokens, but training"
                f" shows {trained:,}; take larger sizes, another shift, or other"
                " queries of as long a prompt"
            )
        if other in found:
            raise SizeError(f"longer: '{text[:60]}' stands there twice; leave one of them out")
        found.append(other)
    return tuple(found)


def _asked(task: Task) -> dict[str, object]:
    own = task.own if isinstance(task, Questions) else ()
    return {name: value for name, value in task.sizes().items() if name in own}


def _few(name: str, texts: Sequence[str]) -> None:
    if len(texts) > MOST_TEXTS:
        raise SizeError(f"{name}: {len(texts):,} sizes; at most {MOST_TEXTS} are taken")


MOST_DRAWN = 1 << 80
"""More prompts than this are drawn by nobody."""


def repeats(task: Task, drawn: int) -> str:
    """A sentence, where of the prompts drawn after `drawn` others at least half are among those, on
    average; else nothing.

    Of P prompts with probabilities p_i, the next one is new with the probability sum p_i (1 -
    p_i)^N. Each term is at most that of p = 1/(N + 1), which is at most 1/(2 (N + 1)) for N >= 1:
    together at most P/(2 (N + 1)), however prompts are drawn.
    """
    count = task.prompts()
    if drawn < 1 or drawn > MOST_DRAWN or count.exceeds_bits(drawn.bit_length() + 1):
        return ""
    prompts = count.exact()
    known = 1 - Fraction(prompts, 2 * (drawn + 1))
    if known < Fraction(1, 2):
        return ""
    tenths = int(known * 1000)
    return (
        f"{task.spec} has at most {prompts:,} prompts, and training drew {drawn:,} times: on"
        f" average at least {tenths // 10}.{tenths % 10} % of the test prompts had been trained on"
    )
