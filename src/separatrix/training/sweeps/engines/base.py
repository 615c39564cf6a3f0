"""What computes slices of training: the interface that every engine has, and what comes back.

A slice is a pure function of its pack, its checkpoint and its seconds, so that an engine may
compute it anywhere, and again wherever a worker was lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from separatrix.core.errors import SeparatrixError, first_line
from separatrix.training.packs import Slice, Update

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
    def submit(self, piece: Slice) -> int:
        """Takes a slice and returns its ticket at once; what is more than `workers` waits its turn.

        Goes to the worker that computed this pack last where that one is free, since it still has
        the models in memory.
        """

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


def attempted(work: Work, piece: Slice) -> Update | Failed:
    """What a worker does: the slice's update, or why the work raised, in one line."""
    try:
        return work(piece)
    except SeparatrixError as error:
        return Failed(first_line(error))
    except Exception as error:
        return Failed(described(error))


def described(error: Exception) -> str:
    """An error that nobody expected: its kind, its message and where it was raised."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    message = first_line(error)
    return f"{type(error).__name__}{': ' if message else ''}{message}{place}"
