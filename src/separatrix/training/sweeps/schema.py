"""The tables of a store. A change of them is a new `VERSION`.

A run's row is its key; its specification and outcome are JSON, of which SQLite itself computes the
columns that lists are sorted by, so that they cannot disagree. `digest` is the hash of both; what
summaries are made of stands a second time in the index `shown`, under a seal. The last two triggers
hold whatever a program may do: an ended run never changes, and a run that was once kept is never
dropped.

In a table without row numbers the columns of its key stand first: quick_check of SQLite 3.40
takes the others for missing otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray


VERSION = 3
APPLICATION = 0x53505458
"""Marks an SQLite file as a store of this package: "SPTX"."""
WAITING = "waiting"
RUNNING = "running"
ENDED = ("done", "diverged", "failed")
STATUSES = (WAITING, RUNNING, *ENDED)
DAMAGED = "damaged"
"""The status of a run whose hash is not that of what it ended with: only ever read, never kept."""
SEALED = ("cell", "learning_rate", "seed", "status", "step", "correct", "tested", "answered", "due")
"""Columns under the seal; of the status its place in `STATUSES`."""


def _column(name: str, kind: str, source: str, path: str = "") -> str:
    value = f"json_extract({source}, '$.{path or name}')"
    return f"{name} {kind} GENERATED ALWAYS AS (iif(json_valid({source}), {value}, NULL)) VIRTUAL"


CELL = "json_remove(?2, '$.seed', '$.learning_rate')"
"""The text of the cell of a run with the specification ?2: all but its seed and learning rate."""
ADD_CELL = f"INSERT OR IGNORE INTO cells (specification) VALUES ({CELL})"
FIND_CELL = f"(SELECT id FROM cells WHERE specification = {CELL})"
_OF_RUN = {"architecture": "TEXT", "task": "TEXT", "seed": "INTEGER", "learning_rate": "REAL"}
_OF_OUTCOME = ("correct", "tested", "due")

SCHEMA = f"""
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    specification TEXT NOT NULL UNIQUE
);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    specification TEXT NOT NULL,
    {", ".join(_column(name, kind, "specification") for name, kind in _OF_RUN.items())},
    {_column("steps", "INTEGER", "specification")},
    cell INTEGER NOT NULL REFERENCES cells (id),
    sweep TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT '{WAITING}' CHECK (status IN {STATUSES}),
    owner TEXT,
    pack TEXT,
    step INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    outcome TEXT,
    {", ".join(_column(name, "INTEGER", "outcome") for name in _OF_OUTCOME)},
    {_column("answered", "INTEGER", "outcome", "right")},
    digest BLOB,
    seal INTEGER,
    error TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    host TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    ended REAL,
    completions INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX run_of_key ON runs (key) WHERE replaced = 0;
CREATE INDEX shown ON runs ({", ".join(SEALED)}, seal, version) WHERE replaced = 0;
CREATE INDEX runs_of_pack ON runs (pack) WHERE pack IS NOT NULL;
CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL;

CREATE TABLE members (
    sweep TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (sweep, run)
) WITHOUT ROWID;
CREATE INDEX members_of_run ON members (run);

CREATE TABLE metrics (
    run INTEGER NOT NULL REFERENCES runs (id),
    step INTEGER NOT NULL,
    loss REAL,
    accuracy REAL,
    learning_rate REAL,
    PRIMARY KEY (run, step)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    pack TEXT PRIMARY KEY,
    members TEXT NOT NULL,
    step INTEGER NOT NULL,
    version TEXT NOT NULL,
    told REAL NOT NULL,
    data BLOB NOT NULL
);

CREATE TRIGGER ended_stays
BEFORE UPDATE OF key, specification, cell, status, step, seconds, outcome, digest, seal, error,
    version, host, ended
ON runs WHEN OLD.status IN {ENDED} AND NOT (OLD.status = 'failed' AND NEW.status = '{WAITING}')
BEGIN SELECT RAISE(ABORT, 'a run that has ended never changes'); END;

CREATE TRIGGER kept_stays BEFORE DELETE ON runs
BEGIN SELECT RAISE(ABORT, 'a run is never dropped from a store'); END;

PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""
"""`ended_stays` lets a failed run wait again: it has no outcome that could be lost."""
PARTS = [
    (kind.lower(), name) for kind, name in re.findall(r"CREATE (?:UNIQUE )?(\w+) (\w+)", SCHEMA)
]
"""Kind and name of everything that a store has."""


_FACTOR = 0x9E3779B97F4A7C15


def digest(*parts: object) -> bytes:
    """Of an ended run's key, specification, status, version and outcome; SQLite calls it, too."""
    return sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def seals(columns: Sequence[NDArray[int64]]) -> NDArray[int64]:
    """A number for each row of some columns. Each of its steps can be undone, so that a change of
    one number in a row always changes it; of several, all but once in 2^64.
    """
    import numpy as np

    found = np.ones(len(columns[0]), np.uint64)
    for column in columns:
        found ^= column.view(np.uint64)
        found *= np.uint64(_FACTOR)
        found ^= found >> np.uint64(32)
    return found.view(np.int64)


def seal(cell: int, rate: float, seed: int, status: str, outcome: str) -> int:
    """Of what a run is and ended with: the columns of `SEALED`, as SQLite calls it, too."""
    import numpy as np

    ended = json.loads(outcome)
    counts = (ended.get(name, 0) for name in ("steps_done", "correct", "tested", "right", "due"))
    columns = (np.array([n]) for n in (cell, float(rate), seed, STATUSES.index(status), *counts))
    return int(seals([column.view(np.int64) for column in columns])[0])
