"""Continuations that two prefixes answer differently."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix.core.errors import SizeError
from separatrix.tasks.base.task import Task, Tokens

_DRAWS = 64
"""Instances drawn per prompt token and answer: a continuation that one in length * answers hits
is missed with probability e^-64.
"""
_MOST_DRAWS = 1 << 15
_MOST_TOKENS = 1 << 22


def continuations(task: Task, rng: np.random.Generator, *, cut: int) -> Tokens:
    """Different endings (number, length - cut) of drawn instances, in a fixed order."""
    draws = max(
        1, min(_MOST_DRAWS, _MOST_TOKENS // task.length, _DRAWS * max(task.length, task.answers))
    )
    return np.unique(task.sample(draws, rng).tokens[:, cut:], axis=0)


def separating(
    task: Task, first: Tokens, second: Tokens, rng: np.random.Generator
) -> Iterator[tuple[Tokens, int, int]]:
    """Continuations after which two prefixes (cut,) have different right answers, with these
    answers; none if they may be equivalent.

    The endings of drawn instances are tried, in a drawn order; every one the oracle accepts after
    both prefixes.
    """
    # they come sorted: a drawn order favours no kind of ending
    endings = rng.permutation(continuations(task, rng, cut=len(first)))
    answers = []
    for prefix in (first, second):
        try:
            answers.append(task.answer(np.hstack([np.tile(prefix, (len(endings), 1)), endings])))
        # the oracle refuses some prompt, and with it the whole batch
        except SizeError:
            return
    for place in np.flatnonzero(answers[0] != answers[1]):
        yield endings[place], int(answers[0][place]), int(answers[1][place])
