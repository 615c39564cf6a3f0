"""Canonical JSON and its hash: one text for one value."""

from __future__ import annotations

import hashlib
import json
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
