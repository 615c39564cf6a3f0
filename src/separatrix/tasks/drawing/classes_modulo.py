"""Draws for sums modulo M: values that avoid some, and one side for every class {x, s - x}."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks.base.task import Family, Tokens

Member = TypeVar("Member")


def by_modulus(
    make: Callable[[int, int], Member], *, n: int, M: int, smallest: int, least: int
) -> Family[Member]:
    """M/n stays when it is a whole number, else M; `make` takes n >= smallest and M >= least."""
    if M % n == 0:
        ratio = M // n
        return Family(
            f"M = {ratio}n", lambda n: make(n, ratio * n), max(smallest, -(-least // ratio))
        )
    return Family(f"M = {M:,}", lambda n: make(n, M), smallest)


def avoiding(values: int, holes: Tokens, n: int, rng: np.random.Generator) -> Tokens:
    """Shape (batch, n): uniform over [values] without the row's holes, shape (batch, number),
    which differ.
    """
    # uniform numbers of as many values as are left, moved up past each hole: no rejection
    x = rng.integers(values - holes.shape[1], size=(len(holes), n))
    for hole in np.sort(holes, axis=1).T:
        x += x >= hole[:, None]
    return x


def one_per_class(classes: Tokens, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A fair coin for every class of every row, shape as `classes`: equal entries of a row have
    equal coins.
    """
    # equal classes stand side by side once sorted, and take the coin of the first of them
    order = np.argsort(classes, axis=1)
    ordered = np.take_along_axis(classes, order, axis=1)
    # indices where runs of equal classes begin, else 0: the running maximum finds each one's run
    first = np.zeros_like(classes)
    first[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], np.arange(1, classes.shape[1]), 0)
    coins = rng.integers(2, size=classes.shape, dtype=np.int8) == 1
    drawn = np.take_along_axis(coins, np.maximum.accumulate(first, axis=1), axis=1)
    result = np.empty_like(coins)
    np.put_along_axis(result, order, drawn, axis=1)
    return result
