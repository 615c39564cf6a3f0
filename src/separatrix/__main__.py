"""`separatrix` and `python -m separatrix`: the command line, and Ctrl-C while it loads and ends."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_AGAIN = 0.05
"""Seconds until the next look whether torch has loaded."""


def main() -> None:
    """Runs a command; Ctrl-C ends it with one line and exit code 130, whenever it comes."""
    # a shell's background job ignores Ctrl-C; Windows has no such timers
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ours = heeded and hasattr(signal, "setitimer")
    if ours:
        signal.signal(signal.SIGINT, _leave)
    from separatrix.cli.main import main as command

    try:
        if ours:
            signal.signal(signal.SIGALRM, _interrupt)
            signal.signal(signal.SIGINT, _interrupt)
        command()
    finally:
        if ours:
            # what it had to say is said, and Python is about to end
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _leave(number: int, frame: FrameType | None) -> None:
    """Before a command nothing is open."""
    os.write(2, b"interrupted; nothing is half-written\n")
    os._exit(130)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, while torch loads as soon as it has: raised where its C++ calls
    Python it would abort the process.
    """
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    if not getattr(spec, "_initializing", False):
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)


if __name__ == "__main__":
    main()
