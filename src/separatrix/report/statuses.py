"""The three answers, SOLVABLE, FAILS and OPEN: their colours, classes and signs."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.evidence.records import Status


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
COLOURS = {status: face.colour for status, face in FACES.items()}
CSS = {status: face.css for status, face in FACES.items()}
