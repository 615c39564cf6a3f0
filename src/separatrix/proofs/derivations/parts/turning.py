"""Scores of queries and keys whose places are not known, only how far apart they may be: the least
and the most that each can be, whatever stands between the two.

Of pairs q and k that turn by an angle t a score has |q| |k| cos(t + the angle from k to q): a
cosine over an arc. Keys take few values in a pair, so that the most of all scores is one product of
matrices: a number of the query for each value, and whether the key has it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.machine import Array
from separatrix.proofs.rotations import turns_between

MOST_VALUES = 64
"""Of the keys in one pair."""


class Told(NamedTuple):
    """Rows whose products are the scores of queries with keys, at the most; and the score of each
    query with the key in its own row, at the least.
    """

    queries: Array
    keys: Array
    own: Array


def at_any_distance(
    queries: Array, keys: Array, rotation: Rotation | None, most: int, arithmetic: Arithmetic
) -> Told:
    """Rows before they are turned, at most so many places apart. Raises CheckFailed for keys of
    too many values.
    """
    turned = 0 if rotation is None else rotation.dims
    still = slice(turned, None)
    found = [(queries[:, still], keys[:, still])]
    own = (queries[:, still] * keys[: len(queries), still]).sum(1)
    for pair in range(turned // 2):
        both = [pair, pair + turned // 2]
        x, y = queries[:, both].T
        if rotation is None or not (x.any() or y.any()) or not keys[:, both].any():
            continue
        values, which = np.unique(keys[:, both], axis=0, return_inverse=True)
        near = 0.0
        if len(values) > MOST_VALUES:
            # alike but for what float64 leaves of a norm
            near = float(np.ldexp(1.0, np.frexp(np.abs(keys[:, both]).max())[1] - 40))
            grid = np.rint(keys[:, both] / near) * near
            values, which = np.unique(grid, axis=0, return_inverse=True)
        if len(values) > MOST_VALUES:
            raise CheckFailed(f"keys that turn have {len(values):,} values in one pair")
        # a product with the conjugate
        real = np.outer(x, values[:, 0]) + np.outer(y, values[:, 1])
        other = np.outer(y, values[:, 0]) - np.outer(x, values[:, 1])
        low, high = _arc(real, other, pair, rotation, most, arithmetic)
        lost = near * (np.abs(x) + np.abs(y))[:, None]
        low, high = low - lost, high + lost
        found.append((high, np.eye(len(values))[which]))
        own += low[np.arange(len(x)), which[: len(x)]]
    columns = [np.concatenate(rows, 1) for rows in zip(*found, strict=True)]
    return Told(columns[0], columns[1], own)


def _arc(
    x: Array, y: Array, pair: int, rotation: Rotation, most: int, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """The least and the most of the first number of (x, y), turned by 0 to so many places."""
    turns, slow = turns_between(rotation, most, arithmetic)
    long = np.sqrt(x * x + y * y) * (1 + 2.0**-40)
    if not slow[pair]:
        return -long, long
    corners = [(x * cos[pair] - y * sin[pair], x * sin[pair] + y * cos[pair]) for cos, sin in turns]
    ends = [own for own, _ in corners]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    for (own, other), (then, beside) in pairwise(corners):
        # within a right angle: where the other changes its sign, this one is as long as both
        crosses: NDArray[np.bool_] = other * beside <= 0
        low = np.where(crosses & (np.minimum(own, then) < 0), -long, low)
        high = np.where(crosses & (np.maximum(own, then) > 0), long, high)
    return low, high
