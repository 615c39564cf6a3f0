"""The tables of a store. A change of them is a new `VERSION`.

A run's row is its key; its specification and outcome are JSON, of which SQLite itself computes the
columns that lists are sorted by, so that they cannot disagree. `digest` is the hash of both; what
summaries are made of stands a second time in the index `shown`, under a seal (`sealing.py`). The
last two triggers hold whatever a program may do: an ended run never changes, and a run that was
once kept is never dropped.

In a table without row numbers the columns of its key stand first: quick_check of SQLite 3.40
takes the others for missing otherwise.
"""

from __future__ import annotations

import re

VERSION = 2
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

CREATE TABLE owners (
    name TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    machine TEXT NOT NULL,
    process INTEGER NOT NULL,
    started TEXT NOT NULL,
    version TEXT NOT NULL,
    file INTEGER NOT NULL,
    since REAL NOT NULL,
    beaten REAL NOT NULL
) WITHOUT ROWID;

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
