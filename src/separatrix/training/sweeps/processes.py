"""Whether a process lives, told by a file that it has locked; and what this one does when it is
told to stop.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Self

_held: dict[Path, int] = {}
"""Files that this process has locked, open until it lets go of them."""


def hold(path: Path) -> None:
    """Locks a file until `let_go`, or until this process is gone, however that comes; again makes
    one anew that was removed. Raises OSError where the file cannot be made or locked.
    """
    if path in _held and is_held(path):
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(file)
        raise
    if path in _held:
        os.close(_held[path])
    _held[path] = file


def is_held(path: Path) -> bool:
    """Whether a living process, this one included, has locked it. Raises OSError."""
    try:
        # not to wait for whoever writes into a pipe
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        # a shared lock: NFS gives no other for a file that was opened to be read
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def let_go(path: Path) -> None:
    """Unlocks a file that nobody else holds, and removes it; one that stays is not held."""
    with suppress(OSError):
        path.unlink()
    if path in _held:
        os.close(_held.pop(path))


def _leave_to_parent() -> None:
    """A forked copy of this process has its locked files open, too, and may outlive it."""
    while _held:
        os.close(_held.popitem()[1])


os.register_at_fork(after_in_child=_leave_to_parent)


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
