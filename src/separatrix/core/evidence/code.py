"""Which code made a result: the package's version, and a digest of its sources."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path


def package_version() -> str:
    """The package's version, which its root alone knows."""
    return str(vars(sys.modules["separatrix"])["__version__"])


@cache
def code_digest() -> str:
    """sha256 over the package's Python sources: any change of them gives another."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def code_version() -> str:
    """Both in one short text, such as "0.1.0+3f2a9c01"."""
    return f"{package_version()}+{code_digest()[:8]}"
