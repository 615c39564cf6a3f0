"""JSON as evidence may hold it: no key twice, finite numbers, whole characters, not too deep; and
its values as the types that a class says, or an error that names the field.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import json_list, json_object

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
            parse_constant=_float,
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


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise EvidenceError(f"{text[:40]} is no number that evidence may hold")
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


def listed(names: Sequence[str]) -> str:
    """Field names from a file as they may stand in a message: printable, on one line, not too
    many.
    """
    words = [
        name if name.isidentifier() and len(name) <= 60 else repr(name)[:60] for name in names[:12]
    ]
    return ", ".join(words) + (", ..." if len(names) > 12 else "")


def typed(value: Any, hint: Any, where: str) -> Any:
    """`value` as the annotated type; a dataclass stands as an object with exactly its fields, a
    named tuple as a list of them. Raises EvidenceError naming the field.
    """
    if type(value) is hint:
        return value
    origin = get_origin(hint)
    args = get_args(hint)
    entries = json_list(value)
    mapping = json_object(value)
    if hint is Any:
        return value
    if origin is Literal:
        # True == 1, so the type has to agree too
        if value in args and type(value) in {type(a) for a in args}:
            return value
    elif origin in (Union, types.UnionType):
        for arm in args:
            try:
                return typed(value, arm, where)
            except EvidenceError:
                continue
    elif origin is tuple and entries is not None:
        arms = [args[0]] * len(entries) if args[-1] is Ellipsis else list(args)
        if len(arms) == len(entries):
            return tuple(typed(v, a, where) for v, a in zip(entries, arms, strict=True))
    elif origin is list and entries is not None:
        return [typed(v, args[0], where) for v in entries]
    elif origin is dict and mapping is not None:
        return {k: typed(v, args[1], f"{where}.{listed([k])}") for k, v in mapping.items()}
    elif hint is type(None) and value is None:
        return None
    elif _is_record(hint) and mapping is not None:
        hints = _hints(hint)
        if set(mapping) == set(hints):
            return hint(**{n: typed(mapping[n], h, f"{where}.{n}") for n, h in hints.items()})
        raise EvidenceError(
            f"field '{where}' must have exactly its own fields; missing or unknown:"
            f" {listed(sorted(set(hints).symmetric_difference(mapping)))}"
        )
    elif entries is not None and hasattr(hint, "_fields"):
        hints = _hints(hint)
        if len(entries) == len(hints):
            pairs = zip(hints.items(), entries, strict=True)
            return hint(*(typed(v, h, f"{where}.{n}") for (n, h), v in pairs))
    raise EvidenceError(
        f"field '{where}' holds {str(value)[:60]!r}, which is no {getattr(hint, '__name__', hint)};"
        " the file was edited or damaged"
    )


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and bool(is_dataclass(hint))


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The fields of a dataclass or a named tuple with their types."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)} if is_dataclass(cls) else hints
