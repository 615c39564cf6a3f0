"""Who trains which runs, and whose claims are free again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from sqlite3 import Connection

from separatrix.core.errors import StoreError
from separatrix.training.sweeps.processes import Process, this_process
from separatrix.training.sweeps.reading import LISTED, Begun, Reading
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

    def gone(self, file: int) -> bool:
        """Whether its claims are free: its process is dead, works on the file that this one is a
        copy of, or has been silent for too long.
        """
        return (self.process.here and not self.works_on(file)) or time.time() - self.beaten > LEASE


class Claims(Reading):
    """The part of a store that says who trains what."""

    _names: set[str]
    """Of the owners that claimed something through this object."""

    def take_up(self, keys: Sequence[str], owner: str) -> tuple[list[str], list[Begun]]:
        """Claims those of some runs that nobody else trains and that have not ended, and at once
        whatever is free of the packs with a checkpoint that one of them was in: two processes never
        go on with parts of one pack. What dead processes had claimed is free.

        Returns those of the runs, in this order, that `owner` holds (a name that no other process
        has), and these packs.
        """
        begun: list[Begun] = []
        with self._database.transaction(lasting=False) as connection:
            new = self._register(connection, owner)
            for one in self.owners():
                if one.name != owner and one.gone(self._database.number):
                    _free(connection, one.name)
            held = _taken(connection, keys, owner)
            for one in self.begun(held):
                members = _taken(connection, one.pack.keys, owner)
                begun.append(one._replace(held=members))
        if new:
            # from now on the store itself says that somebody writes beside it
            self._database.flush()
        return held, begun

    def beat(self, owner: str) -> None:
        """Says that `owner` lives: every few seconds, since its claims lapse after LEASE."""
        with self._database.transaction(lasting=False) as connection:
            self._register(connection, owner)

    def _register(self, connection: Connection, name: str) -> bool:
        """Says that an owner lives, and returns whether it is new."""
        self._names.add(name)
        new = name not in {owner.name for owner in self.owners()}
        now = time.time()
        connection.execute(
            "INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (name, *astuple(this_process()), self.version, self._database.number, now, now),
        )
        return new

    def release(self, owner: str) -> None:
        """Gives back what `owner` has claimed; checkpoints stay."""
        with self._database.transaction(lasting=False) as connection:
            _free(connection, owner)
        self._names.discard(owner)

    def owners(self) -> list[Owner]:
        """Who has claimed runs, the first of them first; some may be dead."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT name, host, machine, process, started, version, file, since, beaten"
                " FROM owners ORDER BY since, name"
            )
            return [Owner(row[0], Process(*row[1:5]), *row[5:]) for row in found]

    def left_open(self) -> str:
        """What it means that owners never closed the store and nothing stands in the file beside
        it, where what is written goes first; "" where that is not so. Raises StoreError where one
        of them still writes, or where the file is damaged.
        """
        path = self._database.path
        owners = self.owners()
        # somebody may have opened the store just now
        if not owners or not self._database.still_alone():
            return ""
        for owner in owners:
            if owner.process != this_process() and owner.works_on(self._database.number):
                raise StoreError(
                    f"{path}: {owner.process} writes to this store, but its -wal file was taken"
                    " away; end that process, and what it had not stored is trained again"
                )
        self._database.looks_sound()
        last = max(owners, key=lambda owner: owner.beaten)
        return (
            f"{path}: {last.process}, which wrote to this store last, did not close it, and no -wal"
            " file stands beside it; what was stored last may be missing, and is trained again"
        )


def _free(connection: Connection, name: str) -> None:
    """Takes an owner out, with all its claims."""
    connection.execute(
        f"UPDATE runs SET status = '{WAITING}', owner = NULL"
        f" WHERE owner = ? AND status = '{RUNNING}'",
        (name,),
    )
    connection.execute("DELETE FROM owners WHERE name = ?", (name,))


def _taken(connection: Connection, keys: Sequence[str], owner: str) -> list[str]:
    """Claims what is free of some runs, and returns all of them that the owner holds."""
    listed = json.dumps([*keys])
    connection.execute(
        f"UPDATE runs SET status = '{RUNNING}', owner = ? WHERE status = '{WAITING}' AND {LISTED}",
        (owner, listed),
    )
    query = f"SELECT key FROM runs WHERE status = '{RUNNING}' AND owner = ? AND {LISTED}"
    held = {key for (key,) in connection.execute(query, (owner, listed))}
    return [key for key in dict.fromkeys(keys) if key in held]
