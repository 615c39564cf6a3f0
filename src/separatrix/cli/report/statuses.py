"""The three answers, SOLVABLE, FAILS and OPEN, and theorems, as they look in print."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.evidence.records import Status


@dataclass(frozen=True)
class Face:
    """How a status looks: its colour in a terminal, its class in a page, and its sign."""

    colour: str
    css: str
    sign: str
    ascii_sign: str


FACES: dict[Status, Face] = {
    "SOLVABLE": Face("bold blue", "solves", "✓", "+"),
    "FAILS": Face("bold red", "fails", "✗", "x"),
    "OPEN": Face("bold yellow", "open", "?", "?"),
}
"""A status is written as it stands in the records, in every place: SOLVABLE, FAILS, OPEN."""
COLOURS: dict[str, str] = {status: face.colour for status, face in FACES.items()}
COLOURS["FAIL"] = "bold red"
"""Words that a terminal colours; a law that is broken among them."""


def theorem_name(key: str) -> str:
    """A theorem as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction: retrieval";
    "" for none.
    """
    from separatrix.theory import THEOREMS

    theorem = THEOREMS.get(key)
    if theorem is not None:
        return theorem.cited
    return f"Theorem {key}" if key else ""


def where(n: int | None, theorem: str) -> str:
    """Where a theorem shows failure, behind a word: " from n = 7,675,932 on", " at n = 282", ""
    where no n is known.
    """
    from separatrix.theory import THEOREMS

    return "" if n is None else f" {THEOREMS[theorem].failing(n)}"
