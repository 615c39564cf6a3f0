"""Guesses: the result of a probe, and how the best of several ways to guess is picked without a
look at the instances that judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks.audits.prompts import Prompts
from separatrix.tasks.base.task import Tokens


class Guess(NamedTuple):
    """`answers` (batch,), and for tasks answered yes or no the `score` (batch,): how likely 1
    is.
    """

    answers: Tokens
    score: NDArray[np.float64]

    def right(self, targets: Tokens) -> int:
        return int((self.answers == targets).sum())

    def correlation(self, targets: Tokens) -> float:
        """Of the score with the answer; 0 where either is constant."""
        if np.ptp(self.score) == 0 or np.ptp(targets) == 0:
            return 0.0
        return float(np.corrcoef(self.score, targets)[0, 1])


Seen = TypeVar("Seen", Prompts, Tokens)
Learner = Callable[[Seen, Tokens, int, Seen], Guess]
"""(what is seen of the instances to fit to, their answers, number of answers, what is seen of
those to judge by) -> a guess for the latter.
"""


def best_of(
    learners: Sequence[Learner[Seen]], fitted: Seen, targets: Tokens, answers: int, tested: Seen
) -> Guess:
    """The guess of the learner that does best on the fitting half, each half of which is judged by
    a fit to the other.

    Best is the most right answers, or for two answers the strongest correlation, which tells more.
    """
    if len(learners) == 1:
        return learners[0](fitted, targets, answers, tested)
    one = slice(len(targets) // 2)
    other = slice(len(targets) // 2, None)

    def merit(learner: Learner[Seen]) -> float:
        guesses = [
            (learner(fitted[a], targets[a], answers, fitted[b]), targets[b])
            for a, b in ((one, other), (other, one))
        ]
        return sum(
            guess.correlation(right) if answers == 2 else guess.right(right)
            for guess, right in guesses
        )

    return max(learners, key=merit)(fitted, targets, answers, tested)
