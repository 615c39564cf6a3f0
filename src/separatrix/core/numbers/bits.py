"""How many numbers of how many bits each something takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from separatrix.core.errors import SizeError


@total_ordering
@dataclass(frozen=True, eq=False)
class Bits:
    """How many numbers of how many bits each: a sum of `numbers * width`; compares by its total,
    exactly.
    """

    parts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, numbers: int, width: int) -> Bits:
        """`numbers` numbers of `width` bits each. Raises SizeError if either is negative."""
        if numbers < 0 or width < 0:
            raise SizeError(f"{numbers} numbers of {width} bits: neither may be negative")
        return cls(((numbers, width),)) if numbers and width else cls()

    @property
    def numbers(self) -> int:
        return sum(count for count, _ in self.parts)

    @property
    def total(self) -> int:
        """Total in bits."""
        return sum(count * width for count, width in self.parts)

    def __add__(self, other: Bits) -> Bits:
        widths: dict[int, int] = {}
        for count, width in (*self.parts, *other.parts):
            widths[width] = widths.get(width, 0) + count
        return Bits(tuple((count, width) for width, count in sorted(widths.items())))

    def __mul__(self, times: int) -> Bits:
        return sum_bits(Bits.of(count * times, width) for count, width in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bits) and self.total == other.total

    def __lt__(self, other: Bits) -> bool:
        return self.total < other.total

    def __hash__(self) -> int:
        return hash(self.total)

    def __str__(self) -> str:
        return " + ".join(f"{count:,} x {width} bits" for count, width in self.parts) or "0 bits"


def sum_bits(parts: Iterable[Bits]) -> Bits:
    """All of them together, widths side by side."""
    return sum(parts, Bits())
