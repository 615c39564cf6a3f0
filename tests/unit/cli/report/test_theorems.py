"""Every theorem and statement can be listed and explained, with statement, premises,
sketch and source.
"""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.cli.report.theorems import describe, rows
from separatrix.core.errors import UnknownNameError
from separatrix.theory import THEOREMS
from separatrix.theory.words import KNOWN


@each("key", [row["key"] for row in rows()])
def test_everything_listed_is_explained(key: str) -> None:
    parts = dict(describe(key))
    assert next(iter(parts)).startswith(f"{key}: ")
    assert {"proof sketch", "source"} <= set(parts)
    assert all(parts.values())
    assert ("premises" in parts) != (key == "none")


def test_the_list_is_complete() -> None:
    keys = [row["key"] for row in rows()]
    assert keys == [*THEOREMS, *KNOWN]
    assert len(set(keys)) == len(keys)


@each("key, near", [("VIII", "VII"), ("retreival", "retrieval"), ("levles", "levels")])
def test_unknown_keys_suggest_the_nearest(key: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown theorem '{key}'") as caught:
        describe(key)
    assert near in str(caught.value)
    assert "\n" not in str(caught.value)
