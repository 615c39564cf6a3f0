"""Mechanisms and theorems explained, for `mechanisms show` and `theorems show`."""

from __future__ import annotations

import inspect
from dataclasses import fields

from separatrix.architecture import MECHANISMS
from separatrix.errors import UnknownNameError


def describe_mechanism(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs. Raises UnknownNameError."""
    if name not in MECHANISMS:
        raise UnknownNameError.of("mechanism", name, MECHANISMS, listing="separatrix mechanisms")
    cls = MECHANISMS[name]
    example = cls()
    sizes = "\n".join(f"{f.name} = {f.default}   {f.metadata.get('text', '')}" for f in fields(cls))
    items = [f"{item.kind}: {item.bits}" for item in example.cache(1000) if item.bits.total]
    parts = [
        (f"{name}: {cls.title}", " ".join((inspect.getdoc(cls) or "").split())),
        ("sizes and their defaults", sizes),
        ("carried after 1,000 tokens at the defaults", "\n".join(items) or "nothing"),
    ]
    if cls.reading:
        parts.append(("read_bits at the defaults", f"h = {example.read_bits():,} bits"))
    return [*parts, ("source", cls.source)]


def describe_theorem(key: str) -> list[tuple[str, str]]:
    """(heading, text) pairs. Raises UnknownNameError."""
    from separatrix.theory import THEOREMS

    if key not in THEOREMS:
        raise UnknownNameError.of("theorem", key, THEOREMS, listing="separatrix theorems")
    theorem = THEOREMS[key]
    return [
        (f"{key}: {theorem.title}", theorem.statement),
        ("premises", "\n".join(theorem.premises)),
        ("proof sketch", theorem.proof_sketch),
        ("source", theorem.source),
    ]
