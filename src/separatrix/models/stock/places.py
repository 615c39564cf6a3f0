"""Embeddings of positions for an architecture that has none: two layers that compute them from
rotations and a start token, exactly.

The start token stands at place 0, a prompt behind it; D = ceil(log2 N) bits number N places, lowest
first. Only the start token has a key, and only it has a value, which is 1. Bit r is read by a head
of its own in one pair of dimensions that turns by w = pi / 2^r from token to token:

    k_0 = (sin(w/2), cos(w/2))    q = (C, 0), C = 64 2^r
    score of the start token at place i:   C sin(w (i + 1/2))      of all others:   exactly 0

w (i + 1/2) runs through half a turn while bit r of i is 0, and through the other half while it is
1. It comes no closer to a multiple of pi than w/2, so that |score| >= C sin(w/2) >= C w/pi = 64:
the head writes a weight of almost 1 where the bit is 0, of almost 0 where it is 1. The first
layer's MLP makes the signs -1 and +1 of it, relu(3 - 4y) - relu(1 - 4y) - 1.

The second layer has no heads. Its hidden unit i, relu(sum_r +-c_r - D + 1), is 1 at place i and 0
at every other; the unit's column of the map back is what the table of positions holds there.
"""

from __future__ import annotations

from fractions import Fraction
from math import cos, pi, sin

import torch
from torch import Tensor

from separatrix.core.errors import SizeError

STRENGTH = 64
"""The least size of a score, before rounding: C w / pi."""
_UNIT = Fraction(1, 1 << 24)
_ANGLE = 4
"""Units by which an angle may be off: of the frequency, of 1 over it twice, of the product."""
_TERMS = 16
"""Units by which a score may be off beside: of cosine, sine, two constants, three products and
their sums, twice.
"""
_CLEAR = 26
"""A weight below 2^-26 is nothing beside 1, and the bits come out as -1 and +1 exactly."""


def bits(places: int) -> int:
    """Bits that number so many places, and dimension pairs that rotate."""
    return max(1, (places - 1).bit_length())


def frequency(bit: int) -> float:
    """The angle by which the pair of a bit turns from token to token."""
    return pi / 2**bit


def query(bit: int) -> float:
    """C: the first entry of the pair in every query."""
    return float(STRENGTH << bit)


def key(bit: int) -> tuple[float, float]:
    """The pair of the start token's key."""
    return sin(frequency(bit) / 2), cos(frequency(bit) / 2)


def told_apart(places: int) -> bool:
    """Whether float32 is shown to tell so many places apart.

    A score is off by at most C (4 w i + 16) u, u = 2^-24: with C w = 64 pi, by 256 pi i u + 1,024
    2^D u. What is left of 64 must make the start token's weight clear of 0 or of 1 beside `places`
    others: e^-score (i + 1) < 2^-26.
    """
    lost = Fraction(22, 7) * STRENGTH * _ANGLE * places + STRENGTH * _TERMS * 2 ** bits(places)
    left = STRENGTH - lost * _UNIT
    # ln 2 < 7/10, so that the logarithms' own rounding does not count
    return left > Fraction(7, 10) * (_CLEAR + (places + 1).bit_length())


def check(places: int, stock: str) -> None:
    """Raises SizeError for more places than float32 is shown to tell apart."""
    if not told_apart(places):
        raise SizeError(
            f"{stock} has no embeddings of positions; {places:,} places are more than float32 tells"
            f" apart by rotations, at most {most_places():,} here: take --format gpt2"
        )


def most_places() -> int:
    """The largest power of two of places that are told apart."""
    found = 1
    while told_apart(2 * found):
        found *= 2
    return found


def signs_of(places: int) -> Tensor:
    """The bits of every place as -1 and +1 (places, D), lowest first."""
    number = torch.arange(places)[:, None]
    return ((number >> torch.arange(bits(places))) % 2 * 2 - 1).float()
