"""What a store tells of its runs. What is here reads one state of the store."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from separatrix.core.errors import StoreError, UnknownNameError
from separatrix.training.slices import Metric
from separatrix.training.sweeps.schema import STATUSES
from separatrix.training.sweeps.stored import COLUMNS, Stored

if TYPE_CHECKING:
    from separatrix.training.packs import Pack
    from separatrix.training.run import Run

_DUE = "json_extract(outcome, '$.due')"
RIGHT = f"iif({_DUE} > 0, json_extract(outcome, '$.right'), correct)"
DUE = f"iif({_DUE} > 0, {_DUE}, tested)"
"""Answers right and due; prompts, where an earlier version did not count single answers."""
SORTS = {
    "key": "runs.key",
    "architecture": "architecture",
    "task": "task",
    "seed": "seed",
    "learning_rate": "learning_rate",
    "status": "status",
    "accuracy": f"1.0 * {RIGHT} / {DUE}",
    "step": "step",
    "seconds": "seconds",
    "created": "created",
    "ended": "ended",
    "version": "version",
}
"""What runs can be sorted by."""


class Listed(NamedTuple):
    """A run as lists show it, read without its specification."""

    key: str
    sweep: str
    architecture: str
    task: str
    seed: int
    learning_rate: float
    status: str
    step: int
    steps: int
    right: int | None
    due: int | None
    seconds: float


_AMBIGUOUS = 3
_SHORTEST_SHOWN = 12


def listed(
    connection: sqlite3.Connection,
    sweep: str | None,
    status: str | None,
    sort: str,
    limit: int,
) -> list[Listed]:
    columns = _columns(sweep, Listed._fields)
    query, values = selection(", ".join(columns), sweep, status, sort, limit)
    return list(map(Listed._make, connection.execute(query, values)))


def objects(
    connection: sqlite3.Connection,
    sweep: str | None,
    status: str | None,
    sort: str,
    limit: int,
) -> list[str]:
    columns: dict[str, str] = dict(zip(COLUMNS, _columns(sweep, COLUMNS), strict=True))
    # these are JSON already
    columns["run"] = f"json({columns.pop('specification')})"
    columns["outcome"] = f"json({columns.pop('result')})"
    parts = ", ".join(f"'{name}', {column}" for name, column in columns.items())
    query, values = selection(f"json_object({parts})", sweep, status, sort, limit)
    return [row[0] for row in connection.execute(query, values)]


def rows(
    connection: sqlite3.Connection,
    sweep: str | None,
    status: str | None,
    sort: str,
    limit: int,
) -> list[Stored]:
    query, values = selection(", ".join(_columns(sweep, COLUMNS)), sweep, status, sort, limit)
    return [_stored(row) for row in connection.execute(query, values)]


def selection(
    columns: str, sweep: str | None, status: str | None, sort: str, limit: int
) -> tuple[str, list[str | int]]:
    """The query for some columns of some runs, and its values. Raises UnknownNameError for a
    status or an order that is none.
    """
    if status is not None and status not in STATUSES:
        raise UnknownNameError.of("status", status, STATUSES)
    name = sort.removeprefix("-")
    if name and name not in SORTS:
        raise UnknownNameError.of("order", name, SORTS)
    values: list[str | int] = []
    source = "runs"
    conditions = ["replaced = 0"]
    order = "runs.id"
    if sweep is not None:
        source = "members JOIN runs ON runs.key = members.key"
        conditions.append("members.sweep = ?")
        values.append(sweep)
        order = "members.position"
    if status is not None:
        conditions.append("status = ?")
        values.append(status)
    if name:
        # what has no value yet stands at the end either way
        way = " DESC" if sort.startswith("-") else ""
        order = f"{SORTS[name]} IS NULL, {SORTS[name]}{way}, {order}"
    query = f"SELECT {columns} FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {order}"
    if limit:
        query += " LIMIT ?"
        values.append(limit)
    return query, values


def one(connection: sqlite3.Connection, path: Path, prefix: str) -> Stored:
    found = [
        _stored(row)
        for row in connection.execute(
            f"SELECT {', '.join(_columns(None, COLUMNS))} FROM runs"
            " WHERE replaced = 0 AND key >= ? AND key < ? ORDER BY key LIMIT ?",
            # no letter of a key comes after "f"
            (prefix, f"{prefix}g", _AMBIGUOUS),
        )
    ]
    if not found:
        raise StoreError(
            f"{path} has no run whose key begins with '{prefix}'; `separatrix runs list` lists keys"
        )
    if len(found) > 1:
        keys = ", ".join(one.key[: max(_SHORTEST_SHOWN, len(prefix) + 4)] for one in found)
        raise StoreError(
            f"{path} has several runs whose keys begin with '{prefix}': {keys}; write more letters"
        )
    return found[0]


def earlier(connection: sqlite3.Connection, key: str) -> list[Stored]:
    return [
        _stored(row)
        for row in connection.execute(
            f"SELECT {', '.join(_columns(None, COLUMNS))} FROM runs WHERE replaced = 1 AND key = ?"
            " ORDER BY id",
            (key,),
        )
    ]


def metrics(connection: sqlite3.Connection, key: str) -> list[Metric]:
    return [
        Metric(key, step, *(math.nan if number is None else number for number in numbers))
        for step, *numbers in connection.execute(
            "SELECT metrics.step, loss, accuracy, metrics.learning_rate FROM metrics"
            " JOIN runs ON runs.id = metrics.run WHERE runs.key = ? AND replaced = 0"
            " ORDER BY metrics.step",
            (key,),
        )
    ]


def all_metrics(
    connection: sqlite3.Connection, sweep: str | None, status: str | None
) -> list[tuple[str, int, float | None, float | None, float | None]]:
    """The metrics of many runs, by run and step, as rows (key, step, loss, accuracy, rate)."""
    query, values = selection("runs.id AS number, runs.key AS name", sweep, status, "", 0)
    return connection.execute(
        "SELECT name, step, loss, accuracy, learning_rate"
        f" FROM ({query}) JOIN metrics ON metrics.run = number ORDER BY number, step",
        values,
    ).fetchall()


def counts(connection: sqlite3.Connection, sweep: str | None) -> dict[str, int]:
    query, values = selection("status", sweep, None, "", 0)
    found = dict(
        connection.execute(f"SELECT status, count(*) FROM ({query}) GROUP BY status", values)
    )
    return {status: found[status] for status in STATUSES if status in found}


def sweeps(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT members.sweep, count(*) FROM members"
            " JOIN runs ON runs.key = members.key AND replaced = 0"
            " GROUP BY members.sweep ORDER BY min(runs.id), members.sweep"
        )
    )


def packs(connection: sqlite3.Connection, keys: str, version: str) -> list[Pack]:
    from separatrix.training.packs import Pack

    found = connection.execute(
        "SELECT members FROM checkpoints WHERE version = ? AND pack IN"
        " (SELECT pack FROM runs WHERE replaced = 0"
        " AND key IN (SELECT value FROM json_each(?))) ORDER BY rowid",
        (version, keys),
    ).fetchall()
    return [Pack(tuple(_run(connection, key) for key in json.loads(row[0]))) for row in found]


def begun(connection: sqlite3.Connection, pack: Pack, version: str) -> tuple[int, bytes]:
    """Step and data of a pack's checkpoint, which is there."""
    return connection.execute(
        "SELECT step, data FROM checkpoints WHERE pack = ? AND version = ?", (pack.key, version)
    ).fetchone()


def _run(connection: sqlite3.Connection, key: str) -> Run:
    from separatrix.training.run import Run

    text = connection.execute(
        "SELECT specification FROM runs WHERE replaced = 0 AND key = ?", (key,)
    ).fetchone()[0]
    return Run.from_json(json.loads(text))


def _columns(sweep: str | None, names: Sequence[str]) -> list[str]:
    """What the columns are called in the tables: of a run's sweeps the one that was asked for."""
    called = {
        "key": "runs.key",
        "sweep": "runs.sweep" if sweep is None else "members.sweep",
        "result": "outcome",
        "right": RIGHT,
        "due": DUE,
    }
    return [called.get(name, name) for name in names]


def _stored(row: tuple) -> Stored:
    return Stored(**dict(zip(COLUMNS, row, strict=True)))
