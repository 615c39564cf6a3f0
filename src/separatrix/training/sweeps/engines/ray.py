"""The engine of a Ray cluster: slices of training on the nodes of a cluster that is there already.

Ray itself runs in a process beside this one (`ray_driver`). It may hang for minutes, print, or be
ended by its own libraries when the cluster goes; the sweep then still ends with one line.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from separatrix.core.errors import EngineError, MissingExtraError, SpecError
from separatrix.core.evidence.canonical import code_version
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import Crew, Engine, Lost, Work, Worker
from separatrix.training.sweeps.engines.child import started
from separatrix.training.sweeps.engines.pool import train
from separatrix.training.sweeps.engines.ray_driver import GOES_ON, QUIET, Job

CONNECTING = 25.0
"""Most seconds until Ray is connected."""
STARTING = 20.0
"""Most seconds until a worker of each node has said hello, at the start."""
NO_WORKERS = 300.0
"""Seconds without any worker after which a sweep ends."""
FALSE_STARTS = 3
"""A node whose workers die so often before they say hello is left alone."""
ENDING = 2.0
"""Seconds in which workers are told to end, before the driver is ended anyway."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, or of `auto`: what RAY_ADDRESS says, else the cluster that was
    started last on this machine. Raises EngineError.
    """
    if text == "auto":
        return parse_address(_found())
    host, colon, port = text.rpartition(":")
    named = colon and host and "/" not in host
    if not (named and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise EngineError(
            f"the address {text!r} of a Ray cluster is no HOST:PORT, such as 10.0.0.1:6379,"
            " and not `auto`"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _found() -> str:
    named = os.environ.get("RAY_ADDRESS", "")
    if named and named != "auto":
        return named
    note = Path(os.environ.get("RAY_TMPDIR") or "/tmp", "ray", "ray_current_cluster")
    try:
        return note.read_text().strip()
    except OSError:
        raise EngineError(
            "no Ray cluster was started on this machine; start one with `ray start --head`,"
            " or give its address, HOST:PORT"
        ) from None


class RayEngine(Crew[Slice, Update], Engine):
    """Workers on all nodes of a Ray cluster, one for each CPU (for "cuda", for each GPU); nodes may
    come and go.
    """

    def __init__(
        self, address: str = "auto", *, device: str = "cpu", work: Work | None = None
    ) -> None:
        """Connects, and returns once a worker of each node has answered.

        `work` replaces training, for tests. Raises SpecError for a device that is neither "cpu" nor
        "cuda", MissingExtraError without Ray, and EngineError where no cluster answers at the
        address, the versions differ, or no node has a CPU.
        """
        super().__init__()
        if device not in ("cpu", "cuda"):
            raise SpecError(
                f"device '{device}' on a Ray cluster: take cpu or cuda; there each worker has one"
                " GPU of its own"
            )
        host, port = parse_address(address)
        if find_spec("ray") is None:
            raise MissingExtraError.of("a sweep on a Ray cluster", "cluster")
        self._job = Job(
            host, port, "GPU" if device == "cuda" else "CPU", pickle.dumps(work or train)
        )
        self._device = device
        self._places: Counter[str] | None = None
        """How many workers a node may have; None before Ray is connected."""
        self._false_starts: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        """Why a node is not used."""
        self._said: list[str] = []
        self._numbers = count(1)
        self._ready_seen = time.monotonic()
        self._driver, self._pipe = started("separatrix.training.sweeps.engines.ray_driver", QUIET)
        try:
            self._tell(self._job)
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self.listen(CONNECTING)
        head = self._job.head
        if self._places is None:
            raise EngineError(
                f"no Ray cluster has answered at {head} within {CONNECTING:g} s: what"
                " listens there is not its head, or this machine is none of its nodes; it"
                f" joins with `ray start --address {head} --num-cpus 0`"
            )
        end = time.monotonic() + STARTING
        while not self._refused and (left := end - time.monotonic()) > 0:
            if not self.crew:
                raise EngineError(
                    f"no node of {self._job.where} has a {self._job.resource}; one joins with"
                    f" `ray start --address {head}`"
                )
            if {one.place for one in self.crew} == {one.place for one in self.crew if one.ready}:
                break
            self.listen(left)
        for why in self._refused.values():
            raise EngineError(f"{self._job.where}: {why}")

    @property
    def workers(self) -> int:
        self.listen(0)
        return len(self.crew)

    @property
    def nodes(self) -> int:
        """How many nodes have a worker."""
        self.listen(0)
        return len({worker.place for worker in self.crew})

    def submit(self, piece: Slice, /) -> int:
        return super().submit(replace(piece, device=self._device))

    def said(self) -> list[str]:
        self.listen(0)
        lines, self._said = self._said, []
        return lines

    def send(self, worker: Worker, argument: Slice) -> None:
        self._tell((worker.handle, argument))

    def listen(self, timeout: float) -> None:
        heard = False
        while self._pipe.poll(0 if heard else timeout):
            heard = True
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                raise self._ended() from None
            if isinstance(message, EngineError):
                raise message
            if isinstance(message, Counter):
                self._staff(message)
                continue
            number, value = message
            for worker in [one for one in self.crew if one.handle == number]:
                self._heard(worker, value)
        if any(worker.ready for worker in self.crew):
            self._ready_seen = time.monotonic()
        elif time.monotonic() - self._ready_seen > NO_WORKERS:
            raise EngineError(
                f"{self._job.where} has had no free {self._job.resource} for {NO_WORKERS:g} s;"
                f" {GOES_ON}"
            )

    def _heard(self, worker: Worker, value: Any) -> None:
        """What a worker gave: its hello at first, then updates; or how it ended."""
        if isinstance(value, Lost):
            self.lost(worker, value.reason)
            self._false_starts[worker.place] += not worker.ready
            if self._false_starts[worker.place] >= FALSE_STARTS:
                self._refuse(worker.place, f"workers of a node do not start: {value.reason}")
        elif worker.ready:
            self.came(worker, value)
        else:
            version, host = value
            worker.ready = version == code_version()
            if not worker.ready:
                self._refuse(
                    worker.place,
                    f"node {host} has separatrix {version}, and here is {code_version()}; all need"
                    " the same",
                )

    def _staff(self, places: Counter[str]) -> None:
        """As many workers as each living node has CPUs or GPUs."""
        self._places = Counter({n: c for n, c in places.items() if n not in self._refused})
        for worker in [one for one in self.crew if one.place not in self._places]:
            self._drop(worker, "its node has left the cluster")
        for node in (self._places - Counter(one.place for one in self.crew)).elements():
            self.crew.append(Worker(next(self._numbers), node))
            self._tell((self.crew[-1].handle, node))

    def _refuse(self, node: str, why: str) -> None:
        self._refused[node] = why
        self._said.append(f"not used: {why}")
        for worker in [one for one in self.crew if one.place == node]:
            self._drop(worker, why)

    def _drop(self, worker: Worker, why: str) -> None:
        self._tell((worker.handle, None))
        self.lost(worker, why)

    def close(self) -> None:
        if self._pipe.closed:
            return
        # a driver that has ended by itself hears nothing
        with suppress(OSError):
            self._pipe.send(None)
        with suppress(TimeoutExpired):
            self._driver.wait(ENDING)
        self._driver.kill()
        self._driver.wait()
        self._pipe.close()

    def _tell(self, order: object) -> None:
        try:
            self._pipe.send(order)
        except OSError:
            # its last words say more
            self.listen(0)
            raise self._ended() from None

    def _ended(self) -> EngineError:
        return EngineError(f"{self._job.where} has gone, and Ray ended with it; {GOES_ON}")
