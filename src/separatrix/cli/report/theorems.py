"""Theorems, statements and counts explained, for `list theorems`."""

from __future__ import annotations

from separatrix.core.errors import UnknownNameError
from separatrix.tasks.base.references import references
from separatrix.theory import THEOREMS, Theorem
from separatrix.theory.base import SOLVABLE
from separatrix.theory.words import COUNTS, KNOWN
from separatrix.theory.written import BUILT, EXACT

COUNT = "count:"
"""What the key of a count begins with, beside those of theorems."""
SPARED = ("source",)


def rows() -> list[dict[str, str]]:
    """Key, title and source of every theorem, statement and count."""
    found = [
        (key, theorem.title, theorem.source) for key, theorem in (*THEOREMS.items(), *KNOWN.items())
    ]
    for key, count in COUNTS.items():
        found.append((f"{COUNT}{key}", f"{count.title}: {count.statement}", count.source))
    return [{"key": key, "title": title, "source": source} for key, title, source in found]


def describe(key: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of a theorem, a statement or a count. Raises UnknownNameError."""
    if key.startswith(COUNT) and key.removeprefix(COUNT) in COUNTS:
        count = COUNTS[key.removeprefix(COUNT)]
        classes = f"{count.statement} classes of prefixes, at sizes {count.counted_by}"
        return [
            (f"{key}: {count.title}", classes),
            ("proof sketch", count.proof_sketch),
            ("source", count.source),
            ("works", works(count.source)),
        ]
    theorem = THEOREMS.get(key) or KNOWN.get(key)
    if theorem is None:
        known = [*THEOREMS, *KNOWN, *(f"{COUNT}{name}" for name in COUNTS)]
        raise UnknownNameError.of("theorem", key, known, listing="separatrix list theorems")
    parts = [
        (f"{key}: {theorem.title}", theorem.statement),
        ("premises", "\n".join(theorem.premises)),
        ("proof sketch", theorem.proof_sketch),
        ("source", theorem.source),
    ]
    if isinstance(theorem, Theorem) and theorem.shows == SOLVABLE:
        parts.append(("weights", _weights(key)))
    parts.append(("works", works(theorem.source)))
    return [(heading, text) for heading, text in parts if text]


def works(source: str) -> str:
    """What keys in a source stand for, a line each."""
    return "\n".join(f"{key}: {work}" for key, work in references(source).items())


def _weights(key: str) -> str:
    """Whether `construct` writes a construction down."""
    if key not in BUILT:
        return "`separatrix construct` does not build them yet; what is proved is that they exist."
    names = " or ".join(BUILT[key])
    if key in EXACT:
        formats = "float32, bfloat16 and float16"
        return f"`separatrix construct` builds them ({names}), exact in what of {formats} they fit."
    where = (
        "by addresses or by rotations alone" if key == "lookup" else "where addresses are embedded"
    )
    return f"`separatrix construct` builds them in float32 ({names}), {where}."
