"""Theorems and statements explained, for `list theorems`."""

from __future__ import annotations

from separatrix.core.errors import UnknownNameError
from separatrix.tasks.base.references import references
from separatrix.theory import THEOREMS, Theorem
from separatrix.theory.base import SOLVABLE
from separatrix.theory.words import KNOWN
from separatrix.theory.written import BUILT, EXACT

SPARED = ("source",)


def rows() -> list[dict[str, str]]:
    """Key, title and source of every theorem and statement."""
    told = (*THEOREMS.items(), *KNOWN.items())
    return [{"key": key, "title": one.title, "source": one.source} for key, one in told]


def describe(key: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of a theorem or a statement. Raises UnknownNameError."""
    theorem = THEOREMS.get(key) or KNOWN.get(key)
    if theorem is None:
        known = [*THEOREMS, *KNOWN]
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
