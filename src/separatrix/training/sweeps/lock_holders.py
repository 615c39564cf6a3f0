"""Which programs hold a lock on a store, so that an error can name them (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

from separatrix.training.sweeps.processes import command_of

_LOCKS = Path("/proc/locks")
_MOST_NAMED = 3


def lock_holders(path: Path) -> str:
    """The processes that hold a lock on an SQLite file for writing, such as "process 4711 (sqlite3
    runs.db)"; "another program" where the system does not say.
    """
    files = {_number(path.with_name(path.name + end)) for end in ("", "-wal", "-shm")}
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        lines = []
    numbers = set()
    for line in lines:
        words = line.split()
        # "1: POSIX ADVISORY WRITE 4711 fe:00:2678931 120 120"; those that wait have "->" in front
        if len(words) >= 6 and words[3] == "WRITE" and words[5].rpartition(":")[2] in files:
            numbers.add(int(words[4]))
    others = sorted(number for number in numbers if number > 0 and number != os.getpid())
    if not others:
        return "another program"
    named = [f"process {number} ({command_of(number) or '?'})" for number in others[:_MOST_NAMED]]
    return " and ".join(named)


def _number(path: Path) -> str | None:
    try:
        return str(path.stat().st_ino)
    except OSError:
        return None
