"""Runs of a store as a table in a CSV file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from separatrix.core.errors import SpecError
from separatrix.core.evidence.canonical import json_object
from separatrix.core.evidence.folder import check_new, write_atomic


def check_output(path: Path) -> None:
    """Raises SpecError for a file of another kind, OutputError for one that is there already, as
    the store itself is: before anything is read.
    """
    if path.suffix.lower() != ".csv":
        raise SpecError(f"{path}: runs are exported to .csv")
    check_new(path)


def write_runs(path: Path, objects: Iterable[str]) -> None:
    """Runs as the store tells them in JSON, a row each and a column for each field; those of `run`
    and `outcome` stand behind its name (`run.seed`). Raises OutputError.
    """
    rows = [_flat(json.loads(each)) for each in objects]
    columns = [*dict.fromkeys(name for row in rows for name in row)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_plain, map(row.get, columns)) for row in rows)
    write_atomic(path, text.getvalue())


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    # of a damaged run nothing is there
    inner = {name: json_object(row.pop(name)) or {} for name in ("run", "outcome")}
    return row | {f"{name}.{key}": x for name, part in inner.items() for key, x in part.items()}


def _plain(cell: Any) -> Any:
    """As CSV has it: lists as JSON, what is missing empty."""
    return json.dumps(cell) if isinstance(cell, list) else cell
