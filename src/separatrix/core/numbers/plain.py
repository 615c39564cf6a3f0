"""What the search for a relative selection computes, where there is no NumPy: in a browser. Bit for
bit the same, as every sum is one of whole numbers and exact; one product in a place (`maxima`) is
to be replaced there by a faster one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import mul

from flint import arb, ctx

Pairs = list[tuple[float, float]]
"""Complex numbers, as their parts."""


def unit(angle: arb) -> tuple[float, float]:
    """e^(i angle), each part rounded to the nearest float64."""
    return float(angle.cos().mid()), float(angle.sin().mid())


def turns(angles: Sequence[arb], places: range) -> list[Pairs]:
    """`turns.turns`: a row for each place, of a number for each angle."""
    table = [[(1.0, 0.0)] * len(angles)]
    with ctx.workprec(128):
        step = 1
        while len(table) < len(places):
            turn = [unit(angle * step * places.step) for angle in angles]
            table += [_product(row, turn) for row in table]
            step *= 2
        start = [unit(angle * places.start) for angle in angles]
    return [_product(row, start) for row in table[: len(places)]]


def _product(one: Pairs, other: Pairs) -> Pairs:
    return [(a * c - b * d, a * d + b * c) for (a, b), (c, d) in zip(one, other, strict=True)]


def rounded(unit: int, numbers: Iterable[float]) -> array[float]:
    """Numbers in units, each a whole one: halves to the even."""
    return array("d", [round(unit * number) for number in numbers])


def maxima(rows: array[float], columns: array[float], inner: int) -> list[float]:
    """Of each row the largest of its products with the columns; both lie behind each other, with
    `inner` numbers each.
    """
    every = [columns[at : at + inner] for at in range(0, len(columns), inner)]
    return [
        max(sum(map(mul, rows[at : at + inner], column)) for column in every)
        for at in range(0, len(rows), inner)
    ]
