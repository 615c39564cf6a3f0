"""The engine of one machine: worker processes, one for each core or each GPU; one thread each, and
none outlives its parent.

They are started anew, not forked, and do not run the user's script again: it needs no guard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from separatrix.core.errors import EngineError, SizeError
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import (
    Argument,
    Crew,
    Engine,
    Value,
    Work,
    Worker,
)
from separatrix.training.sweeps.engines.child import started

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


class Processes(Crew[Argument, Value]):
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
        super().__init__()
        most = cores() if most is None else most
        # a bool is an int to isinstance, but no number of processes
        if type(most) is not int or most < 1:
            raise SizeError(f"{most!r} processes; it must be an integer of at least 1")
        self.most = most
        self._opening = function, first
        self._unready = 0

    def placed(self, argument: Argument, worker: int) -> Argument:
        """The argument for the worker of this number."""
        return argument

    def send(self, worker: Worker, argument: Argument) -> None:
        _send(worker, self.placed(argument, worker.place))

    def listen(self, timeout: float) -> None:
        by_connection = {worker.handle[1]: worker for worker in self.crew}
        # without workers it sleeps
        for connection in wait(list(by_connection), timeout):
            assert isinstance(connection, Connection)
            self._read(by_connection[connection])

    def close(self) -> None:
        """Ends every process, whatever it is doing."""
        workers, self.crew = self.crew, []
        self._queue.clear()
        self._back.clear()
        for worker in workers:
            worker.handle[0].terminate()
        end = time.monotonic() + PATIENCE
        for worker in workers:
            _gone(worker, max(0.05, end - time.monotonic()))

    def _read(self, worker: Worker) -> None:
        try:
            value = worker.handle[1].recv()
        except (EOFError, OSError):
            # a new one comes when there is need
            reason = _gone(worker, PATIENCE)
            self.lost(worker, reason)
            self._unready += not worker.ready
            if self._unready >= STARTS:
                raise EngineError(
                    f"worker processes do not start: {reason}, {STARTS} times in a row; what they"
                    " printed stands above"
                ) from None
            return
        if worker.ready:
            self.came(worker, value)
        self._unready, worker.ready = 0, True

    def give(self) -> None:
        """Hands out what is queued, and starts workers for the rest."""
        super().give()
        starting = sum(not worker.ready for worker in self.crew)
        numbers = iter(set(range(self.most)) - {worker.place for worker in self.crew})
        for _ in range(min(len(self._queue) - starting, self.most - len(self.crew))):
            process = started("separatrix.training.sweeps.engines.child", THREADS)
            self.crew.append(worker := Worker(process, next(numbers)))
            _send(worker, self._opening)


def _send(worker: Worker, what: object) -> None:
    # that it is gone is heard at the next wait
    with suppress(BrokenPipeError, ConnectionResetError):
        worker.handle[1].send(what)


def _gone(worker: Worker, patience: float) -> str:
    """How its process ended; one that does not end within `patience` seconds is killed."""
    process, connection = worker.handle
    connection.close()
    try:
        code = process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code >= 0:
        return f"worker process {process.pid} ended with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    by = known.get(-code, f"signal {-code}")
    return f"worker process {process.pid} was killed by {by}"


class LocalEngine(Processes[Slice, Update], Engine):
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
        super().__init__(work or train, processes, first=None if work else load)

    @property
    def workers(self) -> int:
        return self.most

    def placed(self, argument: Slice, worker: int) -> Slice:
        return replace(argument, device=self._devices[worker % len(self._devices)])


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
