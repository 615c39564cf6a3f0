"""The process that talks to Ray, for an engine: workers on the nodes, and who computes what.

Each CPU (each GPU, for "cuda") of each node is a slot with one worker process, which keeps the
models of its last pack in memory. Ray is asked to repeat nothing: what a dead worker or node had
comes back as Lost, and the scheduler submits it again from the store's last checkpoint.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from hashlib import sha256
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from separatrix.core.errors import EngineError, first_line
from separatrix.core.evidence.code import code_version
from separatrix.training.slices import Slice
from separatrix.training.sweeps.engines.base import Failed, Lost, Result, Work, described
from separatrix.training.sweeps.engines.child import to_parent
from separatrix.training.sweeps.engines.ray_address import Address, within
from separatrix.training.sweeps.engines.ray_worker import Hello, Worker

JOINING = 20.0
"""Seconds in which Ray must have connected, once its address answers."""
STARTING = 20.0
"""Most seconds until a worker of each node has said hello, at the start."""
LOOKS = 2.0
"""Seconds between two looks at the nodes."""
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
    """What the engine sends first."""

    head: Address
    resource: str
    """What a worker takes one of: CPU or GPU."""
    work: bytes
    """What it does with a slice, pickled."""


@dataclass(frozen=True)
class Task:
    """A slice to compute."""

    ticket: int
    piece: Slice


Order = Task | None
"""What the engine sends; None to end."""


@dataclass(frozen=True)
class Back:
    """What came of a slice."""

    ticket: int
    result: Result


@dataclass(frozen=True)
class There:
    """How many workers there are, on how many nodes, and the lines of those that are refused."""

    workers: int
    nodes: int
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Gone:
    """Nothing can go on, in one line."""

    why: str


Message = Back | There | Gone
"""What the engine hears."""


@dataclass(eq=False)
class _Slot:
    """One worker on a node, and what it does."""

    node: str
    handle: Any
    ready: bool = False
    ticket: int | None = None
    pack: str = ""
    """Key of the pack that is in its memory."""
    last: bytes = b""
    """Digest of the checkpoint that it gave last, and has."""


@dataclass(frozen=True)
class _Arrived:
    """What Ray gave for a call of a slot's worker: a value or an error."""

    slot: _Slot
    value: Any
    error: BaseException | None


def main(descriptor: int, parent: int) -> None:
    """Connects to the cluster and serves the engine over the socket of this number, until that says
    None or is gone itself.
    """
    pipe = to_parent(descriptor, parent)
    _silent()
    try:
        _Cluster(pipe, pipe.recv()).serve()
    except EngineError as error:
        _send(pipe, Gone(str(error)))
    except Exception as error:
        _send(pipe, Gone(f"the driver of Ray failed: {described(error)}"))
    # without the farewells of Ray's libraries, which wait a minute for a head that has gone
    os._exit(0)


def _silent() -> None:
    """Sends what Ray and its libraries print nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _send(pipe: Connection, message: Message) -> None:
    try:
        pipe.send(message)
    except OSError:
        # the engine has ended; nobody listens
        return


class _Cluster:
    """The slots of a cluster, and the slices that wait for one."""

    def __init__(self, pipe: Connection, job: Job) -> None:
        self._pipe = pipe
        self._head = job.head
        self._resource = job.resource
        self._work: Work = pickle.loads(job.work)
        self._slots: list[_Slot] = []
        self._queue: deque[Task] = deque()
        self._events: SimpleQueue[Order | _Arrived] = SimpleQueue()
        self._false_starts: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        """Why a node is not used."""
        self._told = There(0, 0, ())
        self._head_seen = self._worker_seen = time.monotonic()
        self._ray = _connected(job.head)
        self._worker = self._ray.remote(max_restarts=0, max_task_retries=0)(Worker)

    def serve(self) -> None:
        """Starts workers, then takes one event after the other until the engine says None."""
        self._start_all()
        Thread(target=self._read, daemon=True).start()
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked >= LOOKS:
                self._look()
                looked = time.monotonic()
            self._tell()
            try:
                event = self._events.get(timeout=max(0.0, looked + LOOKS - time.monotonic()))
            except Empty:
                continue
            match event:
                case None:
                    break
                case Task():
                    self._queue.append(event)
                case _Arrived():
                    self._take(event)
            self._assign()
        for slot in self._slots:
            self._kill(slot)
        self._ray.shutdown()

    def _read(self) -> None:
        """Takes the engine's orders, in a thread of its own."""
        while True:
            try:
                order: Order = self._pipe.recv()
            except (EOFError, OSError):
                # the sweep was killed
                order = None
            self._events.put(order)
            if order is None:
                return

    def _tell(self) -> None:
        nodes = {slot.node for slot in self._slots}
        there = There(
            len(self._slots),
            len(nodes),
            tuple(f"not used: {why}" for why in self._refused.values()),
        )
        if there != self._told:
            self._told = there
            _send(self._pipe, there)

    # slots

    def _start_all(self) -> None:
        """Waits for one worker of each node, and refuses a cluster where one has other code."""
        end = time.monotonic() + STARTING
        self._look()
        while self._slots and time.monotonic() < end:
            nodes = {slot.node for slot in self._slots}
            if nodes == {slot.node for slot in self._slots if slot.ready}:
                return
            try:
                event = self._events.get(timeout=0.5)
            except Empty:
                continue
            if isinstance(event, _Arrived):
                self._take(event)
            if self._refused:
                raise EngineError(
                    f"the Ray cluster at {self._head}: {next(iter(self._refused.values()))}"
                )
            if any(self._false_starts.values()):
                self._look()
        if not self._slots:
            raise EngineError(
                f"no node of the Ray cluster at {self._head} has a {self._resource}; one joins with"
                f" `ray start --address {self._head}`"
            )

    def _look(self) -> None:
        """Looks who is there: as many slots as each living node has CPUs or GPUs."""
        now = time.monotonic()
        if silence := self._head.silence(1):
            if now - self._head_seen > HEAD_GONE:
                raise EngineError(
                    f"the Ray cluster at {self._head} has gone: {silence}; what was told is in the"
                    " store, and the same command goes on from there"
                )
            return
        self._head_seen = now
        places = {
            node["NodeID"]: int(node["Resources"].get(self._resource, 0))
            for node in self._ray.nodes()
            if node["Alive"] and node["NodeID"] not in self._refused
        }
        for slot in [slot for slot in self._slots if slot.node not in places]:
            self._drop(slot, "its node has left the cluster")
        there = Counter(slot.node for slot in self._slots)
        for node, count in places.items():
            for _ in range(count - there[node]):
                self._start(node)
        if any(slot.ready for slot in self._slots):
            self._worker_seen = now
        elif now - self._worker_seen > NO_WORKERS:
            raise EngineError(
                f"the Ray cluster at {self._head} has had no free {self._resource} for"
                f" {NO_WORKERS:g} s; what was told is in the store, and the same command goes on"
            )

    def _start(self, node: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        gpu = self._resource == "GPU"
        slot = _Slot(
            node,
            self._worker.options(
                num_cpus=0 if gpu else 1,
                num_gpus=1 if gpu else 0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            ).remote(self._work),
        )
        self._slots.append(slot)
        self._expect(slot, slot.handle.hello.remote())

    def _expect(self, slot: _Slot, reference: Any) -> None:
        """What the reference becomes is an event."""

        def arrived(future: Any) -> None:
            error = future.exception()
            self._events.put(_Arrived(slot, None if error else future.result(), error))

        reference.future().add_done_callback(arrived)

    def _drop(self, slot: _Slot, reason: str) -> None:
        """Gives a slot up; what it computed is lost."""
        self._slots.remove(slot)
        self._kill(slot)
        if slot.ticket is not None:
            _send(self._pipe, Back(slot.ticket, Lost(reason)))

    def _kill(self, slot: _Slot) -> None:
        try:
            self._ray.kill(slot.handle, no_restart=True)
        except self._ray.exceptions.RayError:
            # it is gone already
            return

    def _refuse(self, node: str, why: str) -> None:
        self._refused[node] = why
        for slot in [slot for slot in self._slots if slot.node == node]:
            self._drop(slot, why)

    # slices

    def _assign(self) -> None:
        """Gives what waits to free workers: a pack to the one that has it in memory, first."""
        for in_memory in (True, False):
            for task in list(self._queue):
                slot = self._free(task.piece.pack.key if in_memory else None)
                if slot is not None:
                    self._queue.remove(task)
                    self._give(slot, task)

    def _give(self, slot: _Slot, task: Task) -> None:
        """A worker goes on from the checkpoint that it has; another is sent."""
        piece = task.piece
        last = piece.checkpoint is not None and _digest(piece.checkpoint) == slot.last
        slot.pack = piece.pack.key
        slot.ticket = task.ticket
        sent = replace(piece, checkpoint=None) if last else piece
        self._expect(slot, slot.handle.compute.remote(sent, last))

    def _free(self, pack: str | None) -> _Slot | None:
        """A worker with nothing to do; with `pack`, one that has it in memory."""
        for slot in self._slots:
            if slot.ready and slot.ticket is None and pack in (None, slot.pack):
                return slot
        return None

    def _take(self, arrived: _Arrived) -> None:
        slot = arrived.slot
        if slot not in self._slots:
            # given up before, and told
            return
        if arrived.error is not None:
            self._died(slot, _reason(arrived.error))
        elif isinstance(arrived.value, Hello):
            self._greeted(slot, arrived.value)
        else:
            assert slot.ticket is not None
            _send(self._pipe, Back(slot.ticket, arrived.value))
            slot.ticket = None
            checkpoint = None if isinstance(arrived.value, Failed) else arrived.value.checkpoint
            slot.last = b"" if checkpoint is None else _digest(checkpoint)
            if not slot.last:
                slot.pack = ""

    def _greeted(self, slot: _Slot, hello: Hello) -> None:
        if hello.version == code_version():
            slot.ready = True
            self._false_starts[slot.node] = 0
        else:
            self._refuse(
                slot.node,
                f"node {hello.host} has separatrix {hello.version}, and here is {code_version()};"
                " all need the same",
            )

    def _died(self, slot: _Slot, reason: str) -> None:
        self._drop(slot, reason)
        if not slot.ready:
            self._false_starts[slot.node] += 1
            if self._false_starts[slot.node] == FALSE_STARTS:
                self._refuse(slot.node, f"workers of a node do not start: {reason}")


def _digest(checkpoint: bytes) -> bytes:
    return sha256(checkpoint).digest()


def _connected(head: Address) -> Any:
    """Ray, connected to the cluster."""
    import ray

    try:
        within(
            JOINING,
            lambda: ray.init(
                address=str(head),
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                include_dashboard=False,
            ),
        )
    except TimeoutError:
        raise EngineError(
            f"Ray could not connect to {head} within {JOINING:g} s; is this machine a node of that"
            f" cluster? It joins with `ray start --address {head} --num-cpus 0`"
        ) from None
    except (Exception, SystemExit) as error:
        raise EngineError(f"Ray cannot connect to {head}: {_refusal(error)}") from None
    return ray


_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")


def _refusal(error: BaseException) -> str:
    """One line for what `ray.init` raised."""
    versions = _VERSIONS.findall(str(error))
    if len(versions) != 2:
        return f"{type(error).__name__}: {first_line(error)}"
    there, here = (f"Ray {ray} with Python {python}" for ray, python in versions)
    return f"it runs {there}, and here is {here}; all need the same"


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
