"""The SQLite file under a store: made whole or not at all, opened, looked over, and every error
of SQLite told in one line. Nothing here deletes or overwrites a file that was there.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path
from uuid import uuid4

from separatrix.core.errors import StoreError
from separatrix.core.evidence.canonical import sha256
from separatrix.training.sweeps.schema import (
    APPLICATION,
    PARTS,
    SCHEMA,
    VERSION,
    digest,
    seal,
)

WAIT = 10.0
"""Seconds to wait for another program's lock."""
LOOKED_OVER = 64 << 20
"""Bytes of the largest file whose structure is checked each time somebody begins to write to it:
a fraction of a second.
"""
UPGRADES = "6f698f2f", "b8dc9978"
"""Commits of this repository that bring stores of version 2 over (whatever sweep opens them), and
those of version 1 (`separatrix runs upgrade OLD NEW`).
"""
BESIDE = "-wal"
"""What is written goes into a file of this ending first."""
_WAL_LIMIT = 64 << 20
_SAID = {
    sqlite3.SQLITE_NOTADB: "no store of runs (no SQLite file); give another --store",
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        "the store is locked by another program; waited {waited:.0f} s. Nothing was changed; try"
        " again when it is done",
    ),
    sqlite3.SQLITE_FULL: "the disk is full; nothing that was stored is lost. Free some space, and"
    " the same command goes on",
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
        "the store cannot be {can}: {error}; it needs a folder that can be written",
    ),
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written ({error}); nothing that was stored"
    " is lost. Look at the disk, and the same command goes on",
}
"""What an error of SQLite means for a store, and what to do."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT)


class Database:
    """One connection to a store, for any thread of this process. Raises StoreError, in one line,
    for whatever SQLite cannot do.
    """

    def __init__(self, path: Path, *, writing: bool) -> None:
        _check_file(path)
        self.path = path
        # where a link leads to: SQLite keeps its log there, and whoever changes folders finds it
        self.file = path.resolve()
        self.number = self.file.stat().st_ino
        """What tells this file from a copy."""
        self.writing = writing
        self._lock = threading.RLock()
        with told(self.path, writing):
            self._connection = sqlite3.connect(
                f"{self.file.as_uri()}?{_mode(self.file, writing)}",
                uri=True,
                timeout=WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
        self._connection.create_function("digest", 5, digest, deterministic=True)
        self._connection.create_function("sha256", 1, lambda x: sha256(f"{x}"), deterministic=True)
        self._connection.create_function("seal", 5, seal, deterministic=True)
        try:
            with told(self.path, self.writing):
                self._begin()
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """All of what is written in it, or nothing, whenever a process is killed.

        Where it is `lasting`, not even a loss of power takes it back, for a few milliseconds more:
        who ends a run has spent minutes on it. A claim need not outlive its process.
        """
        with self._lock, told(self.path, self.writing):
            self._check_place()
            connection = self._connection
            connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            # at once: who reads first and writes then may find that another has written between
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite itself rolls back where the disk is full
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the store, whatever others write meanwhile."""
        with self._lock, told(self.path, self.writing):
            connection = self._connection
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def looks_sound(self) -> None:
        """Raises StoreError where the structure of the file is damaged; reads all of it."""
        with self._lock, told(self.path, self.writing):
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            # the first line only says which database
            raise damaged(self.path, str(found).splitlines()[-1][:100])

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _check_place(self) -> None:
        """Raises StoreError where the file was moved or removed since it was opened: SQLite would
        go on writing into what nobody finds again.
        """
        try:
            number = self.file.stat().st_ino
        except OSError:
            number = 0
        if number != self.number:
            raise StoreError(
                f"{self.path}: the store was moved, removed or replaced while this process used it;"
                " put it back with its -wal file, and the same command goes on"
            )

    def _check_names(self) -> None:
        """Raises StoreError where the file has a second name (a hard link): SQLite finds its log by
        the name alone, and whoever writes under two names loses results.
        """
        if self.file.stat().st_nlink == 1:
            return
        for left in self.file.parent.glob(f".{escape(self.file.name)}.????????"):
            # of a `make` that was killed
            with suppress(OSError):
                if left.samefile(self.file):
                    left.unlink()
        if self.file.stat().st_nlink > 1:
            raise StoreError(
                f"{self.path}: the store has a second name, and who writes under two loses results;"
                f" `find -samefile {self.file}` says where. Remove the one without a -wal file"
            )

    def _begin(self) -> None:
        connection = self._connection
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        _check_version(self.path, application, version)
        # SQLite takes what a cut-off page lacks for zeros
        if self.file.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0]:
            raise damaged(self.path, "it is cut off within a page")
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for kind, name in PARTS:
            if name not in there:
                raise damaged(self.path, f"it lacks the {kind} {name}")
        if not self.writing:
            connection.execute("PRAGMA query_only = ON")
            return
        self._check_names()
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}").fetchone()
        if self.file.stat().st_size <= LOOKED_OVER:
            self.looks_sound()


def make(path: Path) -> None:
    """An empty store at `path`, whole from its first moment; what is there already stays as it
    is. Raises StoreError where none can be made.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # with the user's own permissions, which SQLite would narrow
        temporary.touch()
        with told(path, True), closing(sqlite3.connect(temporary, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode = WAL").fetchone()
            # nobody sees the file before all of it is on the disk
            made.execute("PRAGMA synchronous = OFF")
            made.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        # unlike a rename, a link never takes the place of what another process has just made
        os.link(temporary, path)
    except FileExistsError:
        if path.parent.exists() and not path.parent.is_dir():
            raise StoreError(f"{path}: {path.parent} is no folder; give another --store") from None
    except OSError as error:
        raise StoreError(
            f"{path}: no store can be made there: {error.strerror or error}; give another --store"
        ) from None
    finally:
        with suppress(OSError):
            for end in ("", BESIDE, "-shm"):
                temporary.with_name(temporary.name + end).unlink(missing_ok=True)


def _check_file(path: Path) -> None:
    """Raises StoreError for what is no file at all: to open a pipe would be to wait for whoever
    writes into it.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder; a store is one file, such as {path}/sweeps.sqlite")
    if not os.path.exists(path):
        raise StoreError(
            f"there is no store at {path}; `separatrix train GRID.yaml --store {path}` makes"
            " one, and --store names another"
        )
    if not path.is_file():
        raise StoreError(f"{path} is no ordinary file; a store is one")


def _check_version(path: Path, application: int, version: int) -> None:
    """Raises StoreError for another program's file, and for a store of another version."""
    if application != APPLICATION:
        raise StoreError(
            f"{path} is no store of runs: it is empty, cut off, or an SQLite file of another"
            " program; give another --store"
        )
    if version > VERSION:
        raise StoreError(
            f"{path} was made by a newer Separatrix (store version {version}; this one reads"
            f" {VERSION}); upgrade, or give another --store"
        )
    if version < VERSION:
        newer, older = UPGRADES
        raise StoreError(
            f"{path} was made by an earlier Separatrix (store version {version}; this one reads"
            f" {VERSION}): a sweep by the code of commit {newer} brings version 2 over, and before"
            f" it `separatrix runs upgrade {path} NEW` by that of {older} version 1"
        )


def damaged(path: Path, how: str) -> StoreError:
    return StoreError(
        f"{path}: the store is damaged ({how}); nothing was changed. Restore a copy of it with its"
        " -wal file, or give another --store"
    )


@contextmanager
def told(path: Path, writing: bool) -> Iterator[None]:
    """SQLite's errors as ours."""
    began = time.monotonic()
    try:
        yield
    except (sqlite3.DatabaseError, sqlite3.DataError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # a text that Python cannot read is no argument of its functions
        if code in _DAMAGED or "user-defined function" in str(error):
            raise damaged(path, str(error)) from error
        words = {
            "waited": time.monotonic() - began,
            "can": "written" if writing else "read",
            "error": error,
        }
        said = _SAID.get(code, "the store refused: {error}").format(**words)
        raise StoreError(f"{path}: {said}") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path}: {ascii(error.object)[:60]} is no text") from error
    except UnicodeDecodeError as error:
        # Python cannot even read what SQLite says of it
        raise damaged(path, "its texts are no UTF-8") from error
    except OverflowError as error:
        raise StoreError(f"{path}: more than SQLite can keep at once: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be claimed: {error.strerror or error}") from error


def _mode(path: Path, writing: bool) -> str:
    if writing:
        return "mode=rw"
    beside = path.with_name(path.name + BESIDE).exists()
    folder = os.access(path.parent, os.W_OK)
    if not beside and not folder:
        # no file can be made beside the store, so that nobody writes to it either
        return "mode=ro&immutable=1"
    # who may write takes its own files beside the store away again; where somebody else's stand
    # there, a reader leaves them as they are
    return "mode=rw" if not beside and os.access(path, os.W_OK) else "mode=ro"
