"""Amounts that grow with the number of tokens, exactly: what they are at any length, summed over
all tokens up to it.

An amount is a constant and steps: a step adds its share at its first token and then every few
tokens, until it has done so often enough. Whatever mechanisms keep, read or compute has this form.
"""

from __future__ import annotations

from dataclasses import dataclass

_POWERS = 64
"""Doublings that are counted: no context has more."""


@dataclass(frozen=True, order=True)
class Step:
    """One unit at token `first` and one more `every` so many tokens after it, at most `most`."""

    every: int = 1
    first: int = 1
    most: int | None = None

    def at(self, t: int) -> int:
        """Units after t tokens."""
        if t < self.first:
            return 0
        units = (t - self.first) // self.every + 1
        return units if self.most is None else min(units, self.most)

    def total(self, n: int) -> int:
        """The sum of `at` over 1, ..., n."""
        counted = max(0, n - self.first + 1)
        rising = counted if self.most is None else min(counted, self.most * self.every)
        whole, rest = divmod(rising, self.every)
        risen = self.every * whole * (whole + 1) // 2 + rest * (whole + 1)
        return risen + (counted - rising) * (self.most or 0)


@dataclass(frozen=True)
class Growth:
    """constant + sum of weight * units over its steps."""

    constant: int = 0
    steps: tuple[tuple[Step, int], ...] = ()

    def at(self, t: int) -> int:
        """The amount at token t."""
        return self.constant + sum(weight * step.at(t) for step, weight in self.steps)

    def total(self, n: int) -> int:
        """The sum of `at` over the tokens 1, ..., n."""
        return self.constant * n + sum(weight * step.total(n) for step, weight in self.steps)

    def __add__(self, other: Growth) -> Growth:
        weights = dict(self.steps)
        for step, weight in other.steps:
            weights[step] = weights.get(step, 0) + weight
        steps = tuple((step, weight) for step, weight in weights.items() if weight)
        return Growth(self.constant + other.constant, steps)

    def __mul__(self, times: int) -> Growth:
        if not times:
            return Growth()
        return Growth(
            self.constant * times, tuple((step, weight * times) for step, weight in self.steps)
        )

    def __sub__(self, other: Growth) -> Growth:
        return self + other * -1


NOTHING = Growth()


def tokens(most: int | None = None, *, every: int = 1, first: int | None = None) -> Growth:
    """One for every token, or one for every whole block of so many, at most `most`."""
    if most is not None and most < 1:
        return NOTHING
    return Growth(0, ((Step(every, every if first is None else first, most), 1),))


def doublings() -> Growth:
    """floor(log2 t) + 1: one at each power of two."""
    return Growth(0, tuple((Step(1, 1 << power, 1), 1) for power in range(_POWERS)))
