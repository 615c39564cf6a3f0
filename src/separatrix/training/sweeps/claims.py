"""Who trains which runs, and whose claims are free again; within a transaction of the store."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from separatrix.core.errors import StoreError
from separatrix.training.sweeps.processes import Process, this_process
from separatrix.training.sweeps.schema import RUNNING, WAITING

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
    return [Owner(row[0], Process(*row[1:5]), *row[5:]) for row in found]


def register(
    connection: sqlite3.Connection, name: str, this: Process, version: str, path: Path, file: int
) -> bool:
    """Says that an owner of this process lives, and returns whether it is new. Raises StoreError
    where another living process goes by this name: both would train the same runs.
    """
    now = time.time()
    found = next((owner for owner in owners(connection) if owner.name == name), None)
    if found is not None and found.process == this:
        connection.execute("UPDATE owners SET beaten = ? WHERE name = ?", (now, name))
        return False
    if found is not None:
        if not found.gone(file, now):
            raise StoreError(
                f"{path}: {found.process} works on this store as '{name}', too; take another name"
            )
        free(connection, name)
    connection.execute(
        "INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (name, *astuple(this), version, file, now, now),
    )
    return True


def free_the_dead(connection: sqlite3.Connection, owner: str, file: int) -> None:
    """Frees the claims of all owners but this one that are gone."""
    now = time.time()
    for one in owners(connection):
        if one.name != owner and one.gone(file, now):
            free(connection, one.name)


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


def free(connection: sqlite3.Connection, name: str) -> None:
    """Takes an owner out, with all its claims."""
    connection.execute(
        f"UPDATE runs SET status = '{WAITING}', owner = NULL"
        f" WHERE owner = ? AND status = '{RUNNING}'",
        (name,),
    )
    connection.execute("DELETE FROM owners WHERE name = ?", (name,))


def take(connection: sqlite3.Connection, keys: Sequence[str], owner: str) -> list[str]:
    """Claims what is free of some runs, and returns all of them that the owner holds."""
    listed = json.dumps(list(keys))
    own = " AND replaced = 0 AND key IN (SELECT value FROM json_each(?))"
    connection.execute(
        f"UPDATE runs SET status = '{RUNNING}', owner = ? WHERE status = '{WAITING}'{own}",
        (owner, listed),
    )
    query = f"SELECT key FROM runs WHERE status = '{RUNNING}' AND owner = ?{own}"
    held = {key for (key,) in connection.execute(query, (owner, listed))}
    return [key for key in dict.fromkeys(keys) if key in held]
