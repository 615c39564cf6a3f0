"""How often the leak audit is wrong: false alarms on draws without a leak, and planted leaks of the
size that it finds nine times of ten.

    .venv/bin/python benchmarks/audits.py --audits 600 --instances 1000

Of one place, that is: in which of many places the leak stands must be learnt as well, and the
places that tell nothing are told from it by chance. Of a gain over 64 values that is found in 0.9
of the audits where the place is known, the probe "position" found 88 of 100 among 3 places, 73 of
100 among 11 and 44 of 74 among 63 (4,000 + 4,000 instances, two answers); over 512 values 55 of 60
among 3. Of eight answers, among 3 places, 49 of 60 over 64 values and 51 of 60 over 512.

The leak is told by a token of m equally frequent values, each of which favours an answer. Of k
equally likely answers, the favoured one has probability 1/k + d, and d is the gain in accuracy of
whoever knows which value favours what. A probe must learn that from the f instances that it is
fitted to, and is suspected where it lies `BOUND` standard errors above its level on the t others.
So its z must be BOUND + 1.28 times its spread on average, 1.28 being the ninth decile of a normal
number. What is found once in so many instances is found again in four times as many, so that the
second drawing costs nothing worth counting.

Two answers: the share of answer 1 beside a value is 1/2 + d or 1/2 - d, measured with variance 1/(4
f/m). So the score has correlation 2d / sqrt(1 + m / (4 d^2 f)) with the answer, and its z is that
times sqrt(t), with spread 1.

k > 2 answers: of f/m instances of a value the favoured answer has (1/k + d) f/m on average, any
other (1/k - d/(k-1)) f/m, all about Poisson. The favoured one is the most frequent, ties broken
fairly, with probability P. The gain is d P - d (1 - P)/(k - 1), and z is that over s = sqrt((1/k)(1
- 1/k)/t). Its spread over s: of an accuracy a on t instances, and of how many of the m values are
learnt, sqrt(a (1 - a)/t + (d + d/(k-1))^2 P (1 - P)/m).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.progress import bar
from separatrix.tasks import Batch, parse_task
from separatrix.tasks.audits import audit
from separatrix.tasks.audits.run import BOUND

TASKS = (
    "eva:n=12,V=4",
    "recall:n=8,K=16,V=4,form=present",
    "disjointness:n=16",
    "dyck:n=96,k=2,D=6",
    "istree:n=64",
    "neighbour:n=8,d=14,V=4",
)
"""Tasks whose prompts are drawn; their answers are then thrown anew, so that no leak is left."""

_NINTH = NormalDist().inv_cdf(0.9)
SPREADS = (1, 64, 512)
"""Values over which the leaks are spread whose sizes docs/tasks.md states."""
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
    counts = np.arange(most + 1)
    logs = np.cumsum(np.log(np.maximum(counts, 1)))
    return np.exp(counts * log(max(mean, _TINY)) - mean - logs)


@dataclass(frozen=True, kw_only=True)
class Leakless:
    """The prompts of a task with answers that do not depend on them."""

    task: Any
    answers: int
    shift: str = "none"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.answers)

    def level(self, probe: str) -> Fraction:
        return self.chance

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        return Batch(self.task.sample(batch, rng).tokens, rng.integers(self.answers, size=batch))


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Uniform tokens; each value of the first favours an answer by `gain`."""

    spec: ClassVar[str] = "planted"
    several: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False
    shortcuts: ClassVar[tuple[str, ...]] = ()
    length: int
    vocabulary: int
    answers: int
    gain: float

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.answers)

    def level(self, probe: str) -> Fraction:
        return self.chance

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(self.vocabulary, size=(batch, self.length))
        favoured: NDArray[np.int64] = np.arange(self.vocabulary) * 7 // 3 % self.answers
        told = rng.random(batch) < self.gain * self.answers / (self.answers - 1)
        coins = rng.integers(self.answers, size=batch)
        return Batch(tokens, np.where(told, favoured[tokens[:, 0]], coins))


def share(title: str, number: int, leaks: Callable[[int], bool]) -> None:
    """Prints in how many of `number` audits a leak was found."""
    found = 0
    with bar(title) as progress:
        for seed in range(number):
            progress(seed, number)
            found += leaks(seed)
    print(f"{title}: {found} of {number}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=600)
    parser.add_argument("--planted", type=int, default=40)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--places", type=int, default=3, help="where the leak may stand")
    given = parser.parse_args()
    size = {"fitted": given.instances, "tested": given.instances}
    for answers, values in ((2, 64), (2, 512), (8, 64), (8, 512)):
        gain = smallest_leak(answers, given.instances, given.instances, values)
        task: Any = Planted(length=given.places + 1, vocabulary=values, answers=answers, gain=gain)
        title = f"a gain of {gain:.3f} planted over {values} values, {answers} answers"
        share(
            title, given.planted, lambda seed, task=task: bool(audit(task, seed=seed, **size).leaks)
        )
    for text in TASKS:
        plain = parse_task(text)
        without: Any = Leakless(task=plain, answers=plain.answers)
        share(
            f"false alarms, {text}",
            given.audits // len(TASKS),
            lambda seed, task=without: bool(audit(task, seed=seed, **size).leaks),
        )


if __name__ == "__main__":
    main()
