"""Who trains which runs, whose claims are free again, and what training tells of them. What is here
runs within a transaction of the store.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.errors import StoreError
from separatrix.core.evidence.canonical import canonical
from separatrix.training.sweeps.processes import Process, this_process
from separatrix.training.sweeps.schema import ENDED, RUNNING, STATUSES, WAITING, seal

if TYPE_CHECKING:
    from separatrix.training.packs import Metric, Pack, Update


LEASE = 60.0
"""Seconds after which the claims of an owner that has not told of itself are free."""


@dataclass(frozen=True)
class Owner:
    """Who has claimed runs."""

    name: str
    process: Process
    version: str
    """Of its code."""
    file: int
    """The number of the store's file as it opened it: a copy has another."""
    since: float
    beaten: float
    """When it last told of itself."""

    def works_on(self, file: int) -> bool:
        """Whether its process lives on this machine and writes to this file."""
        return self.process.here and not self.process.dead and self.file == file

    def gone(self, file: int, now: float) -> bool:
        """Whether its claims are free: its process is dead, works on the file that this one is a
        copy of, or has been silent for too long.
        """
        return (self.process.here and not self.works_on(file)) or now - self.beaten > LEASE


def owners(connection: sqlite3.Connection) -> list[Owner]:
    found = connection.execute(
        "SELECT name, host, machine, process, started, version, file, since, beaten FROM owners"
        " ORDER BY since, name"
    )
    return [
        Owner(name, Process(*process), *rest)
        for name, process, rest in ((row[0], row[1:5], row[5:]) for row in found)
    ]


def register(
    connection: sqlite3.Connection,
    name: str,
    process: Process,
    version: str,
    path: Path,
    file: int,
) -> bool:
    """Says that an owner lives, and returns whether it is new. Raises StoreError where another
    living process goes by this name: both would train the same runs.
    """
    now = time.time()
    found = {owner.name: owner for owner in owners(connection)}.get(name)
    if found is not None and found.process == process:
        connection.execute("UPDATE owners SET beaten = ? WHERE name = ?", (now, name))
        return False
    if found is not None:
        if not found.gone(file, now):
            raise StoreError(
                f"{path}: {found.process} works on this store as '{name}', too; take another name"
            )
        free(connection, [name])
    connection.execute(
        "INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (name, *astuple(process), version, file, now, now),
    )
    return True


def free_the_dead(connection: sqlite3.Connection, owner: str, file: int) -> None:
    """Frees the claims of all owners but this one that are gone."""
    now = time.time()
    others = [one for one in owners(connection) if one.name != owner]
    free(connection, [one.name for one in others if one.gone(file, now)])


def left_open(owners: Sequence[Owner], path: Path, file: int) -> str:
    """What it means that these owners never closed the store and nothing stands in the file beside
    it, where what is written goes first. Raises StoreError where one of them still writes.
    """
    this = this_process()
    for owner in owners:
        if owner.process != this and owner.works_on(file):
            raise StoreError(
                f"{path}: {owner.process} writes to this store, but its -wal file was taken away;"
                " end that process, and what it had not stored is trained again"
            )
    last = max(owners, key=lambda owner: owner.beaten)
    return (
        f"{path}: {last.process}, which wrote to this store last, did not close it, and no -wal"
        " file stands beside it; what was stored last may be missing, and is trained again"
    )


def free(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    for name in names:
        connection.execute(
            f"UPDATE runs SET status = '{WAITING}', owner = NULL"
            f" WHERE owner = ? AND status = '{RUNNING}'",
            (name,),
        )
        connection.execute("DELETE FROM owners WHERE name = ?", (name,))


def take(connection: sqlite3.Connection, keys: Sequence[str], owner: str) -> list[str]:
    """Claims what is free of some runs, and returns all of them that the owner holds."""
    listed = json.dumps(list(keys))
    connection.execute(
        f"UPDATE runs SET status = '{RUNNING}', owner = ? WHERE status = '{WAITING}'"
        " AND replaced = 0 AND key IN (SELECT value FROM json_each(?))",
        (owner, listed),
    )
    held = {
        key
        for (key,) in connection.execute(
            f"SELECT key FROM runs WHERE status = '{RUNNING}' AND owner = ? AND replaced = 0"
            " AND key IN (SELECT value FROM json_each(?))",
            (owner, listed),
        )
    }
    return [key for key in dict.fromkeys(keys) if key in held]


class Telling:
    """An update of a pack, told by an owner whose code has this version."""

    def __init__(
        self, connection: sqlite3.Connection, pack: Pack, owner: str, version: str
    ) -> None:
        self._connection = connection
        self._pack = pack
        self._owner = owner
        self._version = version
        self._ids: dict[str, int] = {}
        self._runs: dict[str, list[Any]] = {}
        """Cell, learning rate and seed."""
        self._held: set[str] = set()
        self._ended: set[str] = set()
        self._anew: set[str] = set()
        """Members that do not go on from this pack's checkpoint of this version."""
        rows = connection.execute(
            "SELECT id, key, status, owner, runs.pack IS ? AND checkpoints.version IS ?,"
            " cell, learning_rate, seed"
            " FROM runs LEFT JOIN checkpoints ON checkpoints.pack = runs.pack"
            " WHERE replaced = 0 AND key IN (SELECT value FROM json_each(?))",
            (pack.key, version, json.dumps(pack.keys)),
        )
        for number, key, status, holder, goes_on, *run in rows:
            self._ids[key] = number
            self._runs[key] = run
            if not goes_on:
                self._anew.add(key)
            if status in ENDED:
                self._ended.add(key)
            elif status == RUNNING and holder == owner:
                self._held.add(key)

    def problem(self, update: Update) -> str:
        """Why this owner may not tell it; "" where it may."""
        named = {key for key, _ in update.finished} | {metric.key for metric in update.metrics}
        strange = sorted(named - self._held - self._ended)
        if not self._held:
            return f"{self._owner} holds no run of this pack any more; nothing was kept"
        if strange:
            return (
                f"{self._owner} does not hold run {strange[0][:12]}, of which it tells; nothing was"
                " kept"
            )
        return ""

    def keep(self, update: Update, host: str) -> None:
        now = time.time()
        # what ended once more than it should is counted, and nothing else of it changes
        self._connection.executemany(
            "UPDATE runs SET completions = completions + 1 WHERE id = ?",
            [(self._ids[key],) for key, _ in update.finished if key in self._ended],
        )
        self._keep_metrics([metric for metric in update.metrics if metric.key in self._held])
        finished = {key for key, _ in update.finished if key in self._held}
        for key, outcome in update.finished:
            if key not in finished:
                continue
            text = canonical(outcome.to_json())
            cell, rate, seed = self._runs[key]
            self._connection.execute(
                "UPDATE runs SET status = ?, outcome = ?, step = ?, seconds = ?, ended = ?,"
                " version = ?, host = ?, owner = NULL, pack = NULL, completions = completions + 1,"
                " digest = digest(key, specification, ?, ?, ?), seal = ? WHERE id = ?",
                (
                    outcome.status,
                    text,
                    outcome.steps_done,
                    outcome.seconds,
                    now,
                    self._version,
                    host,
                    *(outcome.status, self._version, text),
                    seal(cell, rate, seed, STATUSES.index(outcome.status), outcome),
                    self._ids[key],
                ),
            )
        going = self._held - finished
        self._connection.executemany(
            "UPDATE runs SET step = ?, seconds = seconds + ? WHERE id = ?",
            [(update.step, update.seconds, self._ids[key]) for key in going],
        )
        self._keep_checkpoints(update, going, now)
        self._connection.execute("UPDATE owners SET beaten = ? WHERE name = ?", (now, self._owner))

    def _keep_metrics(self, metrics: Sequence[Metric]) -> None:
        """From its first new step on, what was told of a run before came from a training that was
        broken off: its metrics give way, so that a curve is of one training. All of them do where
        the training began anew.
        """
        self._connection.executemany(
            "DELETE FROM metrics WHERE run = ?",
            [(self._ids[key],) for key in self._held & self._anew],
        )
        first: dict[str, int] = {}
        for metric in metrics:
            first[metric.key] = min(metric.step, first.get(metric.key, metric.step))
        self._connection.executemany(
            "DELETE FROM metrics WHERE run = ? AND step >= ?",
            [(self._ids[key], step) for key, step in first.items()],
        )
        # SQLite keeps a NaN as NULL
        self._connection.executemany(
            "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)",
            [(self._ids[m.key], m.step, m.loss, m.accuracy, m.learning_rate) for m in metrics],
        )

    def _keep_checkpoints(self, update: Update, going: Collection[str], now: float) -> None:
        # members that somebody else holds: what was told of them ends before this checkpoint
        self._connection.execute("UPDATE runs SET pack = NULL WHERE pack = ?", (self._pack.key,))
        kept: list[tuple[Pack, bytes | None]] = [(self._pack, update.checkpoint)]
        if update.halves is not None:
            kept = list(zip(update.halves, update.half_checkpoints, strict=True))
        for pack, data in kept:
            members = [key for key in pack.keys if key in going]
            begun = data is not None and bool(members)
            if begun:
                self._connection.execute(
                    "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)",
                    (pack.key, json.dumps(pack.keys), update.step, self._version, now, data),
                )
            self._connection.executemany(
                "UPDATE runs SET pack = ? WHERE id = ?",
                [(pack.key if begun else None, self._ids[key]) for key in members],
            )
        drop_needless_checkpoints(self._connection)


def drop_needless_checkpoints(connection: sqlite3.Connection) -> None:
    """Drops the checkpoints of packs that no run goes on with."""
    connection.execute(
        "DELETE FROM checkpoints WHERE NOT EXISTS"
        " (SELECT 1 FROM runs WHERE runs.pack = checkpoints.pack)"
    )
