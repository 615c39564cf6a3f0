"""Guessing from all columns of numbers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks.audits.guess import Guess
from separatrix.tasks.base.task import Tokens

View = Callable[[Any, Tokens], Tokens]
"""(task, prompts (batch, length)) -> what is seen of them (batch, columns), from each prompt by
itself.
"""
_SQUARED = 256
"""Most columns whose squares are weighed as well."""


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
