"""What a softmax keeps while it sums: the number format of its accumulators, and whether a running
maximum stands among them.
"""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.stacks.mechanisms.base import Mechanism, flag, number_format


@dataclass(frozen=True, kw_only=True)
class Accumulating(Mechanism):
    """Numerators, denominator and running maximum of a softmax.

    The defaults are what this project's mixers and FlashAttention do;
    `tests/contract/test_accumulators.py` holds the two together.
    """

    accumulator: str | None = number_format(
        None, "number format of the softmax accumulators; fp32, or format if wider, if not given"
    )
    running_max: bool = flag(True, "whether the accumulator also carries a running maximum")

    @property
    def accumulator_format(self) -> str:
        """The number format in which the softmax sums."""
        return self.accumulator or summed_in(self.format)

    @property
    def accumulator_bits(self) -> int:
        """Bits per number of the accumulators."""
        return NumberFormat(self.accumulator_format).bits

    @property
    def formats(self) -> frozenset[str]:
        return super().formats | {self.accumulator_format}

    @property
    def sums_assumed(self) -> str:
        """What is assumed of the accumulators, and whether no mixer here keeps them so."""
        what = "numerators, denominator and running maximum"
        if not self.running_max:
            what = "numerators and denominator"
        text = f"softmax accumulators ({what}) hold {self.accumulator_bits} bits per number"
        usual = NumberFormat(summed_in(self.format)).bits
        if self.accumulator_bits < usual or not self.running_max:
            text += (
                "; this is less than the mixers here and FlashAttention keep"
                f" ({usual} bits and a running maximum)"
            )
        return text
