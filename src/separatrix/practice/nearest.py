"""Which rows of an experiment stand for a stack: those laid out as it is, or nearest to that."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from separatrix.practice.shape import Place, Shape
from separatrix.practice.table import Row

ALONE = -1
"""The ratio of stacks without a full layer."""


def trained(row: Row) -> Shape | None:
    """The shape of the stack that a row was trained with; None for one that has none."""
    return Shape.of_text(row.run["architecture"])


def layers_of(row: Row) -> int:
    """How many layers of the trained stack mix tokens."""
    shape = trained(row)
    return 1 if shape is None else shape.layers


def by_ratio(rows: Mapping[int, Row], ratio: Fraction | None) -> dict[int, Row]:
    """The row at a ratio of bounded layers to full ones, or those on either side of it; of no full
    layer (None) the one without.
    """
    if ratio is None:
        return {ALONE: rows[ALONE]} if ALONE in rows else {}
    known = sorted(value for value in rows if value >= 0)
    if ratio in known:
        return {int(ratio): rows[int(ratio)]}
    below = [value for value in known if value < ratio][-1:]
    above = [value for value in known if value > ratio][:1]
    return {value: rows[value] for value in (*below, *above)}


def by_place(rows: Mapping[tuple[int, str], Row], shape: Shape) -> dict[Place, Row]:
    """The rows with as many full layers as have the share of the stack that is nearest to a
    shape's, by where they stand; empty where no row has them where the shape does. Stacks with
    more full layers than the shape stand for no such stack: each is one more step.
    """
    if not shape.full:
        return {}
    share = Fraction(shape.full, shape.layers)

    def distance(full: int) -> tuple[Fraction, int]:
        return abs(Fraction(full, layers_of(rows[full, shape.place])) - share), full

    own = [full for full, place in rows if place == shape.place and full <= shape.full]
    if not own:
        return {}
    nearest = min(own, key=distance)
    return {place: rows[nearest, place] for place in PLACED if (nearest, place) in rows}


PLACED: dict[Place, str] = {
    "first": "at the start",
    "middle": "in the middle",
    "last": "at the end",
    "spread": "spread",
}
"""Where full layers may stand, in words."""
