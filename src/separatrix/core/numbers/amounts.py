"""Amounts as people write and read them: bytes ('2GiB', '1.5GB', '4096 bytes'), tokens of context
('131072', '131,072', '256k') and counts ('13 G').
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from separatrix.core.errors import SizeError

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
LARGE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
"""Units in which bytes are written from 1,024 of them on, each 1,024 times the one before."""
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


def format_bytes(bits: int, *, decimals: int = 1) -> str:
    """Bits as bytes for people, in powers of 1024 with one decimal: 16.4 MiB; whole bytes below
    1 KiB; '5 bits' where bytes are not whole.
    """
    if bits % 8 and bits < 8 * 1024:
        return f"{bits:,} bit{'s' if bits != 1 else ''}"
    value = Fraction(bits, 8)
    if value < 1024:
        return f"{int(value):,} {'byte' if value == 1 else 'bytes'}"
    unit = "bytes"
    for larger in LARGE_UNITS:
        value = value / 1024
        unit = larger
        # from 1,023.95 on one decimal rounds to 1,024.0, which the next unit writes as 1.0
        if 2 * 10**decimals * (1024 - value) > 1:
            break
    return f"{float(value):,.{decimals}f} {unit}"


def bytes_of(bits: int | Fraction) -> int | float:
    """Bits as a number of bytes for machines: an integer where they are whole."""
    value = Fraction(bits) / 8
    return value.numerator if value.denominator == 1 else float(value)


_LONGEST_WRITTEN = 15
"""Digits of the longest count that is written out."""
_SUFFIXES = ((10**3, "k"), (10**6, "M"), (10**9, "G"), (10**12, "T"))


def format_count(value: int, *, shorten_from: int = 10**6) -> str:
    """A count for people: '12,345', '90.4 M', 'about 10^19'.

    From `shorten_from` on it has three digits and a suffix, beyond 999 T only its power of ten.
    """
    if value >= max(shorten_from, 1000):
        for power, suffix in _SUFFIXES:
            # from 999.5 k on three digits round to 1,000 k, which the next suffix writes as 1 M
            if 2 * value < 1999 * power:
                return f"{value / power:.3g} {suffix}"
    digits = len(str(value))
    return f"{value:,}" if digits <= _LONGEST_WRITTEN else f"about 10^{digits - 1}"


def rounded_up(value: int) -> str:
    """A positive integer of any size in three digits, rounded up: "5.97e23"."""
    with localcontext(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX):
        return f"{+Decimal(value):.2e}".replace("+", "")


def format_share(part: int | Fraction, whole: int = 1) -> str:
    """A share in percent with one decimal, rounded down: what is not all is never "100.0 %"."""
    tenths = 1000 * part // whole
    return f"{tenths // 10}.{tenths % 10} %"


def format_times(value: int, unit: int) -> str:
    """How often a size is another, for people: "937 times", "1.5 times", "1.002 times"."""
    ratio = Fraction(value, unit)
    if ratio >= 10:
        return f"{format_count(round(ratio), shorten_from=_SHORT_RATIO)} times"
    # as many digits as it takes to see that it is more than once
    digits = next((k for k in range(2, 12) if round(ratio - 1, k - 1)), 12)
    return f"{float(ratio):.{digits}g} times"


_SHORT_RATIO = 10**9
LONGEST_CONTEXT = 10**12
"""Tokens."""
DEFAULT_CONTEXT = 8192
"""Tokens, where nobody names a context and the model has none of its own."""
_TOKEN_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}
_TOKENS = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)([kKmM]?)")
_CONTEXT_WAYS = (
    "it must be a number of tokens from 1 to 1,000,000,000,000, such as 131072 or 128k (k is 1,024"
    " tokens, M is 1,048,576)"
)


def check_context(context: object, what: str = "context") -> int:
    """The context, or SizeError unless it is an integer from 1 to 10^12, as `what` in it."""
    if type(context) is not int or not 1 <= context <= LONGEST_CONTEXT:
        shown = (
            repr(context)
            if not isinstance(context, int) or abs(context) < 10**15
            else f"about 2^{context.bit_length()}"
        )
        raise SizeError(f"{what} is {shown[:40]}; {_CONTEXT_WAYS}")
    return context


def parse_context(text: str, what: str = "context") -> int:
    """A context as people write it: 131072, 131_072, 131,072, 128k or 1M.

    As models' names have it, k is 1,024 tokens and M is 1,048,576, in either case of the letter.
    Raises SizeError for anything else, and outside 1 to 10^12.
    """
    match = _TOKENS.fullmatch(text.strip())
    if match is None:
        raise SizeError(f"{what} is '{text[:40]}'; {_CONTEXT_WAYS}")
    digits = match[1].replace("_", "").replace(",", "")
    if len(digits) > 40:
        raise SizeError(f"{what} is {digits[:37]}...; {_CONTEXT_WAYS}")
    return check_context(int(digits) * _TOKEN_UNITS[match[2].lower()], what)
