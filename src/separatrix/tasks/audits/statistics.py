"""How far a measured number lies above what it should be, in standard errors of a normal
distribution; and the power of an audit: the smallest leak that it finds nine times of ten.

Of one place, that is: in which of many places the leak stands must be learnt as well, and the
places that tell nothing are told from it by chance. Of a gain over 64 values that is found in 0.9
of the audits where the place is known, the probe "position" found 88 of 100 among 3 places, 73 of
100 among 11 and 44 of 74 among 63 (4,000 + 4,000 instances, two answers); over 512 values 55 of 60
among 3. Of eight answers, among 3 places, 49 of 60 over 64 values and 51 of 60 over 512.
`benchmarks/audits.py` measures it.

The leak is told by a token of m equally frequent values, each of which favours an answer. Of k
equally likely answers, the favoured one has probability 1/k + d, and d is the gain in accuracy of
whoever knows which value favours what. A probe must learn that from the f instances that it is
fitted to, and is suspected where it lies `BOUND` standard errors above its level on the t others.
So its z must be BOUND + 1.28 times its spread on average, 1.28 being the ninth decile of a normal
number. What is found once in so many instances is found again in four times as many, so that the
second drawing costs nothing worth counting.

Two answers: the share of answer 1 beside a value is 1/2 + d or 1/2 - d, measured with variance
1/(4 f/m). So the score has correlation 2d / sqrt(1 + m / (4 d^2 f)) with the answer, and its z is
that times sqrt(t), with spread 1.

k > 2 answers: of f/m instances of a value the favoured answer has (1/k + d) f/m on average, any
other (1/k - d/(k-1)) f/m, all about Poisson. The favoured one is the most frequent, ties broken
fairly, with probability P. The gain is d P - d (1 - P)/(k - 1), and z is that over
s = sqrt((1/k)(1 - 1/k)/t). Its spread over s: of an accuracy a on t instances, and of how many
of the m values are learnt, sqrt(a (1 - a)/t + (d + d/(k-1))^2 P (1 - P)/m).
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

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


_NINTH = NormalDist().inv_cdf(0.9)
SPREADS = (1, 64, 512)
"""Values over which the leaks are spread whose sizes an audit states."""
_HALVINGS = 40
_TINY = 1e-12


def smallest_leak(answers: int, fitted: int, tested: int, values: int) -> float:
    """The smallest gain d that is found nine times of ten; 1 - 1/k where none is."""
    low, high = 0.0, 1 - 1 / answers
    for _ in range(_HALVINGS):
        gain = (low + high) / 2
        z, spread = expected(gain, answers, fitted, tested, values)
        if z - _NINTH * spread < BOUND:
            low = gain
        else:
            high = gain
    return high


def expected(
    gain: float, answers: int, fitted: int, tested: int, values: int
) -> tuple[float, float]:
    """The mean of a probe's z for a leak of this gain, and its spread, as derived above."""
    if answers == 2:
        return 2 * gain / sqrt(1 + values / (4 * gain**2 * fitted)) * sqrt(tested), 1.0
    chance = 1 / answers
    seen = fitted / values
    other = gain / (answers - 1)
    picked = _picked(seen * (chance + gain), seen * (chance - other), answers)
    reached = gain * picked - other * (1 - picked)
    accuracy = chance + reached
    learnt = (gain + other) ** 2 * picked * (1 - picked) / values
    unit = sqrt(chance * (1 - chance) / tested)
    return reached / unit, sqrt(accuracy * (1 - accuracy) / tested + learnt) / unit


def _picked(favoured: float, other: float, answers: int) -> float:
    """The probability that of Poisson numbers with these means, `answers` - 1 of the latter, the
    former is the largest.
    """
    most = int(favoured + 10 * sqrt(favoured) + 20)
    own, rival = (_poisson(mean, most) for mean in (favoured, other))
    upto = np.cumsum(rival)
    below = upto - rival
    # among j rivals as large, one chance in j + 1: the sum over j is this difference
    won = (upto**answers - below**answers) / (answers * np.maximum(rival, _TINY))
    return float((own * np.where(rival > _TINY, won, 1.0)).sum())


def _poisson(mean: float, most: int) -> NDArray[np.float64]:
    """The probabilities of 0, ..., most."""
    counts = np.arange(most + 1)
    logs = np.cumsum(np.log(np.maximum(counts, 1)))
    return np.exp(counts * log(max(mean, _TINY)) - mean - logs)
