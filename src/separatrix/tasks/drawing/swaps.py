"""Swaps of pointers: uniform ones that lead from one pointer to another, and how likely a few of
them do.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Tokens


def leading(asked: Tokens, start: Tokens, P: int, K: int, rng: np.random.Generator) -> Tokens:
    """K swaps (batch, K) of P pointers, uniform among those that bring what stands at `start` to
    `asked`.

    From the last swap back: a uniform one keeps what stands at a pointer there with probability
    1 - 2/P. j uniform ones lead from a pointer to itself with probability e_j, to any other d_j.
    """
    ids = _ids(P)
    swaps = np.empty((len(asked), K), np.int64)
    at = asked
    for left in range(K - 1, -1, -1):
        home, away = (float(share) for share in ways(P, left))
        there = at == start
        # weights of staying, of going to the start, and of going anywhere else
        stays = (P - 2) * np.where(there, home, away)
        comes = np.where(there, 0.0, 2 * home / (P - 1))
        goes = 2 * away * np.where(there, 1.0, (P - 2) / (P - 1))
        drawn = rng.random(len(at)) * (stays + comes + goes)
        one = (at + rng.integers(1, P, size=len(at))) % P
        two = _other(at, np.where(there, one, start), P, rng)
        stayed = drawn < stays
        to = np.where(drawn < stays + comes, start, np.where(there, one, two))
        swaps[:, left] = np.where(stayed, ids[one, _other(at, one, P, rng)], ids[at, to])
        at = np.where(stayed, at, to)
    return swaps


@lru_cache(maxsize=4096)
def ways(P: int, swaps: int) -> tuple[Fraction, Fraction]:
    """(e_j, d_j) for j uniform swaps: how likely they lead from a pointer to itself, and to any one
    other. Beyond 256 swaps the difference is that of 256.
    """
    left = (1 - Fraction(2, P - 1)) ** min(swaps, 256)
    return (1 + (P - 1) * left) / P, (1 - left) / P


def kept(P: int, K: int) -> Fraction:
    """The probability that who takes back the last of K swaps alone, as `leading` draws them, is
    where all of them lead back to.
    """
    if K == 1:
        return Fraction(1)
    home, _ = ways(P, K - 1)
    whole, other = ways(P, K)
    # the end is the start in one of P cases and the last swap stays, or it is another and comes
    return home * ((1 - Fraction(2, P)) / (P * whole) + Fraction(2, P * P) / other)


def partners(P: int) -> Tokens:
    """(swaps, P): which pointer each swap exchanges a pointer with; itself where it takes no
    part.
    """
    one, two = np.triu_indices(P, 1)
    partners = np.tile(np.arange(P), (len(one), 1))
    every = np.arange(len(one))
    partners[every, one], partners[every, two] = two, one
    return partners


def _ids(P: int) -> Tokens:
    """(P, P): the number of the swap of two pointers."""
    ids = np.zeros((P, P), np.int64)
    one, two = np.triu_indices(P, 1)
    ids[one, two] = ids[two, one] = np.arange(len(one))
    return ids


def _other(one: Tokens, two: Tokens, P: int, rng: np.random.Generator) -> Tokens:
    """A uniform pointer that is neither of these, which differ."""
    third = rng.integers(P - 2, size=len(one))
    third += third >= np.minimum(one, two)
    return third + (third >= np.maximum(one, two))
