"""The engine of one machine: worker processes, one for each core or each GPU; one thread each, and
none outlives its parent.

They are started anew, not forked, and do not run the user's script again: it needs no guard.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from separatrix.core.errors import EngineError, SizeError, first_line
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import (
    Engine,
    Failed,
    Lost,
    Result,
    Work,
    attempted,
    described,
)
from separatrix.training.sweeps.engines.child import started

Argument = TypeVar("Argument")
Value = TypeVar("Value")

STARTS = 3
"""Workers in a row that may die before they are ready."""
PATIENCE = 1.0
"""Seconds that an ended worker has to be gone."""
THREADS: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes(Generic[Argument, Value]):
    """At most `most` processes that compute `function`, each after `first`; both picklable. They
    start when there is something to do.
    """

    def __init__(
        self,
        function: Callable[[Argument], Value],
        most: int | None = None,
        *,
        first: Callable[[], None] | None = None,
    ) -> None:
        most = cores() if most is None else most
        # a bool is an int to isinstance, but no number of processes
        if type(most) is not int or most < 1:
            raise SizeError(f"{most!r} processes; it must be an integer of at least 1")
        self.most = most
        self._opening = pickle.dumps((function, first))
        self._workers: list[_Worker] = []
        self._queue: deque[tuple[int, str, Argument]] = deque()
        self._tickets = count(1)
        self._back: list[tuple[int, Value | Exception | Lost]] = []
        self._unready = 0

    def submit(self, argument: Argument, /, kind: str = "") -> int:
        """A ticket for what will come back. A worker that did this `kind` last is preferred."""
        ticket = next(self._tickets)
        self._queue.append((ticket, kind, argument))
        self._give()
        return ticket

    def wait(self, timeout: float) -> Sequence[tuple[int, Value | Exception | Lost]]:
        """What has come back, by ticket: what the function returned or raised, or how its process
        ended. At the latest after `timeout` seconds.

        Raises EngineError when workers cannot even start.
        """
        end = time.monotonic() + timeout
        while not self._back:
            left = max(0.0, end - time.monotonic())
            by_connection = {worker.connection: worker for worker in self._workers}
            # without workers it sleeps
            for connection in wait(list(by_connection), left):
                assert isinstance(connection, Connection)
                self._read(by_connection[connection])
            self._give()
            if not left:
                break
        back, self._back = self._back, []
        return back

    def placed(self, argument: Argument, worker: int) -> Argument:
        """The argument for the worker of this number."""
        return argument

    def close(self) -> None:
        """Ends every process, whatever it is doing."""
        workers, self._workers = self._workers, []
        self._queue.clear()
        self._back.clear()
        for worker in workers:
            worker.process.terminate()
        end = time.monotonic() + PATIENCE
        for worker in workers:
            worker.gone(max(0.05, end - time.monotonic()))

    def _read(self, worker: _Worker) -> None:
        try:
            good, value = pickle.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self._bury(worker)
            return
        if worker.ticket is not None:
            self._back.append((worker.ticket, value))
            worker.ticket = None
        elif good:
            worker.ready = True
            self._unready = 0
        else:
            self._bury(worker)
            raise EngineError(
                f"a worker process cannot start: {type(value).__name__}: {first_line(value)}"
            )

    def _bury(self, worker: _Worker) -> None:
        """A worker that is gone: what it was at is told; a new one comes when there is need."""
        self._workers.remove(worker)
        reason = worker.gone(PATIENCE)
        if worker.ticket is not None:
            self._back.append((worker.ticket, Lost(reason)))
        elif not worker.ready:
            self._unready += 1
            if self._unready >= STARTS:
                raise EngineError(
                    f"worker processes do not start: {reason}, {STARTS} times in a row; what they"
                    " printed stands above"
                )

    def _give(self) -> None:
        """Hands out what is queued, and starts workers for the rest."""
        free = [worker for worker in self._workers if worker.ready and worker.ticket is None]
        while self._queue and free:
            ticket, kind, argument = self._queue.popleft()
            kinds = {other for _, other, _ in self._queue}
            at_hand = next((worker for worker in free if worker.kind == kind), None)
            # what another in the queue was done by is left to it
            worker = at_hand or next((one for one in free if one.kind not in kinds), free[0])
            free.remove(worker)
            worker.ticket, worker.kind = ticket, kind
            worker.send(pickle.dumps(self.placed(argument, worker.number)))
        starting = sum(not worker.ready for worker in self._workers)
        numbers = iter(set(range(self.most)) - {worker.number for worker in self._workers})
        for _ in range(min(len(self._queue) - starting, self.most - len(self._workers))):
            self._workers.append(worker := _Worker(next(numbers)))
            worker.send(self._opening)


class _Worker:
    """One process, and the socket to it."""

    def __init__(self, number: int) -> None:
        self.process, self.connection = started("separatrix.training.sweeps.engines.child", THREADS)
        self.number = number
        self.ready = False
        self.ticket: int | None = None
        self.kind = ""

    def send(self, data: bytes) -> None:
        # that it is gone is heard at the next wait
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send_bytes(data)

    def gone(self, patience: float) -> str:
        """How the process ended; one that does not end within `patience` seconds is killed."""
        self.connection.close()
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code >= 0:
            return f"worker process {self.process.pid} ended with exit code {code}"
        known = {number.value: number.name for number in signal.Signals}
        by = known.get(-code, f"signal {-code}")
        return f"worker process {self.process.pid} was killed by {by}"


class LocalEngine(Processes[Slice, Update | Failed], Engine):
    """Processes of this machine. On `cuda` they share its devices in turn, one each unless
    `processes` says otherwise.

    Raises SizeError for fewer than one process, and EngineError for a device that is not there.
    """

    def __init__(
        self, processes: int | None = None, *, device: str = "cpu", work: Work | None = None
    ) -> None:
        self._devices = devices(device)
        if processes is None and self._devices != ["cpu"]:
            processes = len(self._devices)
        function = partial(attempted, work or train)
        super().__init__(function, processes, first=None if work else load)

    @property
    def workers(self) -> int:
        return self.most

    def submit(self, piece: Slice, kind: str = "") -> int:
        return super().submit(piece, piece.pack.key)

    def placed(self, argument: Slice, worker: int) -> Slice:
        return replace(argument, device=self._devices[worker % len(self._devices)])

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        return [
            (ticket, Failed(described(back)) if isinstance(back, Exception) else back)
            for ticket, back in super().wait(timeout)
        ]


def devices(device: str) -> list[str]:
    """What workers compute on, in turn: a device as it was named, or each of `cuda`. Raises
    EngineError for one that is not there.
    """
    if device == "cpu":
        return [device]
    if not device.startswith("cuda"):
        raise EngineError(f"there is no device '{device[:60]}'; take cpu, cuda or cuda:1")
    import torch

    there = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if device == "cuda" and there:
        return there
    if device not in there:
        known = ", ".join(there) or "no CUDA device; take --device cpu"
        raise EngineError(f"there is no device '{device}' on this machine; there is {known}")
    return [device]


def load() -> None:
    """Loads what training takes, once for each worker."""
    import separatrix.training.work  # noqa: F401


def train(piece: Slice) -> Update:
    """One slice of training."""
    from separatrix.training.work import work

    return work(piece)
