"""The table of constructions: what each takes of a stack, on which sizes every input was run, and
how far each number format is proved to carry it. `tools/constructions.py` records the figures.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError, UnknownNameError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import enveloped, to_plain
from separatrix.core.evidence.typed import typed

FILE = Path(__file__).with_suffix(".json")
KIND = "constructions"
FORMATS = ("fp64", "fp32", "bf16", "fp16")
"""Number formats of the table."""
COLUMNS = (
    "construction",
    "task",
    "layers",
    "heads",
    "d",
    "width",
    "non-zero",
    "theorem's least",
    "every input run",
    "grows",
    *FORMATS,
)
BRIEF = ("construction", "task", "layers", "d", "width", "grows", *FORMATS)
"""The columns that a terminal has room for."""
NOTE = (
    "d: dimensions of keys or values that a head uses, the larger of both. Theorem's least: the"
    " fewest layers, and dimensions of one head in each, with which the theorem behind it calls the"
    " task solvable. Every input run: the largest size of which all inputs were answered, and how"
    " many they are. fp64 to fp16: the largest size proved in that format, all other sizes fixed;"
    " >= where no larger one was tried."
)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How far one number format carries a construction."""

    size: int | None
    """The largest size proved; None where not even the smallest is."""
    capped: bool
    """Whether no larger size was tried."""

    def __str__(self) -> str:
        if self.size is None:
            return "none"
        return f">= {self.size:,}" if self.capped else f"{self.size:,}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One construction, at a size at which its stack is described."""

    name: str
    theorem: str
    task: str
    architecture: str
    layers: int
    heads: int
    head_dim: int
    """The larger of what keys and values take."""
    width: int
    nonzero: int
    least_layers: int | None
    """What the theorem asks for at least; None where it names no stack of this kind."""
    least_head_dim: int | None
    exhaustive: str
    """The largest task of which every input was run; empty for none."""
    inputs: int
    grows: str
    """The size that grows, as the family names it."""
    proved: dict[str, Limit]
    """By number format."""

    def cells(self) -> dict[str, str]:
        """The row as the table has it, by column."""
        dims = "" if self.least_head_dim is None else f", d = {self.least_head_dim:,}"
        several = "s" * ((self.least_layers or 0) > 1)
        numbers = (self.layers, self.heads, self.head_dim, self.width, self.nonzero)
        cells = (
            self.name,
            self.task,
            *(f"{number:,}" for number in numbers),
            "-" if self.least_layers is None else f"{self.least_layers:,} layer{several}{dims}",
            f"{self.exhaustive} ({self.inputs:,})" if self.exhaustive else "-",
            self.grows,
            *(str(self.proved[one]) for one in FORMATS),
        )
        return dict(zip(COLUMNS, cells, strict=True))


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """All rows, and where they come from."""

    commit: str
    command: str
    date: str
    seconds: float
    rows: tuple[Row, ...]


def read_recorded(path: Path = FILE) -> Recorded:
    """The figures of the package. Raises EvidenceError where the file is missing, edited or of
    another version.
    """
    data = json_object(read_json(path))
    body: Any = None if data is None else json_object(data.get("body"))
    if data is None or body is None or canonical(data) != canonical(enveloped(KIND, body)):
        raise EvidenceError(f"{path}: edited or damaged; write it again with `make constructions`")
    return typed(body, Recorded, "recorded constructions")


def rows() -> list[dict[str, Any]]:
    """Every construction as data: what it solves and takes, and what is recorded of it."""
    from separatrix.constructions import CONSTRUCTIONS

    found = {row.name: row for row in read_recorded().rows}
    return [
        {
            "construction": recipe.name,
            "solves": recipe.task.name,
            "theorem": recipe.theorem,
            "takes": recipe.takes,
            "recorded": to_plain(asdict(found[recipe.name])) if recipe.name in found else None,
        }
        for recipe in CONSTRUCTIONS.values()
    ]


def brief(wide: bool) -> list[dict[str, str]]:
    """The table as a terminal has room for it."""
    lines = [row.cells() for row in read_recorded().rows]
    return [{name: line[name] for name in BRIEF} for line in lines]


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one construction. Raises UnknownNameError."""
    from separatrix.constructions import CONSTRUCTIONS

    if name not in CONSTRUCTIONS:
        listing = "separatrix list constructions"
        raise UnknownNameError.of("construction", name[:60], CONSTRUCTIONS, listing=listing)
    recipe = CONSTRUCTIONS[name]
    parts = [
        (f"{name}: solves {recipe.task.name}", recipe.takes),
        ("theorem", f"{recipe.theorem}; `separatrix list theorems {recipe.theorem}` explains it"),
    ]
    for row in (one for one in read_recorded().rows if one.name == name):
        carried = (f"{one}: {limit}" for one, limit in row.proved.items())
        parts += [
            ("an example", f"{row.task} by {row.architecture}"),
            (f"the largest {row.grows} proved in each format", "\n".join(carried)),
            ("written", f"separatrix construct {row.task} --kind {name} --out model/"),
        ]
    return parts
