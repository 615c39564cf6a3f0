"""Cosines and sines of rotary embeddings as programs compute them (mixers/ops/maps.py), in float32,
also where queries and keys are in half formats, or in float64.

    frequency   the float32 next to the rotation's own
    angle       place times frequency, one product, rounded to float32
    cos, sin    of that angle, within 8 u: libraries promise one or two units in the last place,
                range reduction included

The angle is thus one known number a = j f + d, with j f and d exact in float64: j and f have 24
bits each. e^(i j f) comes from balls (numbers/turns.py), e^(i d) from its series. In float64, d
is not known: it counts as an error.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import DIGITS
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.turns import product, turns
from separatrix.proofs.arithmetic import FP32, NAMED, Arithmetic
from separatrix.proofs.machine import Array

_LOST = 2.0**-40
"""Far more than all float64 errors below together."""
UNITS = 8
"""Unit roundoffs that a library's cosine or sine may be off by."""
MOST_PLACES = 1 << 22
SINGLE = DIGITS["fp32"]
_BLOCK = 1 << 12


def trig_off(arithmetic: Arithmetic, largest: int) -> float:
    """How far a cosine or sine of a place up to `largest`, computed beside numbers of an
    arithmetic, may be from those that `turned` returns. Raises SizeError for formats of which
    nobody knows how they turn.
    """
    if arithmetic.name not in NAMED:
        raise SizeError(f"{arithmetic.name}: nothing is assumed of its sines and cosines")
    # no angle is larger than its place
    lost = largest * 2.0**-53 if double(arithmetic) else 0.0
    return UNITS * float(arithmetic.summed) + lost + _LOST


def double(arithmetic: Arithmetic) -> bool:
    """Whether angles are computed in float64."""
    return arithmetic.summed_digits > SINGLE


def turned(
    rotation: Rotation, places: NDArray[np.int64], arithmetic: Arithmetic = FP32
) -> tuple[Array, Array]:
    """Cosines and sines (places, pairs) of the angles that programs have. Raises SizeError for
    places whose angles are not looked at.
    """
    first, last = int(places.min()), int(places.max())
    if first < 0 or last >= MOST_PLACES:
        raise SizeError(f"a rotation at place {last:,}; proofs look at {MOST_PLACES:,} places")
    return _turned(rotation, first, last - first + 1, places.tobytes(), double(arithmetic))


@lru_cache(maxsize=8)
def _turned(
    rotation: Rotation, first: int, count: int, places: bytes, wide: bool
) -> tuple[Array, Array]:
    asked = np.frombuffer(places, np.int64)
    frequency = np.array(rotation.frequencies) if wide else single_frequencies(rotation)
    exact: Array = asked.astype(np.float64)[:, None] * frequency
    angle = exact if wide else single_angles(rotation, asked)
    # e^(i j f): two rows of tables multiplied
    balls = [arb(f) for f in frequency.tolist()]
    block, within = np.divmod(asked - first, _BLOCK)
    rest = turns(balls, range(first, first + min(count, _BLOCK)))
    starts = turns(balls, range(0, int(block.max()) * _BLOCK + 1, _BLOCK))
    unit = product(product(starts[block], rest[within]), small(angle - exact))
    return unit.real.copy(), unit.imag.copy()


@lru_cache(maxsize=64)
def turns_between(
    rotation: Rotation, most: int, arithmetic: Arithmetic = FP32
) -> tuple[list[tuple[Array, Array]], NDArray[np.bool_]]:
    """Cosines and sines (pairs) of the least angle between tokens of a prompt whose last place is
    `most`, of one in the middle and of the largest, as programs compute angles, within 2^-45; and
    which pairs turn by less than a straight angle.
    """
    wide = double(arithmetic)
    frequency = np.array(rotation.frequencies) if wide else single_frequencies(rotation)
    # angles of two places are rounded, each by 2^-24 of the larger one at most
    off = most * 2.0**-23
    found: list[tuple[Array, Array]] = []
    for places in (-off, most / 2, most + off):
        angles = [arb(f) * places for f in frequency.tolist()]
        found.append(
            (
                np.array([float(angle.cos()) for angle in angles]),
                np.array([float(angle.sin()) for angle in angles]),
            )
        )
    return found, frequency * (most + 2 * off) < 3.14


def single_frequencies(rotation: Rotation) -> Array:
    """The frequencies that float32 has, exactly."""
    return np.array(rotation.frequencies).astype(np.float32).astype(np.float64)


def single_angles(rotation: Rotation, places: NDArray[np.int64]) -> Array:
    """The angles (places, pairs) that float32 has, exactly."""
    # a float64 holds the product of two numbers of 24 bits: rounded once
    product = places[:, None] * single_frequencies(rotation)
    return product.astype(np.float32).astype(np.float64)


def small(angle: Array) -> NDArray[np.complex128]:
    """e^(i angle) of angles up to 1/4, within 2^-46, by its series."""
    assert float(np.abs(angle).max(initial=0.0)) <= 0.25
    square = angle * angle
    cos = np.ones_like(angle)
    sin = np.ones_like(angle)
    # Horner's scheme: the next terms, x^16 / 16! and x^17 / 17!, are below 2^-70
    for power in range(14, 0, -2):
        cos = 1.0 - square / (power * (power - 1)) * cos
        sin = 1.0 - square / (power * (power + 1)) * sin
    return cos + 1j * (angle * sin)
