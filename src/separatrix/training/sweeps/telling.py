"""What a slice of training gave, written into the store. What is here runs within one transaction
of the store.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.evidence.canonical import canonical
from separatrix.training.sweeps.schema import ENDED, RUNNING, STATUSES, seal

if TYPE_CHECKING:
    from separatrix.training.packs import Metric, Pack, Update


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
        self._count_again([key for key, _ in update.finished if key in self._ended])
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

    def _count_again(self, keys: Sequence[str]) -> None:
        """Counts that runs ended once more than they should: nothing else of them changes."""
        self._connection.executemany(
            "UPDATE runs SET completions = completions + 1 WHERE id = ?",
            [(self._ids[key],) for key in keys],
        )

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
