"""Files and folders that appear whole or not at all, and the checksums of what a folder holds."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from separatrix.core.errors import OutputError


def write_atomic(path: Path, data: str | bytes) -> None:
    """Writes `data` to `path`, making its folder if need be. Raises OutputError (cannot be
    written, disk full) and leaves what was there untouched.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror or error}; choose another place"
        ) from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


class Checksum(NamedTuple):
    sha256: str
    bytes: int


def check_new(out: Path) -> None:
    """Raises OutputError where something stands at `out` already."""
    if os.path.lexists(out):
        raise OutputError(
            f"{out}: exists already, and nothing is overwritten; name a new place, or remove it"
        )


@contextmanager
def new_folder(out: Path) -> Generator[Path, None, None]:
    """A hidden folder beside `out` that becomes `out` when the block ends well and is removed
    otherwise, on an interrupt too, with the folders above that were made for it.

    Raises OutputError when `out` exists or when anything cannot be written, the block's own files
    included.
    """
    check_new(out)
    made: Path | None = None
    new: list[Path] = []
    try:
        new = list(takewhile(lambda path: not path.exists(), out.parents))
        out.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
        yield made
        _settle(made)
        made.rename(out)
        # folders above are wanted from here on
        new.clear()
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "a file stands where a folder is needed" if in_the_way else error.strerror or error
        raise OutputError(f"{out}: cannot be written: {reason}; choose another place") from None
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        for path in new:  # folders made for this one alone, the innermost first
            # one that someone else has put something into is not empty and stays
            with suppress(OSError):
                path.rmdir()


def _settle(folder: Path) -> None:
    """Files on the disk itself before they get their name, and readable as the user's other
    files are.
    """
    # the mask can only be read by setting it
    umask = os.umask(0)
    os.umask(umask)
    for path in (folder, *folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                # a new name may reach the disk before the contents do
                os.fsync(file.fileno())
        else:
            path.chmod(0o777 & ~umask)


def checksum(path: Path) -> Checksum:
    with path.open("rb") as file:
        return Checksum(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def checksums(folder: Path) -> dict[str, Checksum]:
    """Every file by its name relative to `folder`, sorted."""
    return {
        path.relative_to(folder).as_posix(): checksum(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
