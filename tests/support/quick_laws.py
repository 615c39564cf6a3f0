"""Sizes of the laws for `make test`, beyond a chunk and most windows; `make test-slow` and
`check-mechanism` take the laws' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from separatrix.mixers import Mixer
from separatrix.mixers.laws import (
    LAWS,
    bounds,
    fed,
    formats,
    forms,
    memory,
    monotone,
)

_QUICK: dict[ModuleType, dict[str, Any]] = {
    forms: {
        "LENGTHS": (1, 64, 75),
        "ROWS": ((2, (1, 64, 75)),),
        "CHUNKS": (7, 100),
        "PLACED": (1, 70),
        "ASKED": (3,),
        "HALF": 6,
        "ROW": 20,
        "SHORT": 2,
        "STEPPED": 2,
        "LONG": (80, 140),
        "FEW": (2, 3),
        "MANY": (9,),
        "MORE": (10, 12),
        "LARGE": (13, 15),
        "STACKED": (70, 80),
    },
    memory: {
        "CACHE_LENGTHS": (1, 2, 3, 64, 200),
        "ALONE": 20,
        "STEPS": 12,
        "LOADED": (70, 80),
    },
    bounds: {"SIZES": (0.0, 1e4), "LONG": 300},
    formats: {"SIZES": ((2, 9),), "ROWS": (3, 4), "FEW": 5, "TOKENS": 20, "SHORT": 3},
    fed: {"SEQUENCES": ((4, 30, 40),), "EVERY": 9, "LENGTHS": (), "CUTS": 2, "FUTURES": (9, 12)},
    monotone: {"PLACES": 20, "MOST": 1 << 11, "FEWEST": 128, "ROWS": 64},
}


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every law at its quick sizes, for one test."""
    for module, sizes in _QUICK.items():
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)


def broken_laws(mixer: Mixer, laws: Sequence[str] = tuple(LAWS)) -> set[str]:
    """The laws that a mixer breaks; an exception raised on the way breaks the law too."""
    broken = set()
    for law in laws:
        try:
            LAWS[law](mixer)
        except Exception:
            broken.add(law)
    return broken
