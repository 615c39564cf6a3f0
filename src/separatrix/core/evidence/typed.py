"""Values of JSON as the types that a class says, or an error that names the field."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import json_list, json_object


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
