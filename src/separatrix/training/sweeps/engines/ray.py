"""The engine of a Ray cluster: slices of training on the nodes of a cluster that is there already.

Ray itself runs in a process beside this one (`ray_driver`). It may hang for a minute, print, or be
ended by its own libraries when the cluster goes; the sweep then still ends with one line.
"""

from __future__ import annotations

import pickle
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from subprocess import TimeoutExpired

from separatrix.core.errors import EngineError, MissingExtraError, SpecError
from separatrix.training.slices import Slice
from separatrix.training.sweeps.engines.base import Engine, Result, Work
from separatrix.training.sweeps.engines.child import started
from separatrix.training.sweeps.engines.local import train
from separatrix.training.sweeps.engines.ray_address import Address
from separatrix.training.sweeps.engines.ray_driver import (
    QUIET,
    Back,
    Gone,
    Job,
    Message,
    Order,
    Task,
    There,
)

CONNECTING = 60.0
"""Most seconds until workers of the cluster have answered, once its head has."""
ENDING = 2.0
"""Seconds in which workers are told to end, before the driver is ended anyway."""


class RayEngine(Engine):
    """Workers on all nodes of a Ray cluster, one for each CPU (for "cuda", for each GPU); nodes may
    come and go.
    """

    def __init__(
        self, address: str = "auto", *, device: str = "cpu", work: Work | None = None
    ) -> None:
        """Connects, and returns once a worker of each node has answered.

        `work` replaces training, for tests. Raises SpecError for a device that is neither "cpu" nor
        "cuda", MissingExtraError without Ray, and EngineError where the address does not answer
        within 5 s, the versions differ, or no node has a CPU.
        """
        if device not in ("cpu", "cuda"):
            raise SpecError(
                f"device '{device}' on a Ray cluster: take cpu or cuda; there each worker has one"
                " GPU of its own"
            )
        head = Address.parse(address)
        if find_spec("ray") is None:
            raise MissingExtraError.of("a sweep on a Ray cluster", "cluster")
        if silence := head.silence():
            raise EngineError(f"no Ray cluster at {head}: {silence}")
        self._head = head
        self._device = device
        self._there = There(0, 0, ())
        self._said = 0
        self._tickets = 0
        self._back: list[tuple[int, Result]] = []
        self._closed = False
        self._driver, self._pipe = started("separatrix.training.sweeps.engines.ray_driver", QUIET)
        resource = "GPU" if device == "cuda" else "CPU"
        try:
            self._tell(Job(head, resource, pickle.dumps(work or train)))
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        end = time.monotonic() + CONNECTING
        while not self._there.workers:
            if not self._hear(end - time.monotonic()):
                raise EngineError(
                    f"no worker of the Ray cluster at {self._head} has answered within"
                    f" {CONNECTING:g} s; is this machine one of its nodes? It joins with"
                    f" `ray start --address {self._head} --num-cpus 0`"
                )

    @property
    def workers(self) -> int:
        self._hear(0)
        return self._there.workers

    @property
    def nodes(self) -> int:
        """How many nodes have a worker."""
        self._hear(0)
        return self._there.nodes

    def submit(self, piece: Slice) -> int:
        self._tickets += 1
        self._tell(Task(self._tickets, replace(piece, device=self._device)))
        return self._tickets

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        end = time.monotonic() + timeout
        while not self._back and self._hear(max(0.0, end - time.monotonic())):
            pass
        # what has come meanwhile, too
        self._hear(0)
        back = self._back
        self._back = []
        return back

    def said(self) -> list[str]:
        self._hear(0)
        lines = list(self._there.refused[self._said :])
        self._said += len(lines)
        return lines

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # a driver that has ended by itself hears nothing
        with suppress(OSError):
            self._pipe.send(None)
        with suppress(TimeoutExpired):
            self._driver.wait(ENDING)
        self._driver.kill()
        self._driver.wait()
        self._pipe.close()

    def _tell(self, order: Job | Order) -> None:
        try:
            self._pipe.send(order)
        except OSError:
            # its last words say more
            self._hear(0)
            raise self._ended() from None

    def _hear(self, timeout: float) -> bool:
        """Takes in what the driver says; False if it says nothing in that time."""
        heard = False
        while self._pipe.poll(0 if heard else max(0.0, timeout)):
            try:
                message: Message = self._pipe.recv()
            except (EOFError, OSError):
                raise self._ended() from None
            self._take(message)
            heard = True
        return heard

    def _take(self, message: Message) -> None:
        match message:
            case Back(ticket, result):
                self._back.append((ticket, result))
            case There():
                self._there = message
            case Gone(why):
                raise EngineError(why)

    def _ended(self) -> EngineError:
        return EngineError(
            f"the Ray cluster at {self._head} has gone, and Ray ended with it; what was told is in"
            " the store, and the same command goes on from there"
        )
