"""The tables of a store. A change of them is a new `VERSION`.

A run's row is its key; its specification is JSON, of which SQLite itself keeps the columns that
lists are sorted by, so that they cannot disagree. The last two triggers hold whatever a program
may do: an ended run never changes, and a run that was once kept is never dropped.

In a table without row numbers the columns of its key stand first: quick_check of SQLite 3.40
takes the others for missing otherwise.
"""

from __future__ import annotations

import re

VERSION = 1
APPLICATION = 0x53505458
"""Marks an SQLite file as a store of this package: "SPTX"."""
WAITING = "waiting"
RUNNING = "running"
ENDED = ("done", "diverged", "failed")
STATUSES = (WAITING, RUNNING, *ENDED)

SCHEMA = f"""
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    specification TEXT NOT NULL,
    architecture TEXT GENERATED ALWAYS AS (json_extract(specification, '$.architecture')) STORED,
    task TEXT GENERATED ALWAYS AS (json_extract(specification, '$.task')) STORED,
    seed INTEGER GENERATED ALWAYS AS (json_extract(specification, '$.seed')) STORED,
    learning_rate REAL
        GENERATED ALWAYS AS (json_extract(specification, '$.learning_rate')) STORED,
    steps INTEGER GENERATED ALWAYS AS (json_extract(specification, '$.steps')) STORED,
    sweep TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT '{WAITING}' CHECK (status IN {STATUSES}),
    owner TEXT,
    pack TEXT,
    step INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    outcome TEXT,
    correct INTEGER GENERATED ALWAYS AS (json_extract(outcome, '$.correct')) STORED,
    tested INTEGER GENERATED ALWAYS AS (json_extract(outcome, '$.tested')) STORED,
    error TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    host TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    ended REAL,
    completions INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX run_of_key ON runs (key) WHERE replaced = 0;
CREATE INDEX runs_of_pack ON runs (pack) WHERE pack IS NOT NULL;
CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL;

CREATE TABLE members (
    sweep TEXT NOT NULL,
    key TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (sweep, key)
) WITHOUT ROWID;
CREATE INDEX members_of_key ON members (key);

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
BEFORE UPDATE OF key, specification, status, step, seconds, outcome, error, version, host, ended
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
