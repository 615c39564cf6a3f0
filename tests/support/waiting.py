"""Waiting for events of other processes. Nothing is judged by how long that takes: the only limit
ends a test that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SAFETY = 600.0
"""Seconds after which a test that hangs is ended."""


def until(true: Callable[[], object], otherwise: Callable[[], str] | None = None) -> None:
    """Returns once something is true. Raises AssertionError with the text of `otherwise`."""
    end = time.monotonic() + SAFETY
    while not true():
        assert time.monotonic() < end, otherwise() if otherwise else "it hangs"
        time.sleep(0.02)
