"""Ctrl-C and SIGTERM, heeded between two steps of a loop instead of in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


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
