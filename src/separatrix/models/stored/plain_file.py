"""Reading a file that a record names: a plain file of the size expected, and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from separatrix.core.errors import CannotCheck, EvidenceError
from separatrix.core.evidence.typed import parse_json

_MOST_JSON = 1 << 20


def read_plain(path: Path, *, least: int, most: int, what: str = "the weights") -> bytes:
    """The bytes of a file of `least` to `most` bytes. Raises CannotCheck for a link, a device, a
    pipe, another size, or a file that cannot be read; `what` is in it, in words.
    """
    try:
        # not every system has the flag; without it the look before tells links apart
        if stat.S_ISLNK(path.lstat().st_mode):
            raise CannotCheck(f"{path}: a link, where {what} must lie")
        # a pipe would block, and a link may have taken the file's place since
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise CannotCheck(f"{path}: a folder, a device or a pipe, and no file with {what}")
            if not least <= found.st_size <= most:
                raise CannotCheck(
                    f"{path}: {found.st_size:,} bytes; {what} described take {least:,} to {most:,}:"
                    " the file is cut off, or another one"
                )
            return file.read(most + 1)
    except OSError as error:
        raise CannotCheck(f"{path}: {what} cannot be read: {error.strerror or error}") from None


def plain_json(path: Path) -> Any:
    """The JSON in such a file. Raises EvidenceError, naming the file, where there is none."""
    data = read_plain(path, least=2, most=_MOST_JSON, what="the contents")
    try:
        return parse_json(data.decode())
    except UnicodeDecodeError:
        raise EvidenceError(f"{path}: not a text file") from None
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from None
