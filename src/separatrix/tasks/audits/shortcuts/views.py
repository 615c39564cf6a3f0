"""What shortcuts see, as columns of numbers, and how an answer is guessed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.core.numbers.lazy import Floats, np
from separatrix.tasks import Questions, Task
from separatrix.tasks.audits.probes import (
    Guess,
    Learner,
    Prompts,
    best_column,
    best_of,
    regression,
    words_of,
)
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.text import TextTask

View = Callable[[Any, Tokens], Tokens]
"""(task, prompts (batch, length)) -> what is seen of them (batch, columns), from each prompt by
itself.
"""
VIEWS: dict[str, tuple[View, tuple[Learner[Tokens], ...]]] = {}
"""Shortcut, as `Task.shortcuts` spells it -> what it sees, and how that is read."""
SHORTCUTS: dict[str, str] = {}
"""What shortcuts to single tasks look at: spelling -> in words, those of the view."""
_SQUARED = 256
"""Most columns whose squares are weighed as well."""


def regressed(fitted: Tokens, targets: Tokens, answers: int, tested: Tokens) -> Guess:
    """Logistic regression on the columns and, of few, their squares, in units of their spread."""
    held = fitted.std(axis=0) > 0
    centre, spread = fitted[:, held].mean(axis=0), fitted[:, held].std(axis=0)

    def features(columns: Tokens) -> Floats:
        scaled = (columns[:, held] - centre) / spread
        return np.concatenate((scaled, scaled**2), axis=1) if len(held) <= _SQUARED else scaled

    return regression(features(fitted), targets, answers, features(tested))


def _read_by(*learners: Learner[Tokens]) -> Callable[[View], View]:
    def registered(view: View) -> View:
        name = view.__name__.replace("_", " ")
        VIEWS[name], SHORTCUTS[name] = (view, learners), words_of(view)
        return view

    return registered


one_by_one = _read_by(best_column)
"""Each column is a shortcut of its own: together they would be the task's solution."""
together = _read_by(best_column, regressed)
"""Each column may tell something, and a regression may weigh all against each other."""


def shortcut(name: str, task: Task | TextTask) -> Learner[Prompts]:
    """A probe that guesses from what a shortcut sees of the prompts of a task."""
    view, learners = VIEWS[name]

    def seen(prompts: Prompts) -> Tokens:
        if isinstance(task, Questions):
            return view(task.task, task.alone(prompts.front, prompts.back))
        return view(task, prompts.front)

    def guess(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
        return best_of(learners, seen(fitted), targets, answers, seen(tested))

    return guess
