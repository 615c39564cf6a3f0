"""Runs of a store as one table in a file, a row each, with typed columns: CSV, or parquet with the
extra "export".
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

from separatrix.core.errors import MissingExtraError, SpecError
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.numbers.wilson import wilson_of_answers
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.sweeps.reading import Stored

CSV = ".csv"
PARQUET = ".parquet"
METRICS = ("key", "step", "loss", "accuracy", "learning_rate")
TYPES: dict[str, Any] = {
    **dict.fromkeys(("correct", "right", "due", "step", "parameters", "completions"), int),
    **dict.fromkeys(("accuracy", "accuracy_low", "accuracy_high", "chance", "loss"), float),
    **dict.fromkeys(("answer_accuracy", "answer_accuracy_low", "answer_accuracy_high"), float),
    **dict.fromkeys(("bits", "bits_squares", "wall_seconds"), float),
    **dict.fromkeys(("longer_correct", "longer_right", "longer_due"), list[int]),
    **dict.fromkeys(("formats_correct", "formats_right"), list[int]),
    "formats_bits": list[float],
    **dict.fromkeys(("created", "ended"), datetime),
    **get_type_hints(Run),
}
"""Column -> what it holds; texts otherwise."""


def check_outputs(store: Path, *paths: Path | None) -> None:
    """Raises SpecError for a file of another kind, for one that is written twice or is the store
    itself, and MissingExtraError where the package that writes it is not installed: before anything
    is read.
    """
    taken = {store.resolve()}
    for path in filter(None, paths):
        if path.resolve() in taken:
            raise SpecError(f"{path} would be overwritten by what is exported; name another file")
        taken.add(path.resolve())
        kind = path.suffix.lower()
        if kind not in (CSV, PARQUET):
            raise SpecError(f"{path}: runs are exported to .csv or .parquet; name the file so")
        if kind == PARQUET and find_spec("pyarrow") is None:
            raise MissingExtraError.of("exporting to parquet", "export")


def write_runs(path: Path, rows: Sequence[Stored]) -> None:
    """The runs as a file of the kind that its name has. Raises OutputError."""
    _write(path, map(_record, rows))


def write_metrics(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Metrics over time, as the store tells them; a loss that was no number is missing."""
    _write(path, (dict(zip(METRICS, row, strict=True)) for row in rows), METRICS)


def _record(row: Stored) -> dict[str, Any]:
    """The run's own fields between what it is and what came of it. A run's budget of seconds is
    `seconds`; what its training took is `wall_seconds`. `accuracy` and `correct` count prompts,
    what follows `longer_correct` single answers.
    """
    run, o = row.run, row.outcome
    # what diverged was not tested
    tested = o if o and o.tested else None
    prompts = _interval(tested.correct, tested.tested, tested.tested) if tested else (None, None)
    answers = _interval(tested.right, tested.due, tested.tested) if tested else (None, None)
    return {
        "key": row.key,
        "sweep": row.sweep,
        "status": row.status,
        **{field.name: getattr(run, field.name) for field in fields(Run)},
        "stopped": o and o.stopped,
        "correct": o and o.correct,
        "accuracy": tested and tested.correct / tested.tested,
        "accuracy_low": prompts[0],
        "accuracy_high": prompts[1],
        "chance": _chance(run.task),
        "longer_correct": o and o.longer,
        "right": tested and tested.right,
        "due": tested and tested.due,
        "answer_accuracy": tested and tested.right / tested.due,
        "answer_accuracy_low": answers[0],
        "answer_accuracy_high": answers[1],
        "bits": tested and tested.bits,
        "bits_squares": tested and tested.bits_squares,
        "longer_right": tested and tested.longer_right,
        "longer_due": tested and tested.longer_due,
        "formats_correct": tested and [each.correct for each in tested.formats],
        "formats_right": tested and [each.right for each in tested.formats],
        "formats_bits": tested and [each.bits for each in tested.formats],
        "step": row.step,
        "parameters": o and o.parameters,
        "wall_seconds": row.seconds,
        "error": row.error,
        "version": row.version,
        "host": row.host,
        "created": datetime.fromtimestamp(row.created, UTC),
        "ended": None if row.ended is None else datetime.fromtimestamp(row.ended, UTC),
        "completions": row.completions,
    }


@cache
def _interval(right: int, due: int, tested: int) -> tuple[float, float]:
    low, high = wilson_of_answers(right, due, tested)
    return float(low), float(high)


@cache
def _chance(task: str) -> float:
    return float(parse_task(task).chance)


def _write(
    path: Path, rows: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None
) -> None:
    table = list(rows)
    columns = list(table[0]) if names is None else names
    parquet = path.suffix.lower() == PARQUET
    write_atomic(path, (_parquet if parquet else _csv)(columns, table))


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_plain, row.values()) for row in rows)
    return text.getvalue()


def _plain(cell: Any) -> Any:
    """As CSV has it: lists as JSON, times as ISO 8601, what is missing empty."""
    if isinstance(cell, list | tuple):
        return json.dumps(cell)
    return cell.isoformat(timespec="milliseconds") if isinstance(cell, datetime) else cell


def _parquet(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        int: pa.int64(),
        float: pa.float64(),
        datetime: pa.timestamp("ms", tz="UTC"),
        tuple[str, ...]: pa.list_(pa.string()),
        list[int]: pa.list_(pa.int64()),
        list[float]: pa.list_(pa.float64()),
    }
    schema = pa.schema([(name, types.get(TYPES.get(name), pa.string())) for name in columns])
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, compression="zstd")
    return out.getvalue()
