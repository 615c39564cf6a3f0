"""Canonical JSON and its hash: one text for one value; and which code made a result."""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, cast

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def canonical(value: object) -> str:
    """Canonical JSON: sorted keys, no spaces, no NaN or infinity; equal values give equal bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def json_object(value: object) -> dict[str, Any] | None:
    """The value where it is a JSON object, None where it is anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def json_list(value: object) -> list[Any] | None:
    """The value where it is a JSON array, None where it is anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def sha256(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


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
