"""Canonical JSON and its hash: one text for one value."""

from __future__ import annotations

import hashlib
import json

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def canonical(value: object) -> str:
    """Canonical JSON: sorted keys, no spaces, no NaN or infinity; equal values give equal bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def sha256(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
