"""Guessing the answer from one number per prompt: the answer that stood most often beside it, or
the number itself, shifted.
"""

from __future__ import annotations

import numpy as np

from separatrix.tasks.audits.guess import Guess, Learner, best_of
from separatrix.tasks.base.task import Tokens


def constant(targets: Tokens, instances: int) -> Guess:
    """The most frequent answer, for every instance."""
    seen, often = np.unique(targets, return_counts=True)
    return Guess(
        np.full(instances, seen[often.argmax()]), np.full(instances, np.mean(targets == 1))
    )


def table(ids: Tokens, targets: Tokens, answers: int, asked: Tokens) -> Guess:
    """For every id its most frequent answer; for an id never seen the most frequent of all.

    The score is the share of answer 1 beside the id, drawn to the overall share as if that had been
    seen twice more.
    """
    known, rank, often = np.unique(ids, return_inverse=True, return_counts=True)
    cells, counts = np.unique(rank * answers + targets, return_counts=True)
    # of each id the most frequent answer comes last
    cells = cells[np.lexsort((counts, cells // answers))]
    best = (
        cells[np.searchsorted(cells // answers, np.arange(len(known)), side="right") - 1] % answers
    )
    overall = np.mean(targets == 1)
    usual = constant(targets, len(asked))
    share = (np.bincount(rank, weights=targets == 1) + 2 * overall) / (often + 2)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    met = known[at] == asked
    return Guess(np.where(met, best[at], usual.answers), np.where(met, share[at], usual.score))


def shifted(ids: Tokens, targets: Tokens, answers: int, asked: Tokens) -> Guess:
    """The id plus the most frequent difference between answer and id: what a table learns of a
    copied answer when ids are too many for it.
    """
    steps, often = np.unique(targets - ids, return_counts=True)
    guessed = asked + steps[often.argmax()]
    usual = constant(targets, len(asked))
    return Guess(
        np.where((guessed >= 0) & (guessed < answers), guessed, usual.answers), usual.score
    )


def best_column(fitted: Tokens, targets: Tokens, answers: int, tested: Tokens) -> Guess:
    """The best guess from a single column of (batch, columns), by a table or a shift."""

    def reader(column: int, guess: Learner[Tokens]) -> Learner[Tokens]:
        return lambda one, right, number, other: guess(
            one[:, column], right, number, other[:, column]
        )

    guesses = (table, shifted) if answers > 2 else (table,)
    return best_of(
        [reader(column, guess) for column in range(fitted.shape[1]) for guess in guesses],
        fitted,
        targets,
        answers,
        tested,
    )
