"""Amounts that grow with the number of tokens, exactly: what they are at any length, summed over
all tokens up to it, and where one begins to exceed another.

An amount is a constant and steps: a step adds its share at its first token and then every few
tokens, until it has done so often enough. Whatever mechanisms keep, read or compute has this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

MOST_STEPS = 20_000
"""Steps that are tried one by one where two amounts are nearly equal."""

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
    for low, high in pairwise(_bends(difference, limit)):
        pieces = _piece(difference, low, high - 1)
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
    ends = [*(since.token for since in each[1:]), limit + 1]
    for (start, _), end in zip(each, ends, strict=True):
        # where what is summed has one sign, the sum only moves one way
        at = start
        while at < end:
            sign = _sign(difference.total(at))
            found.append(Since(at, sign))
            at = _first_other(difference, sign, at, end)
    return _merged(found)


def _first_other(difference: Growth, sign: int, low: int, end: int) -> int:
    """The first token after `low`, before `end`, at which the sum has another sign; `end` if
    none.
    """
    while low + 1 < end:
        middle = (low + end) // 2
        if _sign(difference.total(middle)) == sign:
            low = middle
        else:
            end = middle
    return end


def _bends(difference: Growth, limit: int) -> list[int]:
    """Where steps begin and end to add, between which the difference is even; and both ends."""
    places = {1, limit + 1}
    for step, _ in difference.steps:
        places |= {step.first, step.last or 1}
    return sorted(place for place in places if place <= limit + 1)


def _piece(difference: Growth, low: int, high: int) -> list[Since] | None:
    """Its signs from `low` to `high`, between which no step begins or ends."""
    active = [
        (step, weight)
        for step, weight in difference.steps
        if step.first <= low and (step.last is None or step.last > low)
    ]
    slope = sum(weight for step, weight in active if step.every == 1)
    uneven = [(step, weight) for step, weight in active if step.every > 1]
    if not uneven:
        return list(_line(difference, slope, low, high))
    # a floor lies less than 1 below its line: outside of `near` that cannot change a sign
    rise = Fraction(slope) + sum(Fraction(weight, step.every) for step, weight in uneven)
    loose = sum(abs(weight) for _, weight in uneven)
    start, end = _near(difference.at(low), rise, loose, high - low)
    found = [Since(low, _sign(difference.at(low)))] if start > 0 else []
    if start <= end:
        places = _step_places([step for step, _ in uneven], low + start, low + end)
        if places is None:
            return None
        for left, right in pairwise(places):
            found += _line(difference, slope, left, right - 1)
    after = low + end + 1
    if after <= high:
        found.append(Since(after, _sign(difference.at(after))))
    return found


def _near(value: int, rise: Fraction, loose: int, length: int) -> tuple[int, int]:
    """The stretch of 0, ..., length, both ends included, in which a line from `value` on comes
    within `loose` of 0; empty, beginning beyond its end, where it does not.
    """
    if rise == 0:
        return (0, length) if abs(value) <= loose else (length + 1, length)
    crossings = sorted((Fraction(-loose - value) / rise, Fraction(loose - value) / rise))
    start = max(0, int(crossings[0]) if crossings[0] > 0 else 0)
    end = min(length, int(crossings[1]) + 1) if crossings[1] >= 0 else -1
    if start > length or end < start:
        return (length + 1, length)
    return start, end


def _step_places(steps: Sequence[Step], low: int, high: int) -> list[int] | None:
    """The tokens of `low` to `high` at which a step adds, and both ends; None for too many."""
    if sum((high - low) // step.every + 1 for step in steps) > MOST_STEPS:
        return None
    places = {low, high + 1}
    for step in steps:
        begin = low + (step.first - low) % step.every
        places |= set(range(begin, high + 1, step.every))
    return sorted(places)


def _line(difference: Growth, slope: int, low: int, high: int) -> Iterator[Since]:
    """Its signs where it grows by `slope` with each token."""
    value = difference.at(low)
    yield Since(low, _sign(value))
    if not slope or value * slope >= 0:
        if slope and not value and low < high:
            yield Since(low + 1, _sign(slope))
        return
    # the first token at which it is at or beyond 0
    reached = low - (-abs(value) // abs(slope))
    if reached > high:
        return
    yield Since(reached, _sign(difference.at(reached)))
    if not difference.at(reached) and reached < high:
        yield Since(reached + 1, _sign(slope))


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _merged(found: Sequence[Since]) -> tuple[Since, ...]:
    return tuple(
        since
        for number, since in enumerate(found)
        if not number or since.sign != found[number - 1].sign
    )
