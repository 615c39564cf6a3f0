"""Amounts that grow with the number of tokens, exactly: what they are at any length, summed over
all tokens up to it, and where one begins to exceed another.

An amount is a constant and steps: a step adds its share at its first token and then every few
tokens, until it has done so often enough. Whatever mechanisms keep, read or compute has this form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

MOST_STRETCHES = 1 << 15
"""Stretches of tokens that are looked at where two amounts are nearly equal."""

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

    @property
    def last(self) -> int | None:
        """The token at which it stops growing."""
        return None if self.most is None else self.first + (self.most - 1) * self.every


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


class Since(NamedTuple):
    """From this token on a difference has this sign, 1, 0 or -1, until the next one."""

    token: int
    sign: int


def signs(difference: Growth, limit: int) -> tuple[Since, ...] | None:
    """Where a difference of two amounts is above, at and below 0, over the tokens 1 to `limit`.

    None where it changes too often to be listed: both grow alike, block by block.
    """
    found: list[Since] = []
    for low, end in pairwise(_bends(difference, limit)):
        # between bends all other steps stand still
        active = tuple(
            (step, weight)
            for step, weight in difference.steps
            if step.first <= low and (step.last is None or step.last > low)
        )
        here = Growth(difference.at(low) - Growth(0, active).at(low), active)
        pieces = _pieces(here.at, low, end, _floors(here))
        if pieces is None:
            return None
        found += pieces
    return _merged(found)


def total_signs(difference: Growth, limit: int) -> tuple[Since, ...] | None:
    """The same for the sum over all tokens up to one."""
    each = signs(difference, limit)
    if each is None:
        return None
    found: list[Since] = []
    # where what is summed has one sign, the sum only moves one way
    for low, end in pairwise([*(since.token for since in each), limit + 1]):
        found += _pieces(difference.total, low, end) or ()
    return _merged(found)


def _bends(difference: Growth, limit: int) -> list[int]:
    """Where steps begin and end to add, between which the difference is even; and both ends."""
    places = {1, limit + 1}
    for step, _ in difference.steps:
        places |= {step.first, step.last or 1}
    return sorted(place for place in places if place <= limit + 1)


def _floors(amount: Growth) -> Callable[[int, int], int]:
    """How far an amount may leave the line through two of its values: a step that adds now and
    then, between them, by less than one unit.
    """
    uneven = [(step, abs(weight)) for step, weight in amount.steps if step.every > 1]
    return lambda low, high: sum(size for step, size in uneven if step.at(low) < step.at(high))


def _pieces(
    amount: Callable[[int], int],
    low: int,
    end: int,
    off: Callable[[int, int], int] = lambda low, high: 0,
) -> list[Since] | None:
    """The signs from `low` to before `end` of what stays between its values at the ends of every
    stretch, but for what it may be `off`; halves are looked at where a stretch is not of one sign.
    None where that is too often.
    """
    found: list[Since] = []
    left = [(low, end)]
    for _ in range(MOST_STRETCHES):
        low, end = left.pop()
        ends = (amount(low), amount(end - 1))
        room = off(low, end - 1)
        if min(ends) > room or max(ends) < -room or (ends == (0, 0) and not room):
            found.append(Since(low, _sign(ends[0])))
        else:
            middle = (low + end) // 2
            left += [(middle, end), (low, middle)]
        if not left:
            return found
    return None


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _merged(found: Sequence[Since]) -> tuple[Since, ...]:
    return tuple(
        since
        for number, since in enumerate(found)
        if not number or since.sign != found[number - 1].sign
    )
