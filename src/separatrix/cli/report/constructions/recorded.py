"""The recorded figures of every construction, with the commit and command that gave them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import enveloped, to_plain
from separatrix.core.evidence.typed import typed

FILE = Path(__file__).parent / "recorded.json"
KIND = "constructions"
FORMATS = ("fp64", "fp32", "bf16", "fp16")
"""Number formats of the table."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How far one number format carries a construction."""

    size: int | None
    """The largest size proved; None where not even the smallest is."""
    capped: bool
    """Whether no larger size was tried."""


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


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """All rows, and where they come from."""

    commit: str
    command: str
    date: str
    seconds: float
    rows: tuple[Row, ...]

    def text(self) -> str:
        """The content of the file: a row a line, so that a change shows what changed."""
        envelope = enveloped(KIND, to_plain(asdict(self)))
        body = envelope.pop("body")
        rows = ",\n".join(canonical(row) for row in body.pop("rows"))
        return f'{{"body": {{{_inside(body)}, "rows": [\n{rows}\n]}}, {_inside(envelope)}}}\n'


def _inside(fields: dict[str, Any]) -> str:
    """An object as JSON, without its braces."""
    return json.dumps(fields, sort_keys=True)[1:-1]


def read_recorded(path: Path = FILE) -> Recorded:
    """The figures of the package. Raises EvidenceError where the file is missing, edited or of
    another version.
    """
    data = json_object(read_json(path))
    body: Any = None if data is None else json_object(data.get("body"))
    if data is None or body is None or canonical(data) != canonical(enveloped(KIND, body)):
        raise EvidenceError(f"{path}: edited or damaged; write it again with `make constructions`")
    return typed(body, Recorded, "recorded constructions")
