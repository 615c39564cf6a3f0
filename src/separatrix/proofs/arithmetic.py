"""What a proof assumes of the arithmetic that it is about: how much a stored number and a step of a
sum are rounded, and the sentence that says so.

    fp64, fp32   every operation rounds to nearest in the format itself
    bf16, fp16   what one module hands to the next is rounded to the format; scores, softmax and
                 sums are kept in float32, as the kernels do
    pN           N bits: a sign, 8 exponent bits (11 from N = 33), the rest fraction; every
                 operation, sums too, rounds to nearest in the format itself
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import DIGITS

_FEWEST_BITS = 12
_MOST_BITS = 64
_NARROW_EXPONENT = 32
"""Formats pN of at most so many bits have 8 exponent bits, wider ones 11."""


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """A number format, and how programs compute in it."""

    name: str
    """As a stack declares it: fp64, fp32, bf16, fp16 or pN."""
    title: str
    """In sentences."""
    digits: int
    """Significant binary digits of a stored number."""
    summed_digits: int
    """The same inside sums, scores and softmax."""
    smallest: int
    """2 to this power is the smallest normal number that is stored."""
    summed_smallest: int
    said: str
    """What is assumed, as every proof prints it."""
    rescaled: bool = True
    """Whether a fused kernel may rescale running sums."""
    exp_units: int = 64
    """Unit roundoffs of sums that exp may be off by, relative."""
    gate_units: int = 8
    """The same of sigmoid, elu and softplus."""
    claims: bool = True
    """Whether anything is to be proved in it: without, weights are written whatever comes of them.
    """

    @property
    def unproved(self) -> Arithmetic:
        """The same, with nothing to be proved."""
        return replace(self, claims=False)

    @property
    def stored(self) -> Fraction:
        """Unit roundoff of what one module hands to the next: weights, activations, keys."""
        return Fraction(1, 1 << self.digits)

    @property
    def summed(self) -> Fraction:
        """Unit roundoff inside sums, scores and softmax."""
        return Fraction(1, 1 << self.summed_digits)

    @property
    def tiny(self) -> float:
        """The smallest normal number that is stored: smaller results may be flushed to zero."""
        return 2.0**self.smallest

    @property
    def large(self) -> float:
        """Half of what the format holds: the most that a stored number may be."""
        return 2.0**-self.smallest

    @property
    def summed_tiny(self) -> float:
        return 2.0**self.summed_smallest

    @property
    def summed_large(self) -> float:
        """Half of what sums hold: the most that the terms of a sum may add up to."""
        return 2.0**-self.summed_smallest

    @property
    def inner(self) -> Arithmetic:
        """The arithmetic inside sums."""
        return FP32 if self.narrowed else self

    @property
    def narrowed(self) -> bool:
        """Whether results of sums are rounded once more when they are stored."""
        return self.digits < self.summed_digits

    def held(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers the format stores as they are."""
        return self.rounded(numbers) == numbers

    def rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rounded to nearest among the normal numbers of the format, ties either way; numbers too
        small or too large for it give NaN, which equals nothing.
        """
        leading = self.leading(numbers)
        fits = (np.abs(numbers) >= self.tiny) & (np.abs(leading) <= 2 * self.large)
        return np.where(fits | (numbers == 0.0), leading, np.nan)

    def leading(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest numbers of so many digits, of any size, ties either way."""
        with np.errstate(over="ignore", invalid="ignore"):
            # Veltkamp's splitting: what is left of x are its leading digits
            longer = numbers * (2.0 ** (DIGITS["fp64"] - self.digits) + 1)
            return longer - (longer - numbers)

    def fits_in(self, name: str) -> bool:
        """Whether a format that a stack declares, by name, stores all numbers of this one."""
        try:
            other = arithmetic(name)
        except SizeError:
            return False
        return self.digits <= other.digits and self.smallest >= other.smallest

    def within(self, other: Arithmetic) -> bool:
        """Whether the other format stores all numbers of this one, and sums no worse."""
        return (
            self.digits <= other.digits
            and self.summed_digits <= other.summed_digits
            and self.smallest >= other.smallest
            and self.summed_smallest >= other.summed_smallest
        )


def _plain(
    name: str, title: str, described: str, digits: int, smallest: int, *, kernels: bool
) -> Arithmetic:
    """An arithmetic whose every operation rounds alike; in kernels exp and gates are worse."""
    exp_units, gate_units = (64, 8) if kernels else (2, 2)
    return Arithmetic(
        name=name,
        title=title,
        digits=digits,
        summed_digits=digits,
        smallest=smallest,
        summed_smallest=smallest,
        said=(
            f"{described}, round to nearest, sums in any order, fused or not, below 2^{smallest}"
            f" flushed or not; exp within {exp_units} u; elu and gates within {gate_units} u each;"
            f" u = 2^-{digits}"
        ),
        rescaled=kernels,
        exp_units=exp_units,
        gate_units=gate_units,
    )


def _half(name: str, title: str, described: str, digits: int, smallest: int) -> Arithmetic:
    """An arithmetic that stores half as many bits as it sums."""
    return Arithmetic(
        name=name,
        title=title,
        digits=digits,
        summed_digits=DIGITS["fp32"],
        smallest=smallest,
        summed_smallest=-126,
        said=(
            f"{described}: what one module hands to the next is rounded to nearest, u ="
            f" 2^-{digits}, or flushed below 2^{smallest}; sums, scores and softmax in float32, in"
            " any order, fused or not, below 2^-126 flushed or not; exp within 64 * 2^-24, elu and"
            " gates within 8 * 2^-24 each; states of recurrent layers in float32; weights of"
            " values, the largest of them 1, rounded to the format or not"
        ),
    )


FP64 = _plain("fp64", "float64", "IEEE float64", DIGITS["fp64"], -1022, kernels=True)
FP32 = _plain("fp32", "float32", "IEEE float32", DIGITS["fp32"], -126, kernels=True)
BF16 = _half("bf16", "bfloat16", "bfloat16", DIGITS["bf16"], -126)
FP16 = _half("fp16", "float16", "IEEE float16", DIGITS["fp16"], -14)
NAMED = {one.name: one for one in (FP64, FP32, BF16, FP16)}
"""The arithmetics that PyTorch computes in."""


@cache
def arithmetic(name: str) -> Arithmetic:
    """The arithmetic of a format: fp64, fp32, bf16, fp16, or pN with N from 12 to 64 bits. Raises
    SizeError for another one.
    """
    if name in NAMED:
        return NAMED[name]
    match = re.fullmatch(r"p([1-9][0-9]?)", name)
    bits = int(match[1]) if match else 0
    if not _FEWEST_BITS <= bits <= _MOST_BITS:
        raise SizeError(
            f"nothing is proved in the number format '{name[:40]}': use {', '.join(NAMED)}, or pN"
            f" with N from {_FEWEST_BITS} to {_MOST_BITS} bits"
        )
    exponent = 8 if bits <= _NARROW_EXPONENT else 11
    # the leading digit is not stored, the sign is
    digits = bits - exponent
    described = f"floating point of {bits} bits, {exponent} of them the exponent's"
    return _plain(name, name, described, digits, 2 - (1 << (exponent - 1)), kernels=False)


def narrowest(names: Iterable[str]) -> Arithmetic:
    """The arithmetic that the others hold: of formats of which each holds the next, the last.
    Raises SizeError where there is none.
    """
    found = [arithmetic(name) for name in names]
    for one in found:
        if all(one.within(other) for other in found):
            return one
    raise SizeError(
        f"a stack in {', '.join(sorted({one.name for one in found}))}: none of these number formats"
        " holds the numbers of all others; use one for all layers"
    )
