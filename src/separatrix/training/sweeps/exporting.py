"""Runs of a store as one table in a file, a row each, with typed columns: CSV, or parquet with the
extra "export".
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

from separatrix.core.errors import MissingExtraError, SpecError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.tasks import parse_task
from separatrix.training.run import Run
from separatrix.training.sweeps.stored import Stored

CSV = ".csv"
PARQUET = ".parquet"
Kind = Literal["text", "integer", "number", "time", "texts", "integers", "numbers"]
Cell = None | str | int | float | datetime | list[str] | list[int] | list[float]


class Column(NamedTuple):
    name: str
    kind: Kind


METRICS = (
    Column("key", "text"),
    Column("step", "integer"),
    Column("loss", "number"),
    Column("accuracy", "number"),
    Column("learning_rate", "number"),
)


ANSWERS = (
    Column("right", "integer"),
    Column("due", "integer"),
    Column("answer_accuracy", "number"),
    Column("answer_accuracy_low", "number"),
    Column("answer_accuracy_high", "number"),
    Column("bits", "number"),
    Column("bits_squares", "number"),
    Column("longer_right", "integers"),
    Column("longer_due", "integers"),
    Column("formats_correct", "integers"),
    Column("formats_right", "integers"),
    Column("formats_bits", "numbers"),
)
"""Of single answers: `accuracy` and `correct` count prompts."""


def check_outputs(store: Path, *paths: Path | None) -> None:
    """Raises SpecError for a file of another kind, for one that is written twice or is the store
    itself, and MissingExtraError where the package that writes it is not installed: before anything
    is read.
    """
    taken = {store.resolve()}
    for path in paths:
        if path is None:
            continue
        if path.resolve() in taken:
            raise SpecError(f"{path} would be overwritten by what is exported; name another file")
        taken.add(path.resolve())
        kind = path.suffix.lower()
        if kind not in (CSV, PARQUET):
            raise SpecError(f"{path}: runs are exported to .csv or .parquet; name the file so")
        if kind == PARQUET and find_spec("pyarrow") is None:
            raise MissingExtraError.of("exporting to parquet", "export")


def columns() -> tuple[Column, ...]:
    """What the table of runs has: the run's own fields between what it is and what came of it.
    A run's budget of seconds is `seconds`; what its training took is `wall_seconds`.
    """
    return (
        Column("key", "text"),
        Column("sweep", "text"),
        Column("status", "text"),
        *(Column(field.name, _kind(field.name)) for field in fields(Run)),
        Column("stopped", "text"),
        Column("correct", "integer"),
        Column("accuracy", "number"),
        Column("accuracy_low", "number"),
        Column("accuracy_high", "number"),
        Column("chance", "number"),
        Column("longer_correct", "integers"),
        *ANSWERS,
        Column("step", "integer"),
        Column("parameters", "integer"),
        Column("wall_seconds", "number"),
        Column("error", "text"),
        Column("version", "text"),
        Column("host", "text"),
        Column("created", "time"),
        Column("ended", "time"),
        Column("completions", "integer"),
    )


def write_runs(path: Path, rows: Sequence[Stored]) -> None:
    """The runs as a file of the kind that its name has. Raises OutputError."""
    _write(path, columns(), map(_cells, rows))


def write_metrics(path: Path, rows: Iterable[Sequence[Cell]]) -> None:
    """Metrics over time, as the store tells them; a loss that was no number is missing."""
    _write(path, METRICS, rows)


def _cells(row: Stored) -> list[Cell]:
    run = row.run
    outcome = row.outcome
    # what diverged was not tested
    correct, tested = (outcome.correct, outcome.tested) if outcome is not None else (None, None)
    low, high = (
        map(float, _interval(correct, tested)) if correct is not None and tested else (None, None)
    )
    return [
        row.key,
        row.sweep,
        row.status,
        *(_plain_field(getattr(run, field.name)) for field in fields(Run)),
        None if outcome is None else outcome.stopped,
        correct,
        correct / tested if correct is not None and tested else None,
        low,
        high,
        _chance(run.task),
        None if outcome is None else list(outcome.longer),
        *_answers(outcome),
        row.step,
        None if outcome is None else outcome.parameters,
        row.seconds,
        row.error,
        row.version,
        row.host,
        _time(row.created),
        _time(row.ended),
        row.completions,
    ]


def _answers(outcome: Outcome | None) -> list[Cell]:
    """What `ANSWERS` names; nothing of a run that was not tested, or by a version that did not
    count single answers.
    """
    if outcome is None or not outcome.due:
        return [None] * len(ANSWERS)
    low, high = wilson_of_answers(outcome.right, outcome.due, outcome.tested)
    return [
        outcome.right,
        outcome.due,
        outcome.right / outcome.due,
        float(low),
        float(high),
        outcome.bits,
        outcome.bits_squares,
        list(outcome.longer_right),
        list(outcome.longer_due),
        [each.correct for each in outcome.formats],
        [each.right for each in outcome.formats],
        [each.bits for each in outcome.formats],
    ]


def _plain_field(value: Any) -> Cell:
    return list(value) if isinstance(value, tuple) else value


@cache
def _interval(correct: int, tested: int) -> tuple[str, str]:
    return wilson(correct, tested)


@cache
def _chance(task: str) -> float:
    return float(parse_task(task).chance)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


@cache
def _kind(name: str) -> Kind:
    hint = get_type_hints(Run)[name]
    if get_origin(hint) is tuple:
        return "texts"
    kinds: dict[object, Kind] = {int: "integer", float: "number"}
    return kinds.get(hint, "text")


def _write(path: Path, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    parquet = path.suffix.lower() == PARQUET
    write_atomic(path, _parquet(columns, rows) if parquet else _csv(columns, rows))


def _csv(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    writer.writerows(_plain(row) for row in rows)
    return text.getvalue()


def _plain(row: Sequence[Cell]) -> Iterator[str | int | float | None]:
    """A row as CSV has it: lists as JSON, times as ISO 8601, what is missing empty."""
    for cell in row:
        if isinstance(cell, list):
            yield json.dumps(cell)
        elif isinstance(cell, datetime):
            yield cell.isoformat(timespec="milliseconds")
        else:
            yield cell


def _parquet(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "time": pa.timestamp("ms", tz="UTC"),
        "texts": pa.list_(pa.string()),
        "integers": pa.list_(pa.int64()),
        "numbers": pa.list_(pa.float64()),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    table = pa.Table.from_arrays(
        [pa.array(part, field.type) for part, field in zip(cells, schema, strict=True)],
        schema=schema,
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()
