"""The shortcuts of `separatrix.tasks.SHORTCUTS`, which look at what a task is made of: each takes a
task and prompts, and gives columns of numbers that a reader without the task's own algorithm has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Questions, Task
from separatrix.tasks.audits.learners import Guess, Learner, Prompts, best_column, best_of
from separatrix.tasks.audits.shortcuts.lookups import (
    bits,
    ends,
    expected_place,
    first_writes,
    modes,
    most_ways,
    near_misses,
    pointed,
    suffixes,
    walks,
)
from separatrix.tasks.audits.shortcuts.shapes import (
    compared,
    counters,
    cycles,
    grams,
    halves,
    larger_moduli,
    leaves,
    moduli,
    more_residues,
    pair_sums,
    parities,
    products,
    quarters,
    residues,
    sign_products,
)
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.text import TextTask

View = Callable[[Any, Tokens], Tokens]
"""(task, prompts (batch, length)) -> what is seen of them (batch, columns), from each prompt by
itself.
"""
_SQUARED = 256
"""Most columns whose squares are weighed as well."""
ONE_BY_ONE: dict[str, View] = {
    "bits": bits,
    "modes": modes,
    "first writes": first_writes,
    "pointed": pointed,
    "walks": walks,
    "near misses": near_misses,
    "ends": ends,
    "compared": compared,
    "expected place": expected_place,
    "suffixes": suffixes,
    "most ways": most_ways,
}
"""Columns of which each is a shortcut of its own: together they would be the task's solution."""
TOGETHER: dict[str, View] = {
    "counters": counters,
    "cycles": cycles,
    "halves": halves,
    "moduli": moduli,
    "larger moduli": larger_moduli,
    "quarters": quarters,
    "parities": parities,
    "pair sums": pair_sums,
    "residues": residues,
    "more residues": more_residues,
    "sign products": sign_products,
    "products": products,
    "leaves": leaves,
}
"""Columns of which each may tell something, and a regression may weigh all against each other."""
WEIGHED: dict[str, View] = {"grams": grams}
"""Columns too many to be looked at one by one: a regression alone."""


def shortcut(name: str, task: Task | TextTask) -> Learner[Prompts]:
    """A probe that guesses from what a shortcut sees of the prompts of a task."""
    view = (ONE_BY_ONE | TOGETHER | WEIGHED)[name]

    def seen(prompts: Prompts) -> Tokens:
        if isinstance(task, Questions):
            return view(task.task, task.alone(prompts.front, prompts.back))
        return view(task, prompts.front)

    learners = [best_column] * (name not in WEIGHED) + [regressed] * (name not in ONE_BY_ONE)

    def guess(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
        return best_of(learners, seen(fitted), targets, answers, seen(tested))

    return guess


def regressed(fitted: Tokens, targets: Tokens, answers: int, tested: Tokens) -> Guess:
    """Logistic regression on the columns and, of few, their squares, each in units of its own
    spread.
    """
    from separatrix.tasks.audits.logistic import regression

    held = fitted.std(axis=0) > 0
    centre, spread = fitted[:, held].mean(axis=0), fitted[:, held].std(axis=0)

    def features(columns: Tokens) -> NDArray[np.float64]:
        scaled = (columns[:, held] - centre) / spread
        return np.concatenate((scaled, scaled**2), axis=1) if len(held) <= _SQUARED else scaled

    return regression(features(fitted), targets, answers, features(tested))
