"""Sizes that files give as factors of another one."""

from __future__ import annotations

from fractions import Fraction

from separatrix.stacks.architecture.hf.draft import Size, Unknown
from separatrix.stacks.architecture.hf.fields import LARGEST, Fields, shown


def factor(fields: Fields, *names: str) -> Fraction | Unknown:
    """The positive number under one of these spellings (an expansion factor), unknown if it is
    missing. Raises ConfigError if it is none.
    """
    name = fields.find(*names)
    if name is None:
        first, *others = names
        return Unknown(
            (
                f"'{first}' is missing"
                + (f" (also looked for {', '.join(others)})" if others else ""),
            )
        )
    value = fields.data[name]
    if type(value) not in (int, float) or not 0 < value <= LARGEST:  # not a number compares false
        raise fields.error(
            f"'{name}' is {shown(value)}; it must be a positive number of at most {LARGEST:,}"
        )
    # through text: 1.3 means 13/10, not the float nearest to it
    return Fraction(str(value))


def scaled(fields: Fields, whole: Size, *names: str) -> Size:
    """`whole` times a factor, where that is an integer. Raises ConfigError where it is not."""
    by = factor(fields, *names)
    if isinstance(whole, Unknown) or isinstance(by, Unknown):
        # the sum is unknown, and names what was looked for on either side
        return (whole if isinstance(whole, Unknown) else Unknown(())) + (
            by if isinstance(by, Unknown) else 1
        )
    size = whole * by
    if size.denominator != 1 or not 1 <= size <= LARGEST:
        raise fields.error(
            f"'{fields.find(*names)}' is {fields.data[str(fields.find(*names))]}, which times"
            f" {whole} is no size; correct it"
        )
    return int(size)
