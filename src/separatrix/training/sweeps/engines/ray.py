"""The engine of a Ray cluster: slices of training on the nodes of a cluster that is there already.

Ray itself runs in a process beside this one (`ray_driver`). It may hang for minutes, print, or be
ended by its own libraries when the cluster goes; the sweep then still ends with one line.
"""

from __future__ import annotations

import os
import pickle
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired

from separatrix.core.errors import EngineError, MissingExtraError, SpecError
from separatrix.training.packs import Slice
from separatrix.training.sweeps.engines.base import Engine, Result, Work
from separatrix.training.sweeps.engines.child import started
from separatrix.training.sweeps.engines.pool import train
from separatrix.training.sweeps.engines.ray_driver import QUIET, Job, There

CONNECTING = 25.0
"""Most seconds until Ray is connected, and again until workers of the cluster have answered."""
ENDING = 2.0
"""Seconds in which workers are told to end, before the driver is ended anyway."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, or of `auto`: what RAY_ADDRESS says, else the cluster that was
    started last on this machine. Raises EngineError.
    """
    if text == "auto":
        return parse_address(_found())
    if "://" in text:
        raise EngineError(
            f"the address {text!r} is one of Ray's client; a sweep runs on a node of the"
            " cluster: join it with `ray start --address HOST:PORT --num-cpus 0`, then give"
            " `--engine ray://auto`"
        )
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
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


class RayEngine(Engine):
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
        if device not in ("cpu", "cuda"):
            raise SpecError(
                f"device '{device}' on a Ray cluster: take cpu or cuda; there each worker has one"
                " GPU of its own"
            )
        host, port = parse_address(address)
        if find_spec("ray") is None:
            raise MissingExtraError.of("a sweep on a Ray cluster", "cluster")
        resource = "GPU" if device == "cuda" else "CPU"
        job = Job(host, port, resource, pickle.dumps(work or train))
        self._head = job.head
        self._device = device
        self._there = There(0, 0)
        self._said: list[str] = []
        self._tickets = 0
        self._back: list[tuple[int, Result]] = []
        self._driver, self._pipe = started("separatrix.training.sweeps.engines.ray_driver", QUIET)
        try:
            self._tell(job)
            while not self._there.workers:
                if not self._hear(CONNECTING):
                    raise EngineError(
                        f"no Ray cluster has answered at {self._head} within {CONNECTING:g} s: what"
                        " listens there is not its head, or this machine is none of its nodes; it"
                        f" joins with `ray start --address {self._head} --num-cpus 0`"
                    )
        except BaseException:
            self.close()
            raise

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
        self._tell((self._tickets, replace(piece, device=self._device)))
        return self._tickets

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        end = time.monotonic() + timeout
        while not self._back and self._hear(max(0.0, end - time.monotonic())):
            pass
        back, self._back = self._back, []
        return back

    def said(self) -> list[str]:
        self._hear(0)
        lines, self._said = self._said, []
        return lines

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
            self._hear(0)
            raise self._ended() from None

    def _hear(self, timeout: float) -> bool:
        """Takes in what the driver says; False if it says nothing in that time."""
        heard = False
        while self._pipe.poll(0 if heard else max(0.0, timeout)):
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                raise self._ended() from None
            if isinstance(message, EngineError):
                raise message
            if isinstance(message, There):
                self._there = message
            elif isinstance(message, str):
                self._said.append(message)
            else:
                self._back.append(message)
            heard = True
        return heard

    def _ended(self) -> EngineError:
        return EngineError(
            f"the Ray cluster at {self._head} has gone, and Ray ended with it; what was told is in"
            " the store, and the same command goes on from there"
        )
