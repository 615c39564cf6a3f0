"""Number formats by name, and how many bits each takes per number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from separatrix.core.errors import SpecError

DIGITS = {"fp64": 53, "fp32": 24, "fp16": 11, "bf16": 8}
"""Significant binary digits of the floating-point formats that PyTorch computes in."""
FORMATS = {"fp64": 64, "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}


@dataclass(frozen=True)
class NumberFormat:
    """A number format: a name of `FORMATS`, or `pN` for N bits per number (1 <= N <= 4096)."""

    name: str

    def __post_init__(self) -> None:
        self.bits  # noqa: B018  (raises on a bad name)

    @property
    def bits(self) -> int:
        """Bits per number. Raises SpecError for a name that is no format."""
        if self.name in FORMATS:
            return FORMATS[self.name]
        match = re.fullmatch(r"p([1-9][0-9]{0,3})", self.name)
        if match is None or int(match[1]) > 4096:
            raise SpecError(
                f"unknown number format '{self.name}': use {', '.join(FORMATS)}, or pN with N from"
                " 1 to 4096 bits"
            )
        return int(match[1])

    @property
    def digits(self) -> int:
        """Significant binary digits; of a format not in `DIGITS`, at most its bits."""
        return DIGITS.get(self.name, self.bits)

    def __str__(self) -> str:
        return self.name


def summed_in(name: str) -> str:
    """The format in which numbers of that format are summed: fp32, or their own where it is
    wider.
    """
    return name if NumberFormat(name).bits > 32 else "fp32"
