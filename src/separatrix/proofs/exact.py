"""Numbers that no format rounds: how many binary digits a computation needs, whatever the order of
its sums.

A sum whose terms are multiples of 2^e and together at most 2^(e + digits) is exact in any format
with so many digits, and so is every partial sum. `Digits` collects what is asked for: of numbers in
the format of the weights, and of those that the mixers hold in float32 at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import BF16, FP16, FP32, Arithmetic
from separatrix.proofs.machine import Array, lowest_bits

ARITHMETIC = (
    "nothing is rounded: every number and every partial sum is held exactly; sigmoid(128) = 1,"
    " sigmoid(-128) = 0 and softplus(-128) = 0 as in float32; below 2^-126 flushed or not"
)
SATURATED = 128.0
"""From here on a sigmoid is 1, and from its opposite on 0, as is a softplus there."""
FORMATS = (FP32, BF16, FP16)
"""Those that a proof may be about."""
NOTHING = 1 << 20
"""Every multiple: the lowest digit of 0."""


@dataclass
class Digits:
    """Binary digits that suffice so far, and the range of the numbers."""

    own: int = 0
    """Of numbers in the format of the weights."""
    summed: int = 0
    """Of numbers in float32, or the format of the weights where it is wider."""
    smallest: int = NOTHING
    """All numbers in the format of the weights are multiples of 2 to this power."""
    largest: float = 0.0
    """The largest of these."""

    def keep(self, size: float, lowest: int, what: str) -> None:
        """Multiples of 2^lowest up to `size`, in the format of the weights. Raises CheckFailed
        where float32 does not hold them.
        """
        self.own = max(self.own, _digits(size, lowest, what))
        if size:
            self.smallest = min(self.smallest, lowest)
            self.largest = max(self.largest, size)

    def sum(self, size: float, lowest: int, what: str) -> None:
        """The same of numbers that are held in float32 at least."""
        self.summed = max(self.summed, _digits(size, lowest, what))

    def numbers(self, x: Array, what: str) -> None:
        """Single numbers in the format of the weights."""
        some = np.abs(x[x != 0.0])
        if len(some):
            bits = lowest_bits(some)
            mantissa, exponent = np.frexp(some)
            most = int((exponent - (mantissa == 0.5) - bits).argmax())
            for place in (most, int(some.argmin()), int(some.argmax()), int(bits.argmin())):
                self.keep(float(some[place]), int(bits[place]), what)

    def formats(self) -> tuple[str, ...]:
        """The formats in which nothing is rounded."""
        return tuple(
            one.name
            for one in FORMATS
            if self.own <= one.digits
            and self.smallest >= one.smallest
            and self.largest <= 2 * one.large
        )

    def hold(self, arithmetic: Arithmetic) -> None:
        """Raises CheckFailed where something may be rounded in an arithmetic."""
        if not (
            self.own <= arithmetic.digits
            and self.summed <= arithmetic.summed_digits
            and self.smallest >= arithmetic.smallest
            and self.largest <= arithmetic.large
        ):
            raise CheckFailed(
                f"{self.own} binary digits are asked for, and {self.summed} of sums: numbers of"
                f" {arithmetic.name} may be rounded"
            )


def _digits(size: float, lowest: int, what: str) -> int:
    """Digits of multiples of 2^lowest up to a size. Raises CheckFailed where float32 has not as
    many, or not such numbers.
    """
    if size == 0:
        return 0
    if not math.isfinite(size):
        raise CheckFailed(f"{what}: a number is not finite")
    mantissa, exponent = math.frexp(size)
    # the least number of digits with size <= 2^(lowest + digits)
    digits = exponent - (mantissa == 0.5) - lowest
    fits = lowest >= FP32.smallest and size <= 2 * FP32.large
    if digits > FP32.digits or not fits:
        raise CheckFailed(
            f"{what}: {digits} binary digits are asked for, so that float32 may round"
        )
    return digits


def lowest(x: Array) -> int:
    """The largest e such that all numbers are multiples of 2^e; very large where all are 0."""
    return int(lowest_bits(x).min(initial=NOTHING))


@dataclass(frozen=True)
class Columns:
    """How large the numbers of each column of a table are at most, and of what they are
    multiples.
    """

    size: Array
    lowest: NDArray[np.int64]

    @classmethod
    def of(cls, x: Array) -> Columns:
        return cls(np.abs(x).max(0, initial=0.0), lowest_bits(x).min(0, initial=NOTHING))

    def plus(self, other: Columns, digits: Digits, what: str) -> Columns:
        """Of sums of a row here and a row there, in the format of the weights."""
        both = Columns(self.size + other.size, np.minimum(self.lowest, other.lowest))
        for size, bits in zip(both.size.tolist(), both.lowest.tolist(), strict=True):
            digits.keep(size, bits, what)
        return both

    def through(self, weight: Array, bias: Array | None, digits: Digits, what: str) -> Columns:
        """Notes what W x + b takes for rows x like these, and tells of its numbers. Raises
        CheckFailed where float32 may round it.
        """
        used = (weight != 0.0) & (self.size != 0.0)
        each = np.where(used, lowest_bits(weight) + self.lowest, NOTHING).min(1, initial=NOTHING)
        size = np.abs(weight) @ self.size
        if bias is not None:
            each = np.minimum(each, lowest_bits(bias))
            size = size + np.abs(bias)
        for one, bits in zip(size.tolist(), each.tolist(), strict=True):
            digits.keep(one, bits, what)
        return Columns(size, each)


@dataclass(frozen=True)
class Exactly:
    """Maps without a rounding, and the binary digits that all of them took so far."""

    digits: Digits = field(default_factory=Digits)

    @classmethod
    def of(cls, model: Model) -> Self:
        """With the digits of all weights of a model, none of which may be rounded."""
        found = cls()
        for name, tensor in model.state_dict().items():
            found.kept(tensor.numpy().astype(np.float64), name)
        return found

    def kept(self, numbers: Array, what: str) -> Array:
        """The numbers. Raises CheckFailed for one that float32 may round."""
        self.digits.numbers(numbers, what)
        return numbers

    def mapped(self, rows: Array, weight: Array, bias: Array | None = None, *, what: str) -> Array:
        """W x + b for each row. Raises CheckFailed where float32 may round it."""
        Columns.of(rows).through(weight, bias, self.digits, what)
        product = rows @ weight.T
        return product if bias is None else product + bias
