"""The process that talks to Ray, for an engine: it starts and ends actors on nodes, and hands on
what they are sent and give. Ray is asked to repeat nothing: what a dead worker or node had comes
back as Lost, and the scheduler submits it again from the store's last checkpoint.

A node imports this file, too, for `Worker`, so that it needs no Ray and no torch to be read.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from separatrix.core.errors import EngineError, first_line
from separatrix.core.evidence.canonical import code_version
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import Failed, Lost, Work, attempted, described
from separatrix.training.sweeps.engines.child import to_parent
from separatrix.training.sweeps.engines.pool import THREADS

PATIENCE = 5.0
"""Seconds that the head's machine has to answer."""
LOOKS = 2.0
"""Seconds between two looks at the nodes."""
MOMENT = 0.02
"""Seconds between two looks for orders, while nothing comes back."""
HEAD_GONE = 10.0
"""Seconds without the head's answer after which it is gone. Ray ends the process at 60."""
GOES_ON = "what was told is in the store, and the same command goes on from there"
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Settings of the process: nothing is reported to anybody."""


@dataclass(frozen=True)
class Job:
    """What the engine sends first. Then numbers of workers, each with the node that it starts on, a
    slice, or None to end it; and None alone at last. It hears how many workers each node may have;
    numbers with a hello, an update, or Lost; and as the last word an EngineError.
    """

    host: str
    port: int
    resource: str
    """What a worker takes one of: CPU or GPU."""
    work: bytes
    """What it does with a slice, pickled."""

    @property
    def head(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def where(self) -> str:
        return f"the Ray cluster at {self.head}"

    def silence(self, seconds: float) -> str:
        """Why nothing listens at the head's address; "" where something does."""
        try:
            socket.create_connection((self.host, self.port), timeout=seconds).close()
        except (socket.gaierror, UnicodeError):
            # a part of a name that is empty or longer than 63 letters cannot even be asked for
            return f"no machine is known as {self.host}"
        except TimeoutError:
            return f"nothing answers within {seconds:g} s"
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return ""


class Worker:
    """An actor: computes slices, one after the other, in one thread."""

    def __init__(self, work: Work) -> None:
        # before torch is loaded, which asks them once
        os.environ.update(THREADS)
        self._work = work

    def hello(self) -> tuple[str, str]:
        """Says which code runs here, and on which machine."""
        return code_version(), socket.gethostname()

    def compute(self, piece: Slice) -> Update | Failed:
        """A slice's update, or why the work raised."""
        return attempted(self._work, piece)


def main(descriptor: int, parent: int) -> None:
    """Connects to the cluster and serves the engine over the socket of this number, until that says
    None or is gone itself.
    """
    pipe = to_parent(descriptor, parent)
    # what Ray and its libraries print goes nowhere
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    # nobody listens where the engine has ended
    with suppress(OSError):
        try:
            _Cluster(pipe, pipe.recv()).serve()
        except EngineError as error:
            pipe.send(error)
        except Exception as error:
            pipe.send(EngineError(f"the driver of Ray failed: {described(error)}"))
    # without the farewells of Ray's libraries, which wait a minute for a head that has gone
    os._exit(0)


class _Cluster:
    """The actors of a cluster, by the engine's numbers."""

    def __init__(self, pipe: Connection, job: Job) -> None:
        self._pipe = pipe
        self._job = job
        self._work: Work = pickle.loads(job.work)
        self._actors: dict[int, Any] = {}
        self._expected: dict[Any, int] = {}
        """What actors are asked for, and whose it is."""
        self._ray = connected(job)
        self._actor = self._ray.remote(max_restarts=0, max_task_retries=0)(Worker)
        self._head_seen = time.monotonic()

    def serve(self) -> None:
        """Takes orders and what actors give until the engine says None, or is gone."""
        looks = 0.0
        while self._hear():
            if time.monotonic() >= looks:
                self._look()
                looks = time.monotonic() + LOOKS
            asked = [*self._expected]
            for given in self._ray.wait(asked, timeout=MOMENT)[0] if asked else ():
                self._take(self._expected.pop(given), given)
        for number in [*self._actors]:
            self._end(number)
        self._ray.shutdown()

    def _hear(self) -> bool:
        """Takes the engine's orders; False at the last, and where the sweep was killed."""
        try:
            while self._pipe.poll(0 if self._expected else MOMENT):
                if (order := self._pipe.recv()) is None:
                    return False
                number, what = order
                if what is None:
                    self._end(number)
                elif isinstance(what, str):
                    self._start(number, what)
                elif actor := self._actors.get(number):
                    self._expected[actor.compute.remote(what)] = number
        except (EOFError, OSError):
            return False
        return True

    def _look(self) -> None:
        """Tells how many CPUs or GPUs each living node has."""
        now = time.monotonic()
        if silence := self._job.silence(1):
            if now - self._head_seen > HEAD_GONE:
                raise EngineError(f"{self._job.where} has gone: {silence}; {GOES_ON}")
            return
        self._head_seen = now
        nodes = (node for node in self._ray.nodes() if node["Alive"])
        resource = self._job.resource
        self._pipe.send(Counter({n["NodeID"]: int(n["Resources"].get(resource, 0)) for n in nodes}))

    def _start(self, number: int, node: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        gpu = self._job.resource == "GPU"
        placed = self._actor.options(
            num_cpus=0 if gpu else 1,
            num_gpus=1 if gpu else 0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        self._actors[number] = placed.remote(self._work)
        self._expected[self._actors[number].hello.remote()] = number

    def _end(self, number: int) -> None:
        # it may be gone already
        with suppress(self._ray.exceptions.RayError, KeyError):
            self._ray.kill(self._actors.pop(number), no_restart=True)

    def _take(self, number: int, given: Any) -> None:
        """Tells what an actor gave, or how it ended."""
        try:
            found = self._ray.get(given)
        except Exception as error:
            found = Lost(_reason(error))
            self._end(number)
        self._pipe.send((number, found))


def connected(job: Job) -> Any:
    """Ray, connected to the cluster. Raises EngineError; may wait for minutes."""
    if silence := job.silence(PATIENCE):
        raise EngineError(f"no Ray cluster at {job.head}: {silence}")
    import ray

    try:
        ray.init(
            address=job.head,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            include_dashboard=False,
        )
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        versions = _VERSIONS.findall(str(error))
        if len(versions) == 2:
            there, here = (f"Ray {ray} with Python {python}" for ray, python in versions)
            said = f"it runs {there}, and here is {here}; all need the same"
        raise EngineError(f"Ray cannot connect to {job.head}: {said}") from None
    return ray


_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")
_SAID = re.compile(
    r"^\w*(?:Error|Exception): .*$|(?:Worker exit detail|The actor is dead because): .*?(?=[.\n])",
    re.MULTILINE,
)


def _reason(error: BaseException) -> str:
    """One line for why a worker is gone."""
    said = _SAID.findall(str(error)) or [f"{type(error).__name__}: {first_line(error)}"]
    return f"the worker died: {said[-1][:160]}"
