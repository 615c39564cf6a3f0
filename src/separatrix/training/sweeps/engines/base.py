"""What computes slices of training: the interface that every engine has, and what comes back.

A slice is a pure function of its pack, its checkpoint and its seconds, so that an engine may
compute it anywhere, and again wherever a worker was lost.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, Self, TypeVar

from separatrix.core.errors import SeparatrixError, first_line
from separatrix.training.packs import Slice, Update

Argument = TypeVar("Argument")
Value = TypeVar("Value")
Work = Callable[[Slice], Update]
"""What a worker does with a slice; picklable, so a function of a module."""


@dataclass(frozen=True)
class Lost:
    """A worker or its node died, and nothing came back: the same slice may be submitted again."""

    reason: str
    """One line, such as "worker process 4711 was killed by SIGKILL"."""


@dataclass(frozen=True)
class Failed:
    """The work itself raised: the same slice would raise again."""

    error: str
    """One line."""


Result = Update | Lost | Failed


class Engine(ABC):
    """Workers that compute slices. Used by one thread, and closed when it is left (`with`)."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many slices it computes at once, now: nodes may come and go."""

    @abstractmethod
    def submit(self, piece: Slice, /) -> int:
        """Takes a slice and returns its ticket at once; what is more than `workers` waits."""

    @abstractmethod
    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        """What has come back since the last call, by ticket, each ticket once: at once where there
        is something, else as soon as there is, and after `timeout` seconds with nothing.

        Raises SeparatrixError where no worker can be had any more: nothing could go on.
        """

    def said(self) -> list[str]:
        """Lines for whoever watches, since the last call: a node that is not used, and why."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Drops what is still being computed and ends the workers, within about a second; again
        is harmless.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(eq=False)
class Worker:
    """One that computes, one thing after the other."""

    handle: Any
    place: Any
    """Where it is: its number on this machine, its node of a cluster."""
    ready: bool = False
    ticket: int | None = None
    """Of what it computes."""


class Crew(ABC, Generic[Argument, Value]):
    """Workers, wherever they are, and what waits for one."""

    def __init__(self) -> None:
        self.crew: list[Worker] = []
        self._queue: deque[tuple[int, Argument]] = deque()
        self._tickets = count(1)
        self._back: list[tuple[int, Value | Failed | Lost]] = []

    @abstractmethod
    def send(self, worker: Worker, argument: Argument) -> None:
        """Has a worker compute something."""

    @abstractmethod
    def listen(self, timeout: float) -> None:
        """Takes in what workers say, or nothing in that time: `came` and `lost`."""

    def submit(self, argument: Argument, /) -> int:
        """A ticket for what will come back."""
        ticket = next(self._tickets)
        self._queue.append((ticket, argument))
        self.give()
        return ticket

    def wait(self, timeout: float) -> list[tuple[int, Value | Failed | Lost]]:
        """What has come back, by ticket, after `timeout` seconds at the latest. Raises EngineError
        where no worker can be had any more.
        """
        end = time.monotonic() + timeout
        while not self._back:
            left = max(0.0, end - time.monotonic())
            self.listen(left)
            self.give()
            if not left:
                break
        back, self._back = self._back, []
        return back

    def came(self, worker: Worker, value: Value | Failed) -> None:
        """A worker has computed what it had."""
        if worker.ticket is not None:
            self._back.append((worker.ticket, value))
        worker.ticket = None

    def lost(self, worker: Worker, reason: str) -> None:
        """A worker is gone, with what it was at."""
        self.crew.remove(worker)
        if worker.ticket is not None:
            self._back.append((worker.ticket, Lost(reason)))

    def give(self) -> None:
        """Hands out what is queued."""
        for worker in [one for one in self.crew if one.ready and one.ticket is None]:
            if not self._queue:
                return
            worker.ticket, argument = self._queue.popleft()
            self.send(worker, argument)


def attempted(work: Callable[[Argument], Value], piece: Argument) -> Value | Failed:
    """What a worker does: its work, or why that raised, in one line."""
    try:
        return work(piece)
    except SeparatrixError as error:
        return Failed(first_line(error))
    except Exception as error:
        return Failed(described(error))


def described(error: Exception) -> str:
    """An error that nobody expected: its kind, its message and where it was raised."""
    frame = extract_tb(error.__traceback__)[-1]
    message = first_line(error)
    said = f"{type(error).__name__}{': ' if message else ''}{message}"
    return f"{said} ({Path(frame.filename).name}, line {frame.lineno})"
