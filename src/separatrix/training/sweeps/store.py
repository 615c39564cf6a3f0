"""The store: every run of every sweep in one SQLite file, written so that a process may be killed
at any moment.

Each method is one transaction. Whoever trains a run has claimed it; a claim holds while its
process lives and tells of itself now and then. What a run has ended with never changes again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Self

from separatrix.core.errors import ClaimLost, StoreError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.code import code_version
from separatrix.training.sweeps import claims
from separatrix.training.sweeps.claims import LEASE, Owner
from separatrix.training.sweeps.database import Database, make
from separatrix.training.sweeps.processes import this_process
from separatrix.training.sweeps.reading import BROKEN, Reading, begun_packs
from separatrix.training.sweeps.schema import RUNNING, WAITING
from separatrix.training.sweeps.stored import Stored

if TYPE_CHECKING:
    from separatrix.training.packs import Pack, Update
    from separatrix.training.run import Run

__all__ = ["LEASE", "Begun", "ClaimLost", "Owner", "Store", "StoreError", "Stored"]


@dataclass(frozen=True)
class Begun:
    """A pack with a checkpoint, and how far it is."""

    pack: Pack
    held: list[str]
    """Members that are claimed now."""
    step: int
    checkpoint: bytes


class Store(Reading):
    """A store of runs. Every method raises StoreError, in one line, where the file cannot be read
    or written; what was stored before stays as it was.
    """

    def __init__(self, database: Database, version: str) -> None:
        self._database = database
        self.version = version
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
        texts = {key: known[key].canonical().to_json() for key in map(_key, runs)}
        with self._database.transaction() as connection:
            cells = Cells(connection)
            rows = [(key, canonical(run), cells.of(run), sweep, now) for key, run in texts.items()]
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO runs (key, specification, cell, sweep, created)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            new = connection.total_changes - before
            connection.executemany(
                "INSERT INTO members (sweep, position, run)"
                " SELECT ?, ?, id FROM runs WHERE key = ? AND replaced = 0"
                " ON CONFLICT (sweep, run) DO UPDATE SET position = excluded.position",
                [(sweep, place, key) for place, key in enumerate(texts)],
            )
        return new

    def retry(self, keys: Iterable[str]) -> int:
        """Lets failed and damaged runs wait again, and returns how many. What damaged ones hold is
        kept as it is.
        """
        listed = _listed(keys)
        with self._database.transaction() as connection:
            damaged = _begin_anew(connection, BROKEN, listed)
            failed = connection.execute(
                f"UPDATE runs SET status = '{WAITING}', error = '', step = 0, ended = NULL"
                " WHERE replaced = 0 AND status = 'failed'"
                " AND key IN (SELECT value FROM json_each(?))",
                (listed,),
            ).rowcount
        return damaged + failed

    def renew(self, keys: Iterable[str]) -> int:
        """Lets ended runs of another version of the code wait again, and returns how many. What
        they ended with is kept: `earlier` tells it.
        """
        other = "status IN ('done', 'diverged', 'failed') AND version <> ?"
        with self._database.transaction() as connection:
            return _begin_anew(connection, other, _listed(keys), self.version)

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
                for pack, step, data in begun_packs(connection, _listed(held), self.version):
                    members = claims.take(connection, pack.keys, owner)
                    begun.append(Begun(pack, members, step, data))
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
            told = claims.Telling(connection, pack, owner, self.version)
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
            claims.drop_needless_checkpoints(connection)

    def watch(self, runs: Iterable[tuple[str, int, float]]) -> None:
        """Names the runs that `standing` tells of, each by key with the number of its cell and with
        what its training costs.
        """
        with self._database.transaction(lasting=False) as connection:
            # of this connection alone
            connection.execute("DROP TABLE IF EXISTS temp.watched")
            connection.execute(
                "CREATE TEMP TABLE watched (run INTEGER PRIMARY KEY, line INTEGER, cost REAL)"
            )
            connection.executemany(
                "INSERT OR REPLACE INTO watched"
                " SELECT id, ?2, ?3 FROM runs WHERE replaced = 0 AND key = ?1",
                runs,
            )


def _listed(keys: Iterable[str]) -> str:
    return json.dumps(list(keys))


def _key(run: Run) -> str:
    return run.key


def _begin_anew(connection: Connection, which: str, keys: str, *values: str) -> int:
    """Lets those of the runs of which a condition holds wait in a new row each; the old rows stay
    as they are. Returns how many.
    """
    found = connection.execute(
        "SELECT id, key, specification, cell, sweep FROM runs WHERE replaced = 0"
        f" AND {which} AND key IN (SELECT value FROM json_each(?))",
        (*values, keys),
    ).fetchall()
    if found and which == BROKEN:
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


class Cells:
    """The cells of a store, each with a number: runs without their seeds and learning rates."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        known = connection.execute("SELECT specification, id FROM cells")
        self._known: dict[str, int] = dict(known.fetchall())

    def of(self, run: Mapping[str, Any]) -> int:
        """The number of the cell of a canonical run in JSON: new where the store has none."""
        rest = {name: run[name] for name in run if name not in ("seed", "learning_rate")}
        text = canonical(rest)
        if text not in self._known:
            self._known[text] = len(self._known) + 1
            self._connection.execute("INSERT INTO cells VALUES (?, ?)", (self._known[text], text))
        return self._known[text]
