"""An engine without processes, which computes a slice when it is waited for, and may lose some."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from separatrix.training.packs import Slice
from separatrix.training.sweeps.engines.base import Engine, Lost, Result, Work, attempted


class InPlace(Engine):
    """`losing` says of each slice, counted from 1, whether its worker dies."""

    def __init__(
        self, work: Work, workers: int = 2, losing: Callable[[int, Slice], bool] | None = None
    ) -> None:
        self._work = work
        self._workers = workers
        self._losing = losing
        self.taken: list[Slice] = []
        self._queue: deque[int] = deque()

    @property
    def workers(self) -> int:
        return self._workers

    def submit(self, piece: Slice) -> int:
        self.taken.append(piece)
        self._queue.append(len(self.taken))
        return len(self.taken)

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        if not self._queue:
            return []
        ticket = self._queue.popleft()
        piece = self.taken[ticket - 1]
        if self._losing is not None and self._losing(ticket, piece):
            return [(ticket, Lost(f"worker {ticket} died"))]
        return [(ticket, attempted(self._work, piece))]

    def close(self) -> None:
        self._queue.clear()
