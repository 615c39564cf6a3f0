"""Runs the weights of a trained model again on its test prompts, and compares what they answer with
what was recorded.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import margin, prompt_stream, tally
from separatrix.tasks import Task


class Told(NamedTuple):
    """What is said of one test of a model."""

    task: Task
    number: int
    """0 of the task itself, else the place of the longer size."""
    correct: int
    """Prompts right as a whole."""
    right: int | None = None
    """Answers right; None where an earlier version counted prompts alone."""
    due: int | None = None
    bits: float | None = None
    """Mean of -log2 p of the right answers."""
    format: str = ""
    """What states were rounded to; "" where they were not."""


def run_again(model: Model, told: Told, seed: int, total: int) -> list[str]:
    """Sentences on the right answers of the weights, counted once more. Raises CheckFailed for
    other numbers than those said, unless rounding explains them.
    """
    found = tally(model, told.task, total, prompt_stream(seed, told.number), rounded=told.format)
    size = f" of {told.task.spec}" if told.number else ""
    size += f" with states in {told.format}" if told.format else ""
    prompts = f"the {total:,} test prompts of seed {seed}{size}"
    said = [_compared(found.correct, told.correct, found.close, prompts, told.format)]
    if told.right is not None and told.due is not None:
        if found.due != told.due:
            raise CheckFailed(
                f"in {prompts} {found.due:,} answers are due, and not {told.due:,} as recorded"
            )
        answers = f"the {told.due:,} answers due in {prompts}"
        same = _compared(found.right, told.right, found.close_answers, answers, told.format)
        # where one answer is due in each prompt, it says the same twice
        said += [same] if told.task.several else []
    # a lead that changes by so much changes -log p by no more
    apart = margin(told.format) / log(2)
    if told.bits is not None and abs(found.bits - told.bits) > apart:
        raise CheckFailed(
            f"in {prompts} the weights leave {found.bits:.6f} bits for each answer, and not"
            f" {told.bits:.6f} as recorded"
        )
    return said


def _compared(found: int, told: int, close: int, of: str, rounded: str) -> str:
    if found == told:
        return f"the weights run again: {told:,} of {of} answered right, exactly as recorded"
    # on another machine sums are rounded otherwise
    if abs(found - told) <= close:
        return (
            f"the weights run again: {found:,} of {of} answered right, {told:,} as recorded;"
            f" rounding explains it: on {close:,} of them the two best answers lie within"
            f" {margin(rounded):g} of each other"
        )
    raise CheckFailed(f"the weights answer {found:,} of {of} right, and not {told:,} as recorded")
