"""What a store tells of its runs: each answer is of one state of the store.

A run whose hash is not that of what it ended with is damaged: it keeps its place, and nothing of
its outcome is told.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from sys import float_info, maxsize
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_type_hints

from separatrix.core.errors import SeparatrixError, StoreError, UnknownNameError, first_line
from separatrix.core.evidence.canonical import canonical, json_object, sha256
from separatrix.core.evidence.records import SOLVED
from separatrix.training.sweeps.database import Database, damaged
from separatrix.training.sweeps.schema import DAMAGED, ENDED, RUNNING, SEALED, STATUSES, seals

if TYPE_CHECKING:
    from separatrix.core.evidence.outcome import Outcome
    from separatrix.models.stored.run import Run
    from separatrix.training.packs import Metric, Pack

BROKEN = (
    "iif(outcome IS NOT NULL OR status IN ('done', 'diverged'),"
    " digest IS NOT digest(key, specification, status, version, outcome),"
    " key IS NOT sha256(specification))"
)
"""Of a damaged run."""
_EVERY = "replaced = 0"
_SCANNED = "runs NOT INDEXED"
"""An index may still have what a row has lost."""
LISTED = "replaced = 0 AND key IN (SELECT value FROM json_each(?))"
UNCOUNTED = (
    "runs that code before 0.1.0 ended have no counts of single answers, and are not read; another"
    " --store has them trained anew"
)
_ERROR = "its hash is another: the store is damaged; --retry trains it again"
_ACCURACY = "1.0 * answered / due"
SORTS = (
    *("key", "architecture", "task", "seed", "learning_rate", "status"),
    *("accuracy", "step", "seconds", "created", "ended", "version"),
)
"""What runs can be sorted by."""
HASHED = 100_000
"""So many runs are hashed for a summary, too: a sixth of a second."""


def _sound(column: str, instead: str = "NULL") -> str:
    """A column that damaged runs have something else for."""
    return f"iif(runs.id IN broken, {instead}, {column})"


CALLED = {
    "key": "runs.key",
    "status": _sound("status", f"'{DAMAGED}'"),
    "result": _sound("outcome"),
    "error": _sound("error", f"'{_ERROR}'"),
    "accuracy": _ACCURACY,
    # of a damaged run whose text is no object nothing is known
    "specification": "iif(json_valid(specification) AND json_type(specification) = 'object',"
    " specification, '{}')",
}
"""Name -> expression, where they differ."""


Status = Literal["waiting", "running", "done", "diverged", "failed", "damaged"]


@dataclass(frozen=True)
class Stored:
    """A run, how far it is, and what came of it."""

    key: str
    sweep: str
    """The one asked for; else the first that had this run."""
    specification: str
    """The run as canonical JSON."""
    status: Status
    result: str | None
    """The outcome as JSON."""
    error: str
    """Why it failed or is damaged, in one line."""
    version: str
    """Of the code that ended it."""
    created: float
    """Seconds since 1970, as `ended`."""
    ended: float | None
    seconds: float
    """What its training took so far, or in all."""
    completions: int
    """How often somebody ended it: 1 for every run that is done or diverged."""
    step: int
    owner: str | None
    """Who trains it now."""
    host: str
    """The machine of the store's writer when it ended."""

    @cached_property
    def run(self) -> Run:
        # lists of many runs do without reading stacks and tasks
        from separatrix.models.stored.run import Run

        return self._read(Run, "specification", self.specification)

    @cached_property
    def outcome(self) -> Outcome | None:
        from separatrix.core.evidence.outcome import Outcome

        return None if self.result is None else self._read(Outcome, "outcome", self.result)

    def _read(self, kind: type[Any], what: str, text: str) -> Any:
        try:
            return kind.from_json(json.loads(text))
        except (SeparatrixError, ValueError, TypeError) as error:
            raise StoreError(
                f"run {self.key[:12]}, by version {self.version or '?'}: its {what} cannot be read"
                f" here: {first_line(error)}"
            ) from error


COLUMNS = tuple(field.name for field in fields(Stored))
_KINDS = tuple(str if name == "status" else kind for name, kind in get_type_hints(Stored).items())
"""Of the columns."""
LATEST = 253402300799.0
"""The last second that has a date."""


class Begun(NamedTuple):
    """A pack with a checkpoint."""

    pack: Pack
    checkpoint: bytes
    held: Sequence[str] = ()
    """Members that are claimed now."""


class Reading:
    """The half of a store that tells what is there."""

    _database: Database
    version: str
    """Of the code that trains here."""

    def _select(
        self,
        columns: Mapping[str, str],
        sweep: str | None = None,
        status: str | None = None,
        *,
        sort: str = "",
        limit: int = 0,
        where: str = _EVERY,
        values: Sequence[object] = (),
        around: str = "{}",
    ) -> list[Any]:
        """Expressions of some runs in an order, or what a query around their query gives. Raises
        UnknownNameError for a status or an order that is none.
        """
        name = sort.removeprefix("-")
        if status is not None and status not in (*STATUSES, DAMAGED):
            raise UnknownNameError.of("status", status, (*STATUSES, DAMAGED))
        if name and name not in SORTS:
            raise UnknownNameError.of("order", name, SORTS)
        scanned = _SCANNED if where == _EVERY else "runs"
        broken = (
            f"WITH broken AS MATERIALIZED (SELECT id FROM {scanned} WHERE {where} AND {BROKEN})"
        )
        every = [*values, *values]
        source, order = "runs", "runs.id"
        if sweep is not None:
            source, order = "members JOIN runs ON runs.id = members.run", "members.position"
            where += " AND members.sweep = ?"
            every.append(sweep)
        if status is not None:
            where += f" AND {CALLED['status']} = ?"
            every.append(status)
        if name:
            # what has no value yet stands at the end either way
            column = CALLED.get(name, name)
            order = f"{column} IS NULL, {column}{' DESC' * sort.startswith('-')}, {order}"
        asked = ", ".join(f"{column} AS {name}" for name, column in columns.items())
        query = f"SELECT {asked} FROM {source} WHERE {where} ORDER BY {order}"
        if limit:
            query += f" LIMIT {min(limit, maxsize)}"
        with self._database.reading() as connection:
            return connection.execute(f"{broken} {around.format(query)}", every).fetchall()

    def rows(
        self, sweep: str | None = None, status: str | None = None, **more: Any
    ) -> list[Stored]:
        """The runs of a sweep in its order, or all in the order in which they came; `sort` names a
        column, with "-" in front the largest first, and `limit` says how many. Raises
        UnknownNameError for an unknown column.
        """
        found = self._select(_called(COLUMNS, sweep), sweep, status, **more)
        return [Stored(*self._kept(row, _KINDS, LATEST)) for row in found]

    def _kept(self, row: Sequence[Any], kinds: Iterable[Any], most: float) -> Sequence[Any]:
        """A row that begins with a key. Raises StoreError for a value that no store keeps."""
        for value, kind in zip(row, kinds, strict=True):
            number = isinstance(value, float)
            if not isinstance(value, kind) or (number and not 0 <= value <= most):
                raise damaged(self._database.path, f"run {row[0]!s:.12} has {value!r:.40}")
        return row

    def objects(
        self, sweep: str | None = None, status: str | None = None, **more: Any
    ) -> list[str]:
        """The same runs as objects of JSON, each in one line, with their runs and outcomes."""
        columns = _called(COLUMNS, sweep)
        # these are JSON already
        columns["run"] = "iif(json_valid(specification), json(specification), NULL)"
        del columns["specification"]
        columns["outcome"] = f"json({columns.pop('result')})"
        parts = ", ".join(f"'{name}', {column}" for name, column in columns.items())
        found = self._select({"line": f"json_object({parts})"}, sweep, status, **more)
        return [line for (line,) in found]

    def run(self, key_prefix: str) -> Stored:
        """The run whose key begins so. Raises StoreError for none, and for several."""
        # no letter of a key comes after "f"
        where = "replaced = 0 AND key >= ? AND key < ?"
        values = (key_prefix, f"{key_prefix}g")
        found = self.rows(limit=2, where=where, values=values)
        if len(found) != 1:
            many = "several runs" if found else "no run"
            raise StoreError(
                f"{self._database.path} has {many} whose key begins with '{key_prefix}';"
                " `separatrix runs list --json` has whole keys"
            )
        return found[0]

    def numbered(self, ids: Sequence[int]) -> list[Stored]:
        """The runs of these rows."""
        where = "id IN (SELECT value FROM json_each(?))"
        rows = self.rows(where=where, values=(json.dumps([*ids]),))
        if len(rows) < len(ids):
            raise damaged(self._database.path, "a sweep has a run that is not there")
        found = dict(zip(sorted(ids), rows, strict=True))
        return [found[number] for number in ids]

    def ended(self, keys: Sequence[str]) -> set[str]:
        """Those of these runs of which nothing is left to train; damaged ones are among them."""
        columns = _called(["key", "status"])
        found = self._select(columns, where=LISTED, values=(json.dumps([*keys]),))
        return {key for key, status in found if status in (*ENDED, DAMAGED)}

    def metrics(self, key: str) -> list[Metric]:
        """A run's metrics by step; the loss is NaN where it was no number."""
        # lists do without reading stacks and tasks
        from separatrix.training.packs import Metric

        around = (
            "SELECT name, step, loss, accuracy, learning_rate FROM ({}) JOIN metrics"
            " ON metrics.run = number ORDER BY step"
        )
        columns = {"number": "runs.id", "name": "runs.key"}
        found = self._select(
            columns, around=around, where="replaced = 0 AND key = ?", values=(key,)
        )
        kinds = (str, int, *[float | None] * 3)
        return [
            Metric(key, step, *(math.nan if number is None else number for number in numbers))
            for key, step, *numbers in (self._kept(row, kinds, float_info.max) for row in found)
        ]

    def counts(self, sweep: str | None = None) -> dict[str, int]:
        """How many runs have each status, statuses without a run left out."""
        around = "SELECT status, count(*) FROM ({}) GROUP BY status"
        found = dict(self._select(_called(["status"]), sweep, around=around))
        return {status: found[status] for status in (*STATUSES, DAMAGED) if status in found}

    def sweeps(self) -> dict[str, int]:
        """The sweeps, the first of them first, with how many runs each has."""
        query = "SELECT sweep || '', count(*) FROM members GROUP BY sweep ORDER BY min(run), sweep"
        with self._database.reading() as connection:
            return dict(connection.execute(query).fetchall())

    def packs(self, keys: Sequence[str]) -> list[Pack]:
        """The packs with a checkpoint that hold one of these runs, ended members included."""
        return [one.pack for one in self.begun(keys)]

    def begun(self, keys: Sequence[str]) -> list[Begun]:
        """The same with their checkpoints; those of this version."""
        from separatrix.models.stored.run import Run
        from separatrix.training.packs import Pack

        packs: list[Begun] = []
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT pack, members, data FROM checkpoints WHERE version = ? AND pack IN"
                f" (SELECT pack FROM runs WHERE {LISTED}) ORDER BY rowid",
                (self.version, json.dumps([*keys])),
            ).fetchall()
            for name, members, data in found:
                query = f"SELECT key, specification FROM runs WHERE {LISTED}"
                # what is no checkpoint of a pack is left alone: its runs begin anew
                with suppress(ValueError, TypeError, KeyError, SeparatrixError, sqlite3.Error):
                    texts = dict(connection.execute(query, (members,)).fetchall())
                    runs = (Run.from_json(json.loads(texts[key])) for key in json.loads(members))
                    if (pack := Pack(tuple(runs))).key == name:
                        packs.append(Begun(pack, data))
        return packs

    def cells(self, keys: Sequence[str]) -> dict[str, int]:
        """The number of each run's cell."""
        with self._database.reading() as connection:
            query = f"SELECT key, cell FROM runs WHERE {LISTED}"
            return dict(connection.execute(query, (json.dumps([*keys]),)).fetchall())

    def standing(self, keys: Sequence[str], owner: str) -> list[Any]:
        """How some runs stand: by number of their cell and status ("elsewhere" where another owner
        has claimed them) how many they are, their steps, the sum of the shares of their steps that
        are left, and how many are solved and not damaged.
        """
        right = f"answered * {SOLVED.denominator} >= due * {SOLVED.numerator}"
        solved = f"iif(status = 'done' AND {right} AND NOT ({BROKEN}), 1, NULL)"
        with self._database.reading() as connection:
            return connection.execute(
                f"SELECT cell, iif(status = '{RUNNING}' AND owner <> ?, 'elsewhere', status)"
                f" AS word, count(*), sum(step), sum(1.0 - 1.0 * step / steps), count({solved})"
                f" FROM runs WHERE {LISTED} GROUP BY cell, word ORDER BY cell",
                (owner, json.dumps([*keys])),
            ).fetchall()

    def shown(
        self, sweep: str, keys: Sequence[str] | None = None
    ) -> tuple[list[tuple[Any, ...]], set[str]]:
        """What the summary of a sweep, or of some of its runs, is made of, from the index `shown`
        alone: for each cell (in the order of their first runs) and rate its text, the rate, the
        rows' numbers, and columns of seeds, statuses (the place in STATUSES, and behind them
        damaged), steps, and right answers of those due, by seed. With the versions that ended them.

        A changed number breaks its seal. Where it takes only a moment, texts are looked at, too.
        """
        try:
            with self._database.reading() as connection:
                return _shown(connection, sweep, keys)
        except (ValueError, TypeError, IndexError) as error:
            raise damaged(self._database.path, "an index holds what is no number") from error


def _called(names: Iterable[str], sweep: str | None = None) -> dict[str, str]:
    named = {"sweep": "runs.sweep" if sweep is None else "members.sweep", **CALLED}
    return {name: named.get(name, name) for name in names}


def _shown(
    connection: sqlite3.Connection, sweep: str, keys: Sequence[str] | None
) -> tuple[list[tuple[Any, ...]], set[str]]:
    import numpy as np

    texts: dict[int, str] = dict(connection.execute("SELECT id, specification FROM cells"))
    only = "" if keys is None else f" AND run IN (SELECT id FROM runs WHERE {LISTED})"
    asked = f"SELECT run FROM members WHERE sweep = ?{only} ORDER BY position"
    values = (sweep,) if keys is None else (sweep, json.dumps(keys))
    (text,) = connection.execute(f"SELECT group_concat(run) FROM ({asked})", values).fetchone()
    members = np.fromstring(text or "", np.int64, sep=",")
    if not len(members):
        return [], set()
    broken: list[int] = []
    if len(members) <= HASHED:
        query = f"SELECT id FROM {_SCANNED} WHERE {_EVERY} AND {BROKEN}"
        broken = [number for (number,) in connection.execute(query)]
    order = np.argsort(members)
    words = " ".join(f"WHEN '{word}' THEN {place}" for place, word in enumerate(STATUSES))
    # a word that is none has been changed
    columns = {name: f"coalesce({name}, 0)" for name in (*SEALED, "seal")}
    columns["status"] = f"CASE status {words} ELSE {len(STATUSES)} END"
    del columns["cell"], columns["learning_rate"]
    asked = ", ".join(f"group_concat({column})" for column in ("id", *columns.values()))
    found: list[tuple[int, tuple[Any, ...]]] = []
    for cell, rate, *lists in connection.execute(
        f"SELECT cell, learning_rate, {asked} FROM runs INDEXED BY shown WHERE replaced = 0"
        " GROUP BY cell, learning_rate"
    ):
        ids, *numbers = (np.fromstring(each, np.int64, sep=",") for each in lists)
        at = np.searchsorted(members, ids, sorter=order)
        own = np.flatnonzero(members[order[np.minimum(at, len(order) - 1)]] == ids)
        if not len(own):
            continue
        first = int(order[at[own]].min())
        ids, seeds, status, *counts, kept = (each[own] for each in (ids, *numbers))
        same = np.full(len(ids), cell), np.full(len(ids), rate or 0.0).view(np.int64)
        ended = (status == STATUSES.index("done")) | (status == STATUSES.index("diverged"))
        right = np.where(ended, seals([*same, seeds, status, *counts]), 0)
        sound = (right == kept) & ~np.isin(ids, broken)
        status = np.where(sound, status, len(STATUSES))
        counts = [np.where(sound, each, 0) for each in counts]
        _, _, tested, _, due = counts
        if (tested > due).any():
            raise StoreError(f"sweep {sweep}: {UNCOUNTED}")
        for place in np.flatnonzero(sound)[:1]:
            _check_cell(connection, texts.get(cell, ""), rate, int(seeds[place]), int(ids[place]))
        found.append((first, (texts.get(cell, "{}"), rate, ids, seeds, status, *counts)))
    found.sort(key=lambda one: one[0])
    alone = connection.execute("SELECT count(DISTINCT sweep) FROM members").fetchone()[0] == 1
    joined = "" if alone else " JOIN members ON members.run = runs.id AND members.sweep = ?"
    versions = connection.execute(
        f"SELECT DISTINCT version FROM runs INDEXED BY shown{joined} WHERE replaced = 0",
        () if alone else (sweep,),
    )
    return [row for _, row in found], {version for (version,) in versions}


def _check_cell(
    connection: sqlite3.Connection, text: str, rate: float, seed: int, number: int
) -> None:
    """Raises StoreError where the text of a cell is not that of one of its runs."""
    (key,) = connection.execute("SELECT key FROM runs WHERE id = ?", (number,)).fetchone()
    try:
        run = json_object(json.loads(text)) or {}
    except ValueError:
        run = {}
    if sha256(canonical({**run, "seed": seed, "learning_rate": rate})) != key:
        raise StoreError(
            f"run {str(key)[:12]}: the store is damaged: the text of its cell is another; restore a"
            " copy of it"
        )
