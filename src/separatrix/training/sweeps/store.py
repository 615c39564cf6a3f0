"""The store: every run of every sweep in one SQLite file, written so that a process may be killed
at any moment.

Each method is one transaction. Whoever trains a run has claimed it; a claim holds while its
process lives and tells of itself now and then. What a run has ended with never changes again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import TYPE_CHECKING, Self

from separatrix.core.errors import ClaimLost, StoreError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.code import code_version
from separatrix.training.sweeps import claims, reading, telling
from separatrix.training.sweeps.claims import LEASE, Owner
from separatrix.training.sweeps.database import Database, make
from separatrix.training.sweeps.processes import this_process
from separatrix.training.sweeps.reading import Listed
from separatrix.training.sweeps.schema import RUNNING, WAITING
from separatrix.training.sweeps.stored import Stored

if TYPE_CHECKING:
    from separatrix.training.packs import Pack
    from separatrix.training.run import Run
    from separatrix.training.slices import Metric, Update

__all__ = ["LEASE", "Begun", "ClaimLost", "Owner", "Store", "StoreError", "Stored"]


@dataclass(frozen=True)
class Begun:
    """A pack with a checkpoint, and how far it is."""

    pack: Pack
    held: list[str]
    """Members that are claimed now."""
    step: int
    checkpoint: bytes


class Store:
    """A store of runs. Every method raises StoreError, in one line, where the file cannot be read
    or written; what was stored before stays as it was.
    """

    def __init__(self, database: Database, version: str) -> None:
        self._database = database
        self.version = version
        """Of the code that trains here."""
        self.note = ""
        """What a user should know of the file before it is used; "" where nothing is strange."""
        self._names: set[str] = set()
        try:
            owners = self.owners() if database.alone else []
            # somebody may have opened the store just now
            if owners and database.still_alone():
                self.note = claims.left_open(owners, database.path, database.number)
                database.looks_sound()
        except BaseException:
            database.close()
            raise

    @classmethod
    def open(cls, path: Path | str, *, version: str | None = None, wait: float = 10.0) -> Store:
        """A store that is there, to write to it; `wait` is how many seconds another program's lock
        is waited for. Raises StoreError where there is none.
        """
        return cls(Database(Path(path), writing=True, wait=wait), version or code_version())

    @classmethod
    def create(cls, path: Path | str, *, version: str | None = None, wait: float = 10.0) -> Store:
        """The store at `path`, made first where there is nothing."""
        path = Path(path)
        if not os.path.exists(path):
            make(path)
        return cls.open(path, version=version, wait=wait)

    @classmethod
    def read(cls, path: Path | str, *, wait: float = 10.0) -> Store:
        """A store that is there, only to look at it: nothing of it changes."""
        return cls(Database(Path(path), writing=False, wait=wait), "")

    @property
    def path(self) -> Path:
        return self._database.path

    def close(self) -> None:
        """Gives back what was claimed through this object, and closes the file."""
        try:
            for name in sorted(self._names):
                self.release(name)
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- what a sweep wants

    def add(self, sweep: str, runs: Sequence[Run]) -> int:
        """Puts runs into a sweep, in this order, and returns how many the store did not know: these
        wait. A run that another sweep had stays as it is, with its outcome.
        """
        now = time.time()
        # a run that stands twice has its first place
        known = {run.key: run for run in reversed(runs)}
        rows = [
            (key, canonical(known[key].canonical().to_json()), sweep, now)
            for key in dict.fromkeys(run.key for run in runs)
        ]
        with self._database.transaction() as connection:
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO runs (key, specification, sweep, created)"
                " VALUES (?, ?, ?, ?)",
                rows,
            )
            new = connection.total_changes - before
            connection.executemany(
                "INSERT INTO members (sweep, position, key) VALUES (?, ?, ?)"
                " ON CONFLICT (sweep, key) DO UPDATE SET position = excluded.position",
                [(sweep, place, row[0]) for place, row in enumerate(rows)],
            )
        return new

    def retry(self, keys: Iterable[str]) -> int:
        """Lets failed runs wait again, and returns how many."""
        with self._database.transaction() as connection:
            return connection.execute(
                f"UPDATE runs SET status = '{WAITING}', error = '', step = 0, ended = NULL"
                " WHERE replaced = 0 AND status = 'failed'"
                " AND key IN (SELECT value FROM json_each(?))",
                (_listed(keys),),
            ).rowcount

    def renew(self, keys: Iterable[str]) -> int:
        """Lets ended runs of another version of the code wait again, and returns how many. What
        they ended with is kept: `earlier` tells it.
        """
        now = time.time()
        with self._database.transaction() as connection:
            found = connection.execute(
                "SELECT id, key, specification, sweep FROM runs WHERE replaced = 0"
                " AND status IN ('done', 'diverged', 'failed') AND version <> ?"
                " AND key IN (SELECT value FROM json_each(?))",
                (self.version, _listed(keys)),
            ).fetchall()
            connection.executemany(
                "UPDATE runs SET replaced = 1 WHERE id = ?", [(row[0],) for row in found]
            )
            connection.executemany(
                "INSERT INTO runs (key, specification, sweep, created) VALUES (?, ?, ?, ?)",
                [(*row[1:], now) for row in found],
            )
        return len(found)

    # ---- who trains what

    def claim(self, keys: Sequence[str], owner: str) -> list[str]:
        """Those of the runs that nobody else trains and that have not ended, in this order: from
        now on `owner` trains them. What dead processes had claimed is free.

        Raises StoreError where another living process has this owner's name.
        """
        return self._claim(keys, owner, going_on=False)[0]

    def take_up(self, keys: Sequence[str], owner: str) -> tuple[list[str], list[Begun]]:
        """Claims runs, and at once whatever is free of the packs with a checkpoint that one of them
        was in: two processes never go on with parts of one pack. Returns those of the runs that
        `owner` holds, and these packs.
        """
        return self._claim(keys, owner, going_on=True)

    def _claim(
        self, keys: Sequence[str], owner: str, *, going_on: bool
    ) -> tuple[list[str], list[Begun]]:
        begun: list[Begun] = []
        with self._database.transaction(lasting=False) as connection:
            new = self._register(connection, owner)
            claims.free_the_dead(connection, owner, self._database.number)
            held = claims.take(connection, keys, owner)
            if going_on and held:
                for pack in reading.packs(connection, _listed(held), self.version):
                    members = claims.take(connection, pack.keys, owner)
                    begun.append(
                        Begun(pack, members, *reading.begun(connection, pack, self.version))
                    )
        if new:
            # from now on the store itself says that somebody writes beside it
            self._database.flush()
        return held, begun

    def beat(self, owner: str) -> None:
        """Says that `owner` lives: every few seconds, since its claims lapse after LEASE."""
        with self._database.transaction(lasting=False) as connection:
            self._register(connection, owner)

    def release(self, owner: str, keys: Iterable[str] | None = None) -> None:
        """Gives back what `owner` has claimed, or those `keys` of it; checkpoints stay."""
        only = "" if keys is None else " AND key IN (SELECT value FROM json_each(?))"
        values = () if keys is None else (_listed(keys),)
        with self._database.transaction(lasting=False) as connection:
            connection.execute(
                f"UPDATE runs SET status = '{WAITING}', owner = NULL"
                f" WHERE status = '{RUNNING}' AND owner = ?{only}",
                (owner, *values),
            )
            if keys is None:
                connection.execute("DELETE FROM owners WHERE name = ?", (owner,))
        if keys is None:
            self._names.discard(owner)

    def owners(self) -> list[Owner]:
        """Who has claimed runs, the first of them first; some may be dead."""
        with self._database.reading() as connection:
            return claims.owners(connection)

    def _register(self, connection: Connection, owner: str) -> bool:
        self._names.add(owner)
        return claims.register(
            connection, owner, this_process(), self.version, self.path, self._database.number
        )

    # ---- what training tells

    def tell(self, pack: Pack, update: Update, owner: str) -> None:
        """Keeps what a slice of a pack's training gave: metrics, ended runs and checkpoint.

        Raises ClaimLost, and keeps nothing, where `owner` holds no run of the pack, or not one that
        the update tells of. A run that ended before stays as it is; its `completions` count on.
        """
        with self._database.transaction() as connection:
            told = telling.Telling(connection, pack, owner, self.version)
            lost = told.problem(update)
            if not lost:
                told.keep(update, this_process().host)
        if lost:
            raise ClaimLost(f"{self.path}: {lost}")

    def fail(self, keys: Sequence[str], error: str, owner: str) -> None:
        """Marks runs as failed, with the error in one line. Raises ClaimLost where `owner` does not
        hold one of them.
        """
        line = " ".join(error.split())
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE runs SET status = 'failed', error = ?, owner = NULL, pack = NULL,"
                " ended = ?, version = ?, host = ? WHERE replaced = 0 AND owner = ?"
                f" AND status = '{RUNNING}' AND key IN (SELECT value FROM json_each(?))",
                (line, time.time(), self.version, this_process().host, owner, _listed(keys)),
            ).rowcount
            if changed < len(set(keys)):
                raise ClaimLost(
                    f"{self.path}: {owner} holds {changed} of {len(set(keys))} runs that are said"
                    " to have failed; nothing was kept"
                )
            telling.drop_needless_checkpoints(connection)

    def checkpoint(self, pack: Pack) -> bytes | None:
        """The last checkpoint of exactly this pack; None where there is none of this version of
        the code.
        """
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT data FROM checkpoints WHERE pack = ? AND version = ?",
                (pack.key, self.version),
            ).fetchone()
        return None if found is None else found[0]

    def packs(self, keys: Sequence[str]) -> list[Pack]:
        """The packs with a checkpoint that hold one of these runs, ended members included."""
        with self._database.reading() as connection:
            return reading.packs(connection, _listed(keys), self.version)

    # ---- what is there

    def rows(
        self,
        sweep: str | None = None,
        status: str | None = None,
        *,
        sort: str = "",
        limit: int = 0,
    ) -> list[Stored]:
        """The runs of a sweep in its order, or all in the order in which they came; `sort` names a
        column, with "-" in front the largest first. Raises UnknownNameError for an unknown one.
        """
        with self._database.reading() as connection:
            return reading.rows(connection, sweep, status, sort, limit)

    def listed(
        self,
        sweep: str | None = None,
        status: str | None = None,
        *,
        sort: str = "",
        limit: int = 0,
    ) -> list[Listed]:
        """The same runs as lists show them: quicker where there are many."""
        with self._database.reading() as connection:
            return reading.listed(connection, sweep, status, sort, limit)

    def objects(
        self,
        sweep: str | None = None,
        status: str | None = None,
        *,
        sort: str = "",
        limit: int = 0,
    ) -> list[str]:
        """The same runs as objects of JSON, each in one line, with their runs and outcomes."""
        with self._database.reading() as connection:
            return reading.objects(connection, sweep, status, sort, limit)

    def run(self, key_prefix: str) -> Stored:
        """The run whose key begins so. Raises StoreError for none, and for several."""
        with self._database.reading() as connection:
            return reading.one(connection, self.path, key_prefix)

    def earlier(self, key: str) -> list[Stored]:
        """What a run ended with before `renew`, the first of it first."""
        with self._database.reading() as connection:
            return reading.earlier(connection, key)

    def metrics(self, key: str) -> list[Metric]:
        """A run's metrics by step; the loss is NaN where it was no number."""
        with self._database.reading() as connection:
            return reading.metrics(connection, key)

    def all_metrics(
        self, sweep: str | None = None, status: str | None = None
    ) -> list[tuple[str, int, float | None, float | None, float | None]]:
        """The metrics of many runs as rows (key, step, loss, accuracy, learning rate)."""
        with self._database.reading() as connection:
            return reading.all_metrics(connection, sweep, status)

    def counts(self, sweep: str | None = None) -> dict[str, int]:
        """How many runs have each status, statuses without a run left out."""
        with self._database.reading() as connection:
            return reading.counts(connection, sweep)

    def sweeps(self) -> dict[str, int]:
        """The sweeps, the first of them first, with how many runs each has."""
        with self._database.reading() as connection:
            return reading.sweeps(connection)


def _listed(keys: Iterable[str]) -> str:
    return json.dumps(list(keys))
