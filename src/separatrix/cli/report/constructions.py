"""The table of constructions: what each takes of a stack, on which sizes every input was run, and
how far each number format is proved to carry it. `tools/constructions.py` records the figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.cli.options import PROVED
from separatrix.core.errors import EvidenceError, UnknownNameError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.records import opened

FILE = Path(__file__).with_suffix(".json")
KIND = "constructions"
SPARED = (
    "every input run",
    "theorem's least",
    "non-zero",
    "heads",
    "task",
    "width",
    "d",
    "layers",
    "fp64",
)
NOTE = (
    "d: dimensions of keys or values that a head uses, the larger of both. Theorem's least: the"
    " fewest layers, and dimensions of one head in each, with which the theorem behind it calls the"
    " task solvable. Every input run: the largest size of which all inputs were answered, and how"
    " many they are. fp64 to fp16: the largest size proved in that format, all other sizes fixed;"
    " >= where no larger one was tried."
)


def cells() -> list[dict[str, str]]:
    """What is recorded as the table has it, by column."""
    return [_cells(row) for row in recorded()["rows"]]


def _cells(row: dict[str, Any]) -> dict[str, str]:
    dims = "" if row["least_head_dim"] is None else f", d = {row['least_head_dim']:,}"
    layers = row["least_layers"]
    return {
        "construction": row["name"],
        "task": row["task"],
        "layers": f"{row['layers']:,}",
        "heads": f"{row['heads']:,}",
        "d": f"{row['head_dim']:,}",
        "width": f"{row['width']:,}",
        "non-zero": f"{row['nonzero']:,}",
        "theorem's least": "-" if layers is None else f"{layers:,} layer{'s' * (layers > 1)}{dims}",
        "every input run": (
            f"{row['exhaustive']} ({row['inputs']:,})" if row["exhaustive"] else "-"
        ),
        "grows": row["grows"],
        **{one: limit(row["proved"][one]) for one in PROVED},
    }


def limit(proved: dict[str, Any]) -> str:
    """How far one number format carries a construction: the largest size proved, if any is."""
    if proved["size"] is None:
        return "none"
    return f"{'>= ' * proved['capped']}{proved['size']:,}"


def recorded(path: Path = FILE) -> dict[str, Any]:
    """The figures of the package, and where they come from. Raises EvidenceError where the file is
    missing, edited or of another version.
    """
    data = read_json(path)
    try:
        return opened(data, KIND)[1]
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}; write it again with `make constructions`") from None


def rows() -> list[dict[str, Any]]:
    """Every construction as data: what it solves and takes, and what is recorded of it."""
    from separatrix.constructions import CONSTRUCTIONS

    found = {row["name"]: row for row in recorded()["rows"]}
    return [
        {
            "construction": recipe.name,
            "solves": recipe.task.name,
            "theorem": recipe.theorem,
            "takes": recipe.takes,
            "recorded": found.get(recipe.name),
        }
        for recipe in CONSTRUCTIONS.values()
    ]


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
    for row in (one for one in recorded()["rows"] if one["name"] == name):
        carried = (f"{one}: {limit(proved)}" for one, proved in row["proved"].items())
        parts += [
            ("an example", f"{row['task']} by {row['architecture']}"),
            (f"the largest {row['grows']} proved in each format", "\n".join(carried)),
            ("written", f"separatrix construct {row['task']} --kind {name} --out model/"),
        ]
    return parts
