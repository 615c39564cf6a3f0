"""JSON lines: one object a line, one file per split. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.source import Rows

_ENCODE: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode


def write(job: Job, folder: Path, columns: Collection[str] | None = None) -> None:
    """Every split as `<split>.jsonl`, with all columns or those named."""
    for split, batches in job.drawn():
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for rows in batches:
                file.writelines(
                    _lines(
                        {
                            name: values
                            for name, values in rows.items()
                            if columns is None or name in columns
                        }
                    )
                )


def _lines(rows: Rows) -> Iterator[str]:
    lists = [values if isinstance(values, list) else values.tolist() for values in rows.values()]
    return (
        _ENCODE(dict(zip(rows, values, strict=True))) + "\n" for values in zip(*lists, strict=True)
    )
