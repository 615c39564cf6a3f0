"""Sizes as text: the one place where "name:size=value,..." is taken apart and put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.errors import SizeError, SpecError, UnknownNameError

__all__ = ["add_sizes", "check_names", "name_of", "read_sizes", "require", "shown"]

_MOST_DIGITS = 128
_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")


def name_of(text: str) -> str:
    """The name that a task text begins with; empty where it has none."""
    return text.partition(":")[0].strip()


def add_sizes(text: str, sizes: Iterable[str]) -> str:
    """A task text with further sizes, each "size=value", behind those it has."""
    more = list(sizes)
    if not more:
        return text
    name, _, own = text.partition(":")
    before = own.strip().rstrip(",")
    return f"{name}:{','.join([before, *more] if before else more)}"


def read_sizes(text: str, usage: str) -> dict[str, Any]:
    """The sizes of a task text, "name:size=value,...": integers as int, words as str. Raises
    SpecError, or SizeError for a number that is too long.
    """
    _, colon, rest = text.partition(":")
    sizes: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise SpecError(
                f"expected size=value, found '{part.strip()}' in the task '{text}'; sizes are"
                f" {usage}"
            )
        if key in sizes:
            raise SpecError(f"size '{key}' is given twice in the task '{text}'")
        if not _INTEGER.fullmatch(value):
            sizes[key] = value
            continue
        # Python itself refuses to read integers of thousands of digits
        if len(value) > _MOST_DIGITS:
            raise SizeError(
                f"{key}={value[:12]}... in the task '{text[:40]}...' is too large; no size goes"
                " beyond 10^100"
            )
        sizes[key] = int(value)
    return sizes


def check_names(
    task: str, usage: str, sizes: Mapping[str, Any], known: Sequence[str], *, needed: Sequence[str]
) -> None:
    """Raises UnknownNameError for a size that is not known, SizeError for a needed one that is
    missing.
    """
    for name in sizes:
        if name not in known:
            raise UnknownNameError.of("size", name, known, where=f" of task '{task}'")
    for name in needed:
        if name not in sizes:
            raise SizeError(f"{task}: the size {name} is missing; sizes are {usage}")


def require(
    task: str, name: str, value: Any, low: int, high: int, *, drawn: int | None = None
) -> int:
    """`value` as an int in [low, high], or a SizeError that names the task, the size and the
    smallest value that instances are drawn for: `drawn`, where that is more than `low`.
    """
    # not isinstance: to it True and False are integers
    if type(value) is not int or not low <= value <= high:
        least = low if drawn is None else max(low, drawn)
        judged = f" (from {shown(low)} where nothing is drawn)" if least > low else ""
        raise SizeError(
            f"{task}: {name} is {shown(value)}; it must be an integer from {shown(least)} to"
            f" {shown(high)}{judged}"
        )
    return value


def shown(value: Any) -> str:
    """A value as an error message shows it: 10^12 and the like for powers of ten, and never
    thousands of digits.
    """
    if not isinstance(value, int) or abs(value) < 10**9:
        return repr(value)[:60]
    if value.bit_length() > 1024:
        return f"about {'-' * (value < 0)}2^{value.bit_length()}"
    digits = str(value)
    return f"10^{len(digits) - 1}" if value == 10 ** (len(digits) - 1) else digits
