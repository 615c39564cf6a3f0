"""Who works on a store: processes, named so that another one can tell whether they still live; and
what this one does when it is told to stop.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Self

_PROC = Path("/proc")
_ZOMBIES = "ZX"
"""States of processes that are dead but not yet waited for."""


@dataclass(frozen=True)
class Process:
    """A process, wherever it runs."""

    host: str
    machine: str
    """Tells apart what a host's name does not: boots of a machine, and its containers."""
    number: int
    started: str
    """When, in the kernel's words: numbers of processes are used again. "" where unknown."""

    @property
    def here(self) -> bool:
        """Whether it belongs to this machine, so that its number means something."""
        return self.machine == this_machine()

    @property
    def dead(self) -> bool:
        """Whether it certainly runs no more; of another machine that is never certain."""
        return self.here and not _lives(self.number, self.started)


def this_process() -> Process:
    return process(os.getpid())


def process(number: int) -> Process:
    """A process of this machine."""
    return Process(socket.gethostname(), this_machine(), number, _status(number)[1])


@cache
def this_machine() -> str:
    """A digest of the host's name, its boot and the namespace of its process numbers."""
    parts = [socket.gethostname()]
    try:
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink(_PROC / "self/ns/pid"))
    except OSError:
        # no Linux: the name has to do
        parts.append("")
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _lives(number: int, started: str) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # somebody else's, and there
        pass
    state, now = _status(number)
    return state not in _ZOMBIES and (not started or not now or now == started)


def _status(number: int) -> tuple[str, str]:
    """A process's state and start, in the kernel's words; ("?", "") where they cannot be read."""
    try:
        text = (_PROC / str(number) / "stat").read_text(errors="replace")
    except OSError:
        return "?", ""
    # the name in front may hold blanks and brackets
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


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
