"""Selective copying: where values stand when they come early."""

from __future__ import annotations

import numpy as np

from separatrix.tasks import SelectiveCopying


def places(task: SelectiveCopying) -> list[int]:
    """Those among the first T at which a value stands in some prompt."""
    tokens, targets = task.sample(400, np.random.default_rng(0))
    assert task.answer(tokens).tolist() == targets.tolist()
    return np.flatnonzero((tokens[:, : task.T] < task.V).any(0)).tolist()


def test_early_values_stand_anywhere_in_the_first_half() -> None:
    """Each place has a value in a prompt with probability 1/5, so that 400 prompts miss none."""
    assert places(SelectiveCopying(n=2, T=20, V=3, shift="early")) == [*range(10)]


def test_more_values_than_half_of_the_places() -> None:
    """They take as many places as they need, and no more."""
    assert places(SelectiveCopying(n=4, T=6, V=3, shift="early")) == [*range(4)]
