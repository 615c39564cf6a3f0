"""A store of version 1, written anew: it had no hashes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from separatrix.core.errors import SpecError, StoreError
from separatrix.core.evidence.canonical import sha256
from separatrix.core.evidence.outcome import Outcome
from separatrix.training.sweeps.database import Database, make
from separatrix.training.sweeps.schema import RUNNING, STATUSES, WAITING, digest, seal
from separatrix.training.sweeps.store import Cells

_KEPT = (
    *("id", "key", "specification", "sweep", "status", "pack", "step", "seconds", "outcome"),
    *("error", "version", "host", "created", "ended", "completions", "replaced"),
)


def upgrade(old: Path, new: Path) -> tuple[int, list[str]]:
    """Writes what a store of version 1 holds into a new one, whole or not at all; the old one stays
    as it is. Returns how many runs there are, and the keys of those that were left out: damaged,
    as far as that can be seen without hashes. Raises StoreError.
    """
    if new.exists():
        raise StoreError(f"{new} is there already; name a new store")
    part = new.with_name(f".{new.name}.{os.getpid()}")
    source = Database(old, writing=False, version=1)
    try:
        make(part)
        target = Database(part, writing=True)
        try:
            with source.reading() as there, target.transaction() as here:
                found = _copied(there, here)
        finally:
            target.close()
        # unlike a rename, a link takes the place of nothing
        os.link(part, new)
    except OSError as error:
        raise StoreError(f"{new}: cannot be written: {error.strerror or error}") from None
    finally:
        source.close()
        part.unlink(missing_ok=True)
    return found


def _copied(there: Connection, here: Connection) -> tuple[int, list[str]]:
    damaged: list[str] = []
    query = f"SELECT {', '.join(_KEPT)} FROM runs ORDER BY id"
    names = (*_KEPT, "cell", "digest", "seal")
    marks = ", ".join("?" * len(names))
    cells = Cells(here)
    count = 0
    for values in there.execute(query):
        row = dict(zip(_KEPT, values, strict=True))
        try:
            run, outcome = _read(row)
        except (SpecError, ValueError, TypeError, KeyError, AttributeError):
            damaged.append(str(row["key"])[:12])
            continue
        cell = cells.of(run)
        if row["status"] == RUNNING:
            row["status"] = WAITING
        hashed = sealed = None
        if outcome is not None:
            words = ("key", "specification", "status", "version", "outcome")
            hashed = digest(*(row[name] for name in words))
            place = STATUSES.index(row["status"])
            sealed = seal(cell, float(run["learning_rate"]), run["seed"], place, outcome)
        here.execute(
            f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})",
            (*row.values(), cell, hashed, sealed),
        )
        count += 1
    _copy_beside(there, here)
    return count, damaged


def _read(row: dict[str, Any]) -> tuple[dict[str, Any], Outcome | None]:
    """A run, and what it ended with. Raises ValueError where one of them is not what was stored, as
    far as that can be seen.
    """
    outcome = None if row["outcome"] is None else Outcome.from_json(json.loads(row["outcome"]))
    ended = row["status"] if row["status"] in ("done", "diverged") else None
    if row["key"] != sha256(row["specification"]) or ended != (outcome and outcome.status):
        raise ValueError
    return json.loads(row["specification"]), outcome


def _copy_beside(there: Connection, here: Connection) -> None:
    """Sweeps, metrics and checkpoints of the runs that were copied."""
    live = dict(here.execute("SELECT key, id FROM runs WHERE replaced = 0"))
    every = {number for (number,) in here.execute("SELECT id FROM runs")}

    def members() -> Iterator[tuple[str, int, int]]:
        for sweep, key, place in there.execute("SELECT sweep, key, position FROM members"):
            if key in live:
                yield sweep, live[key], place

    here.executemany("INSERT INTO members VALUES (?, ?, ?)", members())
    for table, marks in (("metrics", 5), ("checkpoints", 6)):
        rows = there.execute(f"SELECT * FROM {table}")
        kept = (row for row in rows if table == "checkpoints" or row[0] in every)
        here.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * marks)})", kept)
