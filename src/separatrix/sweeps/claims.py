"""Claims: who trains which runs, and whose claims are free again. What is here runs within a
transaction of the store.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from separatrix.errors import StoreError
from separatrix.sweeps.processes import Process
from separatrix.sweeps.schema import RUNNING, WAITING

LEASE = 60.0
"""Seconds after which the claims of an owner that has not told of itself are free."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Who has claimed runs."""

    name: str
    process: Process
    version: str
    """Of its code."""
    file: str
    """The store as it opened it: a copy of the store has another."""
    since: float
    beaten: float
    """When it last told of itself."""

    def gone(self, now: float) -> bool:
        """Whether its claims are free: its process is dead, or silent for too long."""
        return self.process.dead or now - self.beaten > LEASE


def owners(connection: sqlite3.Connection) -> list[Owner]:
    found = connection.execute(
        "SELECT name, host, machine, process, started, version, file, since, beaten FROM owners"
        " ORDER BY since, name"
    )
    return [
        Owner(
            name=name,
            process=Process(host, machine, number, started),
            version=version,
            file=file,
            since=since,
            beaten=beaten,
        )
        for name, host, machine, number, started, version, file, since, beaten in found
    ]


def register(
    connection: sqlite3.Connection, name: str, process: Process, version: str, path: Path
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
        if not found.gone(now):
            raise StoreError(
                f"{path}: {found.process} works on this store as '{name}', too; take another name"
            )
        free(connection, [name])
    status = path.stat()
    connection.execute(
        "INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            name,
            process.host,
            process.machine,
            process.number,
            process.started,
            version,
            f"{status.st_dev}:{status.st_ino}",
            now,
            now,
        ),
    )
    return True


def free_the_dead(connection: sqlite3.Connection, owner: str) -> None:
    """Frees the claims of all owners but this one that are gone."""
    now = time.time()
    free(
        connection,
        [one.name for one in owners(connection) if one.name != owner and one.gone(now)],
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
