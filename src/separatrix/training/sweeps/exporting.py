"""Runs of a store as one table in a file, a row each, with typed columns: CSV, or parquet with the
extra "export".
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

from separatrix.core.errors import MissingExtraError, SpecError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.wilson import wilson_of_answers
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
    of: Callable[[Any], Cell]


METRICS = (
    Column("key", "text", itemgetter(0)),
    Column("step", "integer", itemgetter(1)),
    Column("loss", "number", itemgetter(2)),
    Column("accuracy", "number", itemgetter(3)),
    Column("learning_rate", "number", itemgetter(4)),
)


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
    A run's budget of seconds is `seconds`; what its training took is `wall_seconds`. `accuracy` and
    `correct` count prompts, what follows `longer_correct` single answers.
    """

    def own(name: str, kind: Kind = "text", field: str = "") -> Column:
        return Column(name, kind, attrgetter(field or name))

    def ended(name: str, kind: Kind, of: Callable[[Outcome], Cell]) -> Column:
        return Column(name, kind, lambda row: None if row.outcome is None else of(row.outcome))

    def tested(name: str, of: Callable[[Outcome], Cell]) -> Column:
        # what diverged was not tested
        return ended(name, "number", lambda outcome: of(outcome) if outcome.tested else None)

    def answers(name: str, kind: Kind, of: Callable[[Outcome], Cell]) -> Column:
        # earlier versions did not count single answers
        return ended(name, kind, lambda outcome: of(outcome) if outcome.due else None)

    def end(place: int) -> Callable[[Outcome], Cell]:
        return lambda outcome: _interval(outcome.right, outcome.due, outcome.tested)[place]

    return (
        own("key"),
        own("sweep"),
        own("status"),
        *(Column(field.name, _kind(field.name), _field(field.name)) for field in fields(Run)),
        ended("stopped", "text", lambda o: o.stopped),
        ended("correct", "integer", lambda o: o.correct),
        tested("accuracy", lambda o: o.correct / o.tested),
        tested("accuracy_low", lambda o: _interval(o.correct, o.tested, o.tested)[0]),
        tested("accuracy_high", lambda o: _interval(o.correct, o.tested, o.tested)[1]),
        Column("chance", "number", lambda row: _chance(row.run.task)),
        ended("longer_correct", "integers", lambda o: list(o.longer)),
        answers("right", "integer", lambda o: o.right),
        answers("due", "integer", lambda o: o.due),
        answers("answer_accuracy", "number", lambda o: o.right / o.due),
        answers("answer_accuracy_low", "number", end(0)),
        answers("answer_accuracy_high", "number", end(1)),
        answers("bits", "number", lambda o: o.bits),
        answers("bits_squares", "number", lambda o: o.bits_squares),
        answers("longer_right", "integers", lambda o: list(o.longer_right)),
        answers("longer_due", "integers", lambda o: list(o.longer_due)),
        answers("formats_correct", "integers", lambda o: [each.correct for each in o.formats]),
        answers("formats_right", "integers", lambda o: [each.right for each in o.formats]),
        answers("formats_bits", "numbers", lambda o: [each.bits for each in o.formats]),
        own("step", "integer"),
        ended("parameters", "integer", lambda o: o.parameters),
        own("wall_seconds", "number", "seconds"),
        own("error"),
        own("version"),
        own("host"),
        Column("created", "time", lambda row: _time(row.created)),
        Column("ended", "time", lambda row: _time(row.ended)),
        own("completions", "integer"),
    )


def write_runs(path: Path, rows: Sequence[Stored]) -> None:
    """The runs as a file of the kind that its name has. Raises OutputError."""
    _write(path, columns(), rows)


def write_metrics(path: Path, rows: Iterable[Sequence[Cell]]) -> None:
    """Metrics over time, as the store tells them; a loss that was no number is missing."""
    _write(path, METRICS, rows)


def _field(name: str) -> Callable[[Stored], Cell]:
    def of(row: Stored) -> Cell:
        value = getattr(row.run, name)
        return list(value) if isinstance(value, tuple) else value

    return of


@cache
def _interval(right: int, due: int, tested: int) -> tuple[float, float]:
    low, high = wilson_of_answers(right, due, tested)
    return float(low), float(high)


@cache
def _chance(task: str) -> float:
    return float(parse_task(task).chance)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _kind(name: str) -> Kind:
    hint = get_type_hints(Run)[name]
    if get_origin(hint) is tuple:
        return "texts"
    kinds: dict[object, Kind] = {int: "integer", float: "number"}
    return kinds.get(hint, "text")


def _write(path: Path, columns: Sequence[Column], rows: Iterable[Any]) -> None:
    table = ([column.of(row) for column in columns] for row in rows)
    parquet = path.suffix.lower() == PARQUET
    write_atomic(path, _parquet(columns, table) if parquet else _csv(columns, table))


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
