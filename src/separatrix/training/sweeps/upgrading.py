"""A store of version 1, written anew: it had no hashes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from sqlite3 import Connection

from separatrix.core.errors import SpecError, StoreError
from separatrix.core.evidence.canonical import sha256
from separatrix.core.evidence.outcome import Outcome
from separatrix.training.sweeps.database import Database, make
from separatrix.training.sweeps.schema import ADD_CELL, FIND_CELL, RUNNING, WAITING

_KEPT = (
    *("key", "specification", "status", "version", "outcome", "id", "sweep", "pack", "step"),
    *("seconds", "error", "host", "created", "ended", "completions", "replaced"),
)
_INSERT = (
    f"INSERT INTO runs ({', '.join(_KEPT)}, cell, digest, seal)"
    f" SELECT {', '.join(f'?{place + 1}' for place in range(len(_KEPT)))}, cell,"
    " iif(?5 IS NULL, NULL, digest(?1, ?2, ?3, ?4, ?5)),"
    " iif(?5 IS NULL, NULL, seal(cell, json_extract(?2, '$.learning_rate'),"
    f" json_extract(?2, '$.seed'), ?3, ?5)) FROM (SELECT {FIND_CELL} AS cell)"
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
    count = 0
    for row in there.execute(f"SELECT {', '.join(_KEPT)} FROM runs ORDER BY id"):
        key, specification, status, version, outcome, *rest = row
        if not _whole(key, specification, status, outcome):
            damaged.append(str(key)[:12])
            continue
        here.execute(ADD_CELL, (key, specification))
        waits = WAITING if status == RUNNING else status
        here.execute(_INSERT, (key, specification, waits, version, outcome, *rest))
        count += 1
    members = there.execute("SELECT sweep, position, key FROM members")
    here.executemany(
        "INSERT INTO members (sweep, position, run)"
        " SELECT ?, ?, id FROM runs WHERE key = ? AND replaced = 0",
        members,
    )
    here.executemany(
        "INSERT INTO metrics SELECT ?1, ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1",
        there.execute("SELECT * FROM metrics"),
    )
    here.executemany(
        "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)",
        there.execute("SELECT * FROM checkpoints"),
    )
    return count, damaged


def _whole(key: str, specification: str, status: str, outcome: str | None) -> bool:
    """Whether a run, and what it ended with, is what was stored, as far as that can be seen."""
    try:
        json.loads(specification)
        found = None if outcome is None else Outcome.from_json(json.loads(outcome))
        ended = status if status in ("done", "diverged") else None
        return key == sha256(specification) and ended == (found and found.status)
    except (SpecError, ValueError, TypeError, KeyError, AttributeError):
        return False
