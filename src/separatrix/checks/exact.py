"""Reading weights exactly: float32 numbers as float64, products that provably have no rounding
error, matrices that only pick and scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import CheckFailed

Array = NDArray[np.float64]
LARGEST = 2.0**60
SMALLEST = 2.0**-30
"""Weights between these keep every product that is used clear of overflow and underflow."""


def lowest_bit(array: Array) -> int:
    """An e such that every number of the array is a multiple of 2^e; the largest such e, and 0
    for an array of zeros.
    """
    numbers = np.abs(array[array != 0.0])
    if not numbers.size:
        return 0
    mantissa, exponent = np.frexp(numbers)
    # number = mantissa 2^exponent with mantissa in [1/2, 1): 53 bits make an integer of it
    whole = (mantissa * 2.0**53).astype(np.int64)
    # x & -x keeps the lowest bit that is set; frexp writes 2^b as 1/2 * 2^(b+1)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 53 + trailing).min())


def exact_product(left: Array, right: Array, *, bits: int = 53) -> Array:
    """left @ right with no rounding, whatever the order of the sums, in float64 (or float32:
    `bits=24`); CheckFailed for numbers too wide for it.
    """
    if not left.size or not right.size:
        return left @ right
    # products with a factor that is zero throughout are exact zeros
    terms = int(((left != 0.0).any(0) & (right != 0.0).any(1)).sum())
    # every partial sum is at most this, and a multiple of the product of the lowest bits: if the
    # quotient fits in the mantissa, no partial sum is rounded
    size = Fraction(float(np.abs(left).max())) * Fraction(float(np.abs(right).max())) * terms
    if size > Fraction(2) ** (bits + lowest_bit(left) + lowest_bit(right)):
        raise CheckFailed(
            f"a product of weights needs more than {bits} bits: these are not the dyadic weights of"
            " a construction"
        )
    return left @ right


def exact_sum(left: Array, right: Array) -> Array:
    """left + right with no rounding. Raises CheckFailed as `exact_product` does."""
    if left.size and right.size:
        # a multiple of the lower of the two lowest bits: exact if the quotient fits in 53 bits
        size = Fraction(float(np.abs(left).max())) + Fraction(float(np.abs(right).max()))
        if size > Fraction(2) ** (53 + min(lowest_bit(left), lowest_bit(right))):
            raise CheckFailed(
                "a sum of weights needs more than 53 bits: these are not the dyadic weights of a"
                " construction"
            )
    return left + right


def exact_lead(right: Array, best: Array) -> Array:
    """right - best with no rounding, where `best` is the largest of the other numbers. Raises
    CheckFailed as `exact_product` does.
    """
    return exact_sum(right, -best)


def largest(array: Array) -> Fraction:
    """The largest absolute value, exact; 0 for an empty array."""
    return Fraction(float(np.abs(array).max())) if array.size else Fraction(0)


def largest_row_sum(array: Array) -> Fraction:
    """The largest sum of absolute values over a row, exact."""
    return largest(exact_product(np.abs(array), np.ones((array.shape[1], 1))))


def most_terms(array: Array) -> int:
    """The largest number of non-zero entries of a row."""
    return int((array != 0.0).sum(1).max()) if array.size else 0


def columns(array: Array) -> NDArray[np.bool_]:
    """Which columns have a non-zero entry."""
    return (array != 0.0).any(0)


@dataclass(frozen=True)
class Picks:
    """A (rows, columns) matrix with at most one non-zero entry per row, a power of two: applying
    it in float32 has no rounding error.
    """

    matrix: Array

    @classmethod
    def of(cls, matrix: Array, what: str) -> Picks:
        """Raises CheckFailed, naming `what`, when the matrix does more than pick coordinates and
        scale them by powers of two.
        """
        if most_terms(matrix) > 1:
            raise CheckFailed(
                f"{what} adds several coordinates up; a construction's matrices pick one each"
            )
        used = np.abs(matrix[matrix != 0.0])
        # frexp gives a mantissa of exactly 1/2 to powers of two, and to nothing else
        if (np.frexp(used)[0] != 0.5).any() or (used > LARGEST).any() or (used < SMALLEST).any():
            raise CheckFailed(
                f"{what} scales by a number that is no power of two between 2^-30 and 2^60"
            )
        return cls(matrix)

    @property
    def reads(self) -> NDArray[np.bool_]:
        return columns(self.matrix)

    def of_rows(self, x: Array) -> Array:
        """matrix @ x for each row of x."""
        return exact_product(x, self.matrix.T)
