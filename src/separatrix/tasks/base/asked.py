"""Where a batch of prompts asks, and what is right there."""

from __future__ import annotations

from functools import lru_cache

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import NO_ANSWER, Task, Tokens

Asked = tuple[Tokens | None, Tokens]


_LOOKED_AT = 16
"""Prompts that tell how often a task asks: most ask equally often in each."""


@lru_cache(maxsize=1024)
def most_asked(task: Task) -> int:
    """In how many places of a prompt answers are due: the most among a few prompts."""
    if not task.several:
        return 1
    drawn = task.sample(_LOOKED_AT, np.random.default_rng(0))
    return int((drawn.targets != NO_ANSWER).sum(1).max())


def asked(task: Task, targets: Tokens) -> Asked:
    """Places (rows, k) where `targets` has answers, and these answers; no places where every
    prompt is asked after its last token. Rows with fewer answers than others are filled up with
    NO_ANSWER.
    """
    if not task.several:
        return None, targets[:, None]
    due = targets != NO_ANSWER
    most = int(due.sum(1).max())
    # the places that are due first, in their order
    places = np.argsort(~due, axis=1, kind="stable")[:, : max(1, most)]
    return places, np.take_along_axis(targets, places, 1)
