"""How far a measured number lies above what it should be, in standard errors of a normal
distribution.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt
from statistics import NormalDist

import numpy as np

from separatrix.tasks.base.task import Tokens

BOUND = 3.0
"""Standard errors above its level from which a probe is suspected."""
_NORMAL = NormalDist()
_FARTHEST = 8.0
"""Beyond it tails of the normal distribution are lost in rounding."""


def standard_error(level: Fraction, instances: int) -> float:
    """Of the share of right answers among `instances`, each right with probability `level`."""
    return sqrt(float(level * (1 - level)) / instances)


def above(right: int, instances: int, level: Fraction) -> float:
    """Standard errors by which `right` of `instances` lies above `level`."""
    error = standard_error(level, instances)
    excess = float(Fraction(right, instances) - level)
    if error:
        return excess / error
    # a level of 0 or 1 leaves nothing to luck
    return 0.0 if excess <= 0 else inf


def uneven(targets: Tokens, answers: int) -> float:
    """Pearson's chi-square of the answers against the uniform distribution, as the normal
    deviate of Wilson and Hilferty (1931).
    """
    seen = np.bincount(targets, minlength=answers)
    expected = len(targets) / answers
    per_degree = float(((seen - expected) ** 2).sum() / expected) / (answers - 1)
    spread = 2 / (9 * (answers - 1))
    return (per_degree ** (1 / 3) - (1 - spread)) / sqrt(spread)


def largest_above(targets: Tokens, answers: int, level: Fraction) -> float:
    """Standard errors by which the most frequent answer lies above `level`, as rare by luck
    among `answers` of them (Šidák) as that many by itself.
    """
    z = above(int(np.bincount(targets).max()), len(targets), level)
    if not -_FARTHEST < z < _FARTHEST:
        return z
    none = _NORMAL.cdf(z) ** answers
    return -_FARTHEST if none == 0 else z if none == 1 else _NORMAL.inv_cdf(none)
