"""Values that stand equally often, or as nearly so as their number allows, in uniform order."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import distinct, shuffled


def balanced(batch: int, number: int, values: int, rng: np.random.Generator) -> Tokens:
    """(batch, number): every one of [values] floor or ceil(number / values) times, in uniform
    order; those that stand once more are uniform.
    """
    if number < values:
        return distinct(batch, number, values, rng)
    drawn = np.tile(np.arange(number) % values, (batch, 1))
    rng.permuted(drawn, axis=1, out=drawn)
    if number % values:
        drawn = np.take_along_axis(shuffled(batch, values, rng), drawn, axis=1)
    return drawn


def share(number: int, values: int) -> Fraction:
    """How much of such values the most frequent one is."""
    return Fraction(-(-number // values), number)


def other(number: int, values: int) -> Fraction:
    """The most that one entry, or a table of it, tells about another one."""
    most = -(-number // values)
    # of the other entries at most `most` hold any one value
    return max(Fraction(1, values), Fraction(min(most, number - 1), max(1, number - 1)))
