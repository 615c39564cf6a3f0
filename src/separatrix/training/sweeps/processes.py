"""Whether a process lives, told by a file that it has locked; and what this one does when it is
told to stop.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Self

_held: dict[Path, int] = {}
"""Files that this process has locked, open until it lets go of them."""


def hold(path: Path) -> None:
    """Locks a file until `let_go`, or until this process is gone, however that comes; again is
    harmless. Raises OSError where the file cannot be made or locked.
    """
    if path not in _held:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(file)
            raise
        _held[path] = file


def is_held(path: Path) -> bool:
    """Whether a living process, this one included, has locked it. Raises OSError."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def let_go(path: Path) -> None:
    """Removes a file that nobody else holds."""
    path.unlink(missing_ok=True)
    if path in _held:
        os.close(_held.pop(path))


class Stopping:
    """While it is entered, a first signal is only noted; a second one interrupts at once.

    In a thread that is not the main one no signals arrive, and nothing is changed.
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # whoever starts it in the background may have it ignore Ctrl-C
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            # None: a handler that was not installed from Python
            signal.signal(number, handler or signal.SIG_DFL)  # pyright: ignore[reportArgumentType]
        self._before.clear()

    def heed(self) -> None:
        """Raises what the noted signal stands for: KeyboardInterrupt or SystemExit."""
        if self.asked is signal.SIGINT:
            raise KeyboardInterrupt
        if self.asked is not None:
            raise SystemExit(128 + self.asked)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again = self.asked is not None
        self.asked = signal.Signals(number)
        if again:
            self.heed()
