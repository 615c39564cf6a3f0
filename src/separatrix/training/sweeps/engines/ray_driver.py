"""The process that talks to Ray, for an engine: workers on the nodes, and who computes what.

Each CPU (each GPU, for "cuda") of each node is a slot with one actor, which keeps the models of its
last pack in memory. Ray is asked to repeat nothing: what a dead worker or node had comes back as
Lost, and the scheduler submits it again from the store's last checkpoint.

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
from typing import Any, NamedTuple

from separatrix.core.errors import EngineError, first_line
from separatrix.core.evidence.canonical import code_version
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import Failed, Lost, Work, attempted, described
from separatrix.training.sweeps.engines.child import to_parent
from separatrix.training.sweeps.engines.pool import THREADS

PATIENCE = 5.0
"""Seconds that the head's machine has to answer."""
STARTING = 20.0
"""Most seconds until a worker of each node has said hello, at the start."""
LOOKS = 2.0
"""Seconds between two looks at the nodes."""
MOMENT = 0.02
"""Seconds between two looks for orders, while nothing comes back."""
HEAD_GONE = 10.0
"""Seconds without the head's answer after which it is gone. Ray ends the process at 60."""
NO_WORKERS = 300.0
"""Seconds without any worker after which a sweep ends."""
FALSE_STARTS = 3
"""A node whose workers die so often before they say hello is left alone."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Settings of the process: nothing is reported to anybody."""


@dataclass(frozen=True)
class Job:
    """What the engine sends first; then slices with their tickets, and None to end."""

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


class There(NamedTuple):
    """How many workers there are, on how many nodes. The engine hears it when it changes; beside it
    results with their tickets, lines for whoever watches, and as the last word an EngineError.
    """

    workers: int
    nodes: int


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


@dataclass(eq=False)
class _Slot:
    """One actor on a node, and what it does."""

    node: str
    actor: Any
    ready: bool = False
    ticket: int | None = None
    pack: str = ""
    """The key of the pack that it did last, whose models are in its memory."""


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
    """The slots of a cluster, and the slices that wait for one."""

    def __init__(self, pipe: Connection, job: Job) -> None:
        self._pipe = pipe
        self._job = job
        self._where = f"the Ray cluster at {job.head}"
        self._work: Work = pickle.loads(job.work)
        self._slots: list[_Slot] = []
        self._queue: list[tuple[int, Slice]] = []
        self._expected: dict[Any, _Slot] = {}
        """What actors are asked for, and whose it is."""
        self._false_starts: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        """Why a node is not used."""
        self._told: There | None = None
        """None while it starts."""
        self._ray = connected(job)
        self._actor = self._ray.remote(max_restarts=0, max_task_retries=0)(Worker)
        self._start = self._head_seen = self._worker_seen = time.monotonic()
        # the engine hears that Ray is connected
        pipe.send(There(0, 0))

    def serve(self) -> None:
        """Takes orders and what actors give until the engine says None, or is gone."""
        looks = 0.0
        while self._hear():
            if time.monotonic() >= looks:
                self._look()
                looks = time.monotonic() + LOOKS
            self._tell()
            self._assign()
            asked = [*self._expected]
            for given in self._ray.wait(asked, timeout=MOMENT)[0] if asked else ():
                self._take(self._expected.pop(given), given)
        for slot in [*self._slots]:
            slot.ticket = None
            self._drop(slot, "")
        self._ray.shutdown()

    def _hear(self) -> bool:
        """Takes the engine's orders; False at the last, and where the sweep was killed."""
        try:
            while self._pipe.poll(0 if self._expected else MOMENT):
                if (order := self._pipe.recv()) is None:
                    return False
                self._queue.append(order)
        except (EOFError, OSError):
            return False
        return True

    def _tell(self) -> None:
        """Tells who is there, at first when a worker of each node has said hello. A cluster of
        which a node has other code at the start is refused.
        """
        nodes = {slot.node for slot in self._slots}
        if self._told is None:
            if self._refused:
                raise EngineError(f"{self._where}: {next(iter(self._refused.values()))}")
            if not nodes:
                raise EngineError(
                    f"no node of {self._where} has a {self._job.resource}; one joins with"
                    f" `ray start --address {self._job.head}`"
                )
            late = time.monotonic() - self._start > STARTING
            if not late and nodes != {slot.node for slot in self._slots if slot.ready}:
                return
        there = There(len(self._slots), len(nodes))
        if there != self._told:
            self._told = there
            self._pipe.send(there)

    # slots

    def _look(self) -> None:
        """Looks who is there: as many slots as each living node has CPUs or GPUs."""
        goes_on = "what was told is in the store, and the same command goes on from there"
        now = time.monotonic()
        if silence := self._job.silence(1):
            if now - self._head_seen > HEAD_GONE:
                raise EngineError(f"{self._where} has gone: {silence}; {goes_on}")
            return
        self._head_seen = now
        places = Counter(
            {
                node["NodeID"]: int(node["Resources"].get(self._job.resource, 0))
                for node in self._ray.nodes()
                if node["Alive"] and node["NodeID"] not in self._refused
            }
        )
        for slot in [slot for slot in self._slots if slot.node not in places]:
            self._drop(slot, "its node has left the cluster")
        for node in (places - Counter(slot.node for slot in self._slots)).elements():
            self._add(node)
        if any(slot.ready for slot in self._slots):
            self._worker_seen = now
        elif now - self._worker_seen > NO_WORKERS:
            raise EngineError(
                f"{self._where} has had no free {self._job.resource} for {NO_WORKERS:g} s;"
                f" {goes_on}"
            )

    def _add(self, node: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        gpu = self._job.resource == "GPU"
        placed = self._actor.options(
            num_cpus=0 if gpu else 1,
            num_gpus=1 if gpu else 0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        slot = _Slot(node, placed.remote(self._work))
        self._slots.append(slot)
        self._expected[slot.actor.hello.remote()] = slot

    def _drop(self, slot: _Slot, reason: str) -> None:
        """Gives a slot up; what it computed is lost."""
        self._slots.remove(slot)
        # it may be gone already
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(slot.actor, no_restart=True)
        if slot.ticket is not None:
            self._pipe.send((slot.ticket, Lost(reason)))

    def _refuse(self, node: str, why: str) -> None:
        self._refused[node] = why
        self._pipe.send(f"not used: {why}")
        for slot in [slot for slot in self._slots if slot.node == node]:
            self._drop(slot, why)

    # slices

    def _assign(self) -> None:
        """Gives what waits to free workers: first to the one that has it in memory."""
        for in_memory in (True, False):
            for ticket, piece in [*self._queue]:
                key = piece.pack.key
                free = (slot for slot in self._slots if slot.ready and slot.ticket is None)
                slot = next((one for one in free if not in_memory or one.pack == key), None)
                if slot is not None:
                    self._queue.remove((ticket, piece))
                    slot.ticket, slot.pack = ticket, key
                    self._expected[slot.actor.compute.remote(piece)] = slot

    def _take(self, slot: _Slot, given: Any) -> None:
        """What an actor gave: its hello at first, then updates."""
        if slot not in self._slots:
            # given up before, and told
            return
        try:
            found = self._ray.get(given)
        except Exception as error:
            reason = _reason(error)
            self._drop(slot, reason)
            self._false_starts[slot.node] += not slot.ready
            if not slot.ready and self._false_starts[slot.node] == FALSE_STARTS:
                self._refuse(slot.node, f"workers of a node do not start: {reason}")
            return
        if slot.ready:
            self._pipe.send((slot.ticket, found))
            slot.ticket = None
            return
        version, host = found
        slot.ready = version == code_version()
        self._false_starts[slot.node] = 0
        if not slot.ready:
            self._refuse(
                slot.node,
                f"node {host} has separatrix {version}, and here is {code_version()}; all need the"
                " same",
            )


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
_RAISED = re.compile(r"^\w*(?:Error|Exception): .*$", re.MULTILINE)
_DETAIL = re.compile(r"(?:Worker exit detail|The actor is dead because): (.*?)[.\n]")


def _reason(error: BaseException) -> str:
    """One line for why a worker is gone."""
    text = str(error)
    if type(error).__name__ == "ActorUnavailableError":
        return "the connection to the worker broke: its process or its node has ended"
    if raised := _RAISED.findall(text):
        return raised[-1][:160]
    if detail := _DETAIL.search(text):
        return f"the worker died: {detail[1]}"
    return f"{type(error).__name__}: {first_line(error)}"
