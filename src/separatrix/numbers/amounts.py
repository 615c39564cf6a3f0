"""Amounts as people write them: bytes ('2GiB', '512 MiB', '1.5GB', '4096 bytes') and tokens
('131072', '131,072').
"""

from __future__ import annotations

import re
from fractions import Fraction

from separatrix.errors import SizeError

BYTE_UNITS = {
    "bit": Fraction(1, 8),
    "bits": Fraction(1, 8),
    "B": Fraction(1),
    "byte": Fraction(1),
    "bytes": Fraction(1),
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    "KB": Fraction(1000),
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
    "kiB": Fraction(1024),
}
"""Unit -> bytes; powers of 1000 without an i, powers of 1024 with one (IEC 80000-13)."""
LARGEST_BYTES = 1 << 100
_QUANTITY = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-z]*)")
_WAYS = "write a number and a unit, such as 2GiB, 512MiB or 1.5GB"


def parse_bits(text: str, *, what: str = "size") -> int:
    """The whole bits of a byte size; `what` names the field in errors. Raises SizeError without
    a number, a unit or a whole number of bits.
    """
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise SizeError(f"{what}: '{shown}' is no amount of memory; {_WAYS}")
    digits = match[1].replace("_", "").replace(",", "")
    unit = match[2]
    if not unit:
        raise SizeError(f"{what}: '{shown}' has no unit; {_WAYS}")
    if unit not in BYTE_UNITS:
        near = next((known for known in BYTE_UNITS if known.lower() == unit.lower()), None)
        hint = f"did you mean '{near}'?" if near else f"known are {', '.join(BYTE_UNITS)}"
        raise SizeError(f"{what}: '{shown}' has the unknown unit '{unit}'; {hint}")
    if len(digits) > 40:
        raise SizeError(f"{what}: '{shown}' is too large; at most 2^100 bytes are read")
    bits = Fraction(digits) * BYTE_UNITS[unit] * 8
    if not 0 < bits <= 8 * LARGEST_BYTES:
        raise SizeError(
            f"{what}: '{shown}' is out of range; it must be more than 0 and at most 2^100 bytes"
        )
    if bits.denominator != 1:
        raise SizeError(f"{what}: '{shown}' is no whole number of bits; {_WAYS}")
    return bits.numerator


def format_bytes(bits: int) -> str:
    """Bits as bytes for people, in powers of 1024 with one decimal: 16.4 MiB; whole bytes below
    1 KiB; '5 bits' where bytes are not whole.
    """
    if bits % 8 and bits < 8 * 1024:
        return f"{bits:,} bit{'s' if bits != 1 else ''}"
    value = Fraction(bits, 8)
    unit = "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value = value / 1024
        unit = larger
    return (
        f"{int(value):,} {'byte' if value == 1 else 'bytes'}"
        if unit == "bytes"
        else f"{float(value):,.1f} {unit}"
    )


LONGEST_CONTEXT = 10**12
"""Tokens."""


def check_context(context: object) -> int:
    """The context, or SizeError unless it is an integer from 1 to 10^12."""
    if type(context) is not int or not 1 <= context <= LONGEST_CONTEXT:
        shown = (
            str(context)
            if not isinstance(context, int) or abs(context) < 10**15
            else f"about 2^{context.bit_length()}"
        )
        raise SizeError(
            f"context is {shown[:40]}; it must be a number of tokens from 1 to 10^12, such as"
            " 131072"
        )
    return context


def parse_context(text: str) -> int:
    """A context as people write it: 131072, 131_072 or 131,072. Raises SizeError for anything
    else, and outside 1 to 10^12.
    """
    digits = text.strip().replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdigit()):
        raise SizeError(
            f"context is '{text[:40]}'; it must be a number of tokens from 1 to 10^12, such as"
            " 131072 (no units: k may be 1000 or 1024)"
        )
    return check_context(int(digits) if len(digits) < 40 else 10**40)
