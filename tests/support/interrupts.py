"""Processes that are to be interrupted."""

from __future__ import annotations

import signal


def heeds_interrupts() -> None:
    """In a new process: a shell that starts the tests in the background has them ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
