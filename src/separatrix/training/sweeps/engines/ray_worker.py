"""What runs on the nodes of a Ray cluster: one process a slot, which keeps its models in memory.

A process of the cluster imports this file, so it needs no Ray, and torch only when it works.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace

from separatrix.core.evidence.code import code_version
from separatrix.training.slices import Slice, Update
from separatrix.training.sweeps.engines.base import Failed, Work, attempted
from separatrix.training.sweeps.engines.pool import THREADS


@dataclass(frozen=True)
class Hello:
    """What a worker says of itself once it runs."""

    version: str
    """Of the package on its node."""
    host: str
    process: int


class Worker:
    """A worker of the cluster: computes slices, one after the other, in one thread."""

    def __init__(self, work: Work) -> None:
        # before torch is loaded, which asks them once
        os.environ.update(THREADS)
        self._work = work
        self._last: bytes | None = None

    def hello(self) -> Hello:
        """Says which code runs here."""
        return Hello(code_version(), socket.gethostname(), os.getpid())

    def compute(self, piece: Slice, last: bool) -> Update | Failed:
        """A slice's update, or why the work raised. With `last` the slice comes without its
        checkpoint, which is the one that this worker gave last.
        """
        if last:
            piece = replace(piece, checkpoint=self._last)
        update = attempted(self._work, piece)
        self._last = update.checkpoint if isinstance(update, Update) else None
        return update
