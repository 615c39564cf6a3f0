"""JSON as evidence may hold it: no key twice, finite numbers, whole characters, not too deep."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from separatrix.core.errors import EvidenceError

MOST_DEPTH = 64
"""Objects and lists inside each other."""
MOST_DIGITS = 1_000
"""Digits of an integer: sums and products of such are still written in a blink."""


def parse_json(text: str) -> Any:
    """The value that a JSON text stands for. Raises EvidenceError for a text that is not JSON, or
    that another reader could take for something else.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except RecursionError:
        raise EvidenceError("nested too deeply to be evidence") from None
    except ValueError as error:
        raise EvidenceError(f"not JSON, or cut off: {error}") from None
    _shallow(value)
    # halves of surrogate pairs are no text: they can be neither printed nor written
    if "\\u" in text and not _whole(value):
        raise EvidenceError("a text in it holds half a character (a lone surrogate)")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        once: set[str] = set()
        for name, _ in pairs:
            if name in once:
                raise EvidenceError(f"the key {name[:60]!r} stands twice in one object")
            once.add(name)
    return found


def _constant(text: str) -> NoReturn:
    raise EvidenceError(f"{text} is no number that evidence may hold")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise EvidenceError(f"the number {text[:40]} is too large for any field of evidence")
    return value


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise EvidenceError(f"an integer of {len(text):,} digits; at most {MOST_DIGITS:,} are read")
    return int(text)


def _shallow(value: Any) -> None:
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise EvidenceError(f"nested too deeply to be evidence: more than {MOST_DEPTH} levels")


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _whole(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
