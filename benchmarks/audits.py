"""How often the leak audit is wrong: false alarms on draws without a leak, and planted leaks of the
size that it says it finds nine times of ten.

    .venv/bin/python benchmarks/audits.py --audits 600 --instances 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.progress import bar
from separatrix.tasks import Batch, parse_task
from separatrix.tasks.audits import audit
from separatrix.tasks.audits.rows import smallest_leak

TASKS = (
    "eva:n=12,V=4",
    "recall:n=8,K=16,V=4,form=present",
    "disjointness:n=16,shift=sparse",
    "dyck:n=96,k=2,D=6",
    "istree:n=64",
    "neighbour:n=8,d=14,V=4",
)
"""Tasks whose prompts are drawn; their answers are then thrown anew, so that no leak is left."""


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
