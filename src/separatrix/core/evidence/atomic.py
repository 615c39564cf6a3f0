"""Writing files so that nothing is ever half-written: a temporary file beside the target, then a
rename.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
            f"{path}: cannot be written: {error.strerror or error}; choose another place with --out"
        ) from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
