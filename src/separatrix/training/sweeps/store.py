"""The store: every run of every sweep in one SQLite file, written so that a process may be killed
at any moment.

Each method is one transaction. Whoever trains a run has claimed it; a claim holds while its
process lives, which is known by a locked file beside the store. What a run has ended with never
changes again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from glob import escape
from pathlib import Path
from socket import gethostname
from sqlite3 import Connection
from typing import TYPE_CHECKING, Self

from separatrix.core.errors import ClaimLost, StoreError
from separatrix.core.evidence.canonical import canonical, code_version, sha256
from separatrix.training.sweeps.database import Database, make
from separatrix.training.sweeps.processes import hold, is_held, let_go
from separatrix.training.sweeps.reading import BROKEN, LISTED, Begun, Reading, Stored
from separatrix.training.sweeps.schema import ADD_CELL, ENDED, FIND_CELL, RUNNING, WAITING

if TYPE_CHECKING:
    from separatrix.models.stored.run import Run
    from separatrix.training.packs import Metric, Pack, Update

__all__ = ["ClaimLost", "Store", "StoreError", "Stored"]


class Store(Reading):
    """A store of runs. Every method raises StoreError, in one line, where the file cannot be read
    or written; what was stored before stays as it was.
    """

    def __init__(self, database: Database, version: str) -> None:
        self._database = database
        self.version = version
        self._names: set[str] = set()
        """Of the owners that claimed something through this object."""

    @classmethod
    def open(cls, path: Path | str, *, version: str | None = None) -> Store:
        """A store that is there, to write to it. Raises StoreError where there is none."""
        return cls(Database(Path(path), writing=True), version or code_version())

    @classmethod
    def create(cls, path: Path | str, *, version: str | None = None) -> Store:
        """The store at `path`, made first where there is nothing."""
        if not os.path.exists(path):
            make(Path(path))
        return cls.open(path, version=version)

    @classmethod
    def read(cls, path: Path | str) -> Store:
        """A store that is there, only to look at it: nothing of it changes."""
        return cls(Database(Path(path), writing=False), "")

    @property
    def path(self) -> Path:
        return self._database.path

    def close(self) -> None:
        """Gives back what was claimed through this object, and closes the file."""
        with ExitStack() as last:
            last.callback(self._database.close)
            for name in self._names:
                last.callback(self.release, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- what a sweep wants

    def add(self, sweep: str, runs: Sequence[Run]) -> int:
        """Puts runs into a sweep, in this order, and returns how many the store did not know: these
        wait. A run that another sweep had stays as it is, with its outcome.
        """
        now = time.time()
        # a run that stands twice has its first place
        known = {run.key: run for run in reversed(runs)}
        texts = {run.key: "" for run in runs}
        for key in texts:
            texts[key] = canonical(known[key].canonical().to_json())
        with self._database.transaction() as connection:
            connection.executemany(ADD_CELL, texts.items())
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO runs (key, specification, cell, sweep, created)"
                f" VALUES (?1, ?2, {FIND_CELL}, ?3, ?4)",
                ((*one, sweep, now) for one in texts.items()),
            )
            new = connection.total_changes - before
            # what is still to train has the text that its key stands for, whatever was there
            connection.executemany(
                f"UPDATE runs SET specification = ?2, cell = {FIND_CELL} WHERE key = ?1"
                f" AND replaced = 0 AND specification IS NOT ?2 AND status NOT IN {ENDED}",
                texts.items(),
            )
            connection.executemany(
                "INSERT INTO members (sweep, position, run)"
                " SELECT ?, ?, id FROM runs WHERE key = ? AND replaced = 0"
                " ON CONFLICT (sweep, run) DO UPDATE SET position = excluded.position",
                ((sweep, place, key) for place, key in enumerate(texts)),
            )
        return new

    def retry(self, keys: Iterable[str]) -> int:
        """Lets failed and damaged runs wait again, and returns how many. What damaged ones hold is
        kept as it is.
        """
        listed = _listed(keys)
        with self._database.transaction() as connection:
            damaged = _begin_anew(connection, listed)
            failed = connection.execute(
                f"UPDATE runs SET status = '{WAITING}', error = '', step = 0, ended = NULL"
                f" WHERE status = 'failed' AND {LISTED}",
                (listed,),
            ).rowcount
        return damaged + failed

    # ---- who trains what

    def take_up(self, keys: Sequence[str], owner: str) -> tuple[list[str], list[Begun]]:
        """Claims those of some runs that nobody else trains and that have not ended, and at once
        whatever is free of the packs with a checkpoint that one of them was in: two processes never
        go on with parts of one pack. What dead processes had claimed is free.

        Returns those of the runs, in this order, that `owner` holds (a name that no other process
        has), and these packs.
        """
        begun: list[Begun] = []
        with self._database.transaction(lasting=False) as connection:
            lock = self._lock(owner)
            hold(lock)
            if owner not in self._names:
                self._names.add(owner)
                # what killed processes have left that held no run
                for one in lock.parent.glob(escape(lock.name[:-16]) + 16 * "[0-9a-f]"):
                    with suppress(OSError):
                        if not (one.stat().st_size or is_held(one)):
                            let_go(one)
            for one in self.owners():
                if not is_held(self._lock(one)):
                    self._free(connection, one)
            held = _taken(connection, keys, owner)
            for one in self.begun(held):
                members = _taken(connection, one.pack.keys, owner)
                begun.append(one._replace(held=members))
        return held, begun

    def release(self, owner: str) -> None:
        """Gives back what `owner` has claimed; checkpoints stay."""
        try:
            with self._database.transaction(lasting=False) as connection:
                self._free(connection, owner)
        finally:
            # where the store cannot be written its claims are free all the same: nobody holds them
            let_go(self._lock(owner))
            self._names.discard(owner)

    def owners(self) -> list[str]:
        """Who has claimed runs; some may be dead."""
        with self._database.reading() as connection:
            query = f"SELECT DISTINCT owner FROM runs WHERE owner > '' AND status = '{RUNNING}'"
            return [name for (name,) in connection.execute(query)]

    def _free(self, connection: Connection, owner: str) -> None:
        """Takes all claims from an owner."""
        connection.execute(
            f"UPDATE runs SET status = '{WAITING}', owner = NULL"
            f" WHERE owner = ? AND status = '{RUNNING}'",
            (owner,),
        )
        let_go(self._lock(owner))

    def _lock(self, owner: str) -> Path:
        """The file that an owner locks while it lives; beside a copy of the store there is none."""
        file = self._database.file
        return file.with_name(f"{file.name}-{sha256(owner)[:16]}")

    # ---- what training tells

    def tell(self, pack: Pack, update: Update, owner: str) -> None:
        """Keeps what a slice of a pack's training gave: metrics, ended runs and checkpoint.

        Raises ClaimLost, and keeps nothing, where `owner` holds no run of the pack, or not one that
        the update tells of. A run that ended before stays as it is; its `completions` count on.
        """
        named = {key for key, _ in update.finished} | {metric.key for metric in update.metrics}
        with self._database.transaction() as connection:
            members = connection.execute(
                f"SELECT key, id, status = '{RUNNING}' AND owner IS ?, status IN {ENDED},"
                " runs.pack IS ? AND checkpoints.version IS ?"
                " FROM runs LEFT JOIN checkpoints ON checkpoints.pack = runs.pack"
                f" WHERE {LISTED}",
                (owner, pack.key, self.version, _listed(pack.keys)),
            ).fetchall()
            held = {key: number for key, number, holds, _, _ in members if holds}
            ended = {key: number for key, number, _, over, _ in members if over}
            anew = [held[key] for key, _, holds, _, goes_on in members if holds and not goes_on]
            strange = sorted(named - held.keys() - ended.keys())
            lost = "" if held else f"{owner} holds no run of this pack any more"
            if held and strange:
                lost = f"{owner} does not hold run {strange[0][:12]}, of which it tells"
            if not lost:
                now = time.time()
                _keep_metrics(connection, update.metrics, held, anew)
                # what ended once more than it should is counted, and nothing else of it changes
                connection.executemany(
                    "UPDATE runs SET completions = completions + 1 WHERE id = ?",
                    [(ended[key],) for key, _ in update.finished if key in ended],
                )
                for key, outcome in update.finished:
                    if key not in held:
                        continue
                    text = canonical(outcome.to_json())
                    connection.execute(
                        "UPDATE runs SET status = ?1, version = ?2, outcome = ?3, step = ?4,"
                        " seconds = ?5, ended = ?6, host = ?7, owner = NULL, pack = NULL,"
                        " completions = completions + 1,"
                        " digest = digest(key, specification, ?1, ?2, ?3),"
                        " seal = seal(cell, learning_rate, seed, ?1, ?3) WHERE id = ?8",
                        (
                            *(outcome.status, self.version, text, outcome.steps_done),
                            *(outcome.seconds, now, gethostname(), held.pop(key)),
                        ),
                    )
                connection.executemany(
                    "UPDATE runs SET step = ?, seconds = seconds + ? WHERE id = ?",
                    [(update.step, update.seconds, number) for number in held.values()],
                )
                _keep_checkpoints(connection, pack, update, held, (self.version, now))
        if lost:
            raise ClaimLost(f"{self.path}: {lost}; nothing was kept")

    def fail(self, keys: Sequence[str], error: str, owner: str) -> None:
        """Marks runs as failed, with the error in one line. Raises ClaimLost where `owner` does not
        hold one of them.
        """
        line = " ".join(error.split())
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE runs SET status = 'failed', error = ?, owner = NULL, pack = NULL,"
                " ended = ?, version = ?, host = ?"
                f" WHERE owner = ? AND status = '{RUNNING}' AND {LISTED}",
                (line, time.time(), self.version, gethostname(), owner, _listed(keys)),
            ).rowcount
            if changed < len(set(keys)):
                raise ClaimLost(
                    f"{self.path}: {owner} holds {changed} of {len(set(keys))} runs that are said"
                    " to have failed; nothing was kept"
                )
            _drop_needless_checkpoints(connection)


def _taken(connection: Connection, keys: Sequence[str], owner: str) -> list[str]:
    """Claims what is free of some runs, and returns all of them that the owner holds."""
    listed = _listed(keys)
    connection.execute(
        f"UPDATE runs SET status = '{RUNNING}', owner = ? WHERE status = '{WAITING}' AND {LISTED}",
        (owner, listed),
    )
    query = f"SELECT key FROM runs WHERE status = '{RUNNING}' AND owner = ? AND {LISTED}"
    held = {key for (key,) in connection.execute(query, (owner, listed))}
    return [key for key in dict.fromkeys(keys) if key in held]


def _listed(keys: Iterable[str]) -> str:
    return json.dumps(list(keys))


def _begin_anew(connection: Connection, listed: str) -> int:
    """Lets the damaged ones of the listed runs wait in a new row each; the old rows stay as they
    are. Returns how many.
    """
    found = connection.execute(
        f"SELECT id, key, specification, cell, sweep FROM runs WHERE {BROKEN} AND {LISTED}",
        (listed,),
    ).fetchall()
    if found:
        # an index has what stood there before, and would not let go of it
        connection.execute("REINDEX")
    for number, *row in found:
        connection.execute("UPDATE runs SET replaced = 1 WHERE id = ?", (number,))
        new = connection.execute(
            "INSERT INTO runs (key, specification, cell, sweep, created) VALUES (?, ?, ?, ?, ?)",
            (*row, time.time()),
        ).lastrowid
        connection.execute("UPDATE members SET run = ? WHERE run = ?", (new, number))
    return len(found)


def _keep_metrics(
    connection: Connection, metrics: Sequence[Metric], held: dict[str, int], anew: list[int]
) -> None:
    """From its first new step on, what was told of a run before came from a training that was
    broken off: its metrics give way, so that a curve is of one training. All of them do where
    the training began anew.
    """
    rows = [
        # SQLite keeps a NaN as NULL
        (held[one.key], one.step, one.loss, one.accuracy, one.learning_rate)
        for one in metrics
        if one.key in held
    ]
    first = dict.fromkeys(anew, 0)
    for number, step, *_ in rows:
        first[number] = min(step, first.get(number, step))
    connection.executemany("DELETE FROM metrics WHERE run = ? AND step >= ?", first.items())
    connection.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)", rows)


def _keep_checkpoints(
    connection: Connection,
    pack: Pack,
    update: Update,
    going: dict[str, int],
    told: tuple[str, float],
) -> None:
    """What members go on with; `told` is by which version, and when."""
    # members that somebody else holds: what was told of them ends before this checkpoint
    connection.execute("UPDATE runs SET pack = NULL WHERE pack = ?", (pack.key,))
    begun = None if update.checkpoint is None else pack.key
    if begun and going:
        connection.execute(
            "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)",
            (begun, _listed(pack.keys), update.step, *told, update.checkpoint),
        )
    connection.executemany(
        "UPDATE runs SET pack = ? WHERE id = ?", [(begun, number) for number in going.values()]
    )
    _drop_needless_checkpoints(connection)


def _drop_needless_checkpoints(connection: Connection) -> None:
    """Drops the checkpoints of packs that no run goes on with."""
    connection.execute(
        "DELETE FROM checkpoints WHERE NOT EXISTS"
        " (SELECT 1 FROM runs WHERE runs.pack = checkpoints.pack)"
    )
