"""The power of an audit: the smallest leak that it finds nine times of ten.

The leak is told by a token of m equally frequent values, each of which favours an answer. Of k
equally likely answers, the favoured one has probability 1/k + d, and d is the gain in accuracy of
whoever knows which value favours what. A probe must learn that from the f instances that it is
fitted to, and is suspected where it lies `BOUND` standard errors above its level on the t others.
So its expected z must be BOUND + 1.28, 1.28 being the ninth decile of a normal number. What is
found once in so many instances is found again in four times as many, so that the second drawing
costs nothing worth counting.

Two answers: the share of answer 1 beside a value is 1/2 + d or 1/2 - d, measured with variance
1/(4 f/m). So the score has correlation 2d / sqrt(1 + m / (4 d^2 f)) with the answer, and its z is
that times sqrt(t).

k > 2 answers: of f/m instances of a value, the counts of answers are about normal, with variance
f/(m k); the favoured one, d (k/(k-1)) f/m ahead in the mean, is the largest of k with probability
P. The gain is d P - d (1 - P)/(k - 1), and z is that over sqrt((1/k)(1 - 1/k)/t).
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np

from separatrix.audits.statistics import BOUND

NEEDED = BOUND + NormalDist().inv_cdf(0.9)
"""Expected z of a probe that is suspected nine times of ten."""
SPREADS = (1, 64, 512)
"""Values over which the leaks are spread whose sizes an audit states."""
_HALVINGS = 40


def smallest_leak(answers: int, fitted: int, tested: int, values: int) -> float:
    """The smallest gain d that is found nine times of ten; 1 - 1/k where none is."""
    low, high = 0.0, 1 - 1 / answers
    for _ in range(_HALVINGS):
        gain = (low + high) / 2
        if expected(gain, answers, fitted, tested, values) < NEEDED:
            low = gain
        else:
            high = gain
    return high


def expected(gain: float, answers: int, fitted: int, tested: int, values: int) -> float:
    """The expected z of a probe for a leak of this gain, as derived above."""
    if answers == 2:
        return 2 * gain / sqrt(1 + values / (4 * gain**2 * fitted)) * sqrt(tested)
    chance = 1 / answers
    picked = _picked(gain * answers / (answers - 1) * sqrt(fitted / values * answers), answers)
    reached = gain * picked - gain * (1 - picked) / (answers - 1)
    return reached / sqrt(chance * (1 - chance) / tested)


def _picked(ahead: float, answers: int) -> float:
    """The probability that of `answers` normal numbers the one that is `ahead` is the largest."""
    points = np.linspace(-8.0, 8.0, 801)
    density = np.exp(-(points**2) / 2)
    below = np.array([NormalDist().cdf(point + ahead) for point in points])
    return float((density * below ** (answers - 1)).sum() / density.sum())
