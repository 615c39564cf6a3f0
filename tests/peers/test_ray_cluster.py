"""Sweeps on a real Ray cluster of two nodes, on loopback: workers and nodes die and join, and each
run still ends exactly once, with the numbers of one machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support import pretended
from support.ray_cluster import SOURCES, Node
from support.waiting import until

from separatrix.core.errors import EngineError
from separatrix.core.evidence.canonical import code_version
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Slice, Update, packed
from separatrix.training.sweeps.engines.base import Engine, Failed, Lost, Result
from separatrix.training.sweeps.engines.pool import LocalEngine
from separatrix.training.sweeps.engines.ray import RayEngine, parse_address
from separatrix.training.sweeps.schedule import run_sweep
from separatrix.training.sweeps.store import Store


class Nodes:
    """The head, and what joined it."""

    def __init__(self) -> None:
        self.head = Node()
        self.more: list[Node] = []
        self.address = self.head.address()

    def join(self, sources: Path = SOURCES) -> Node:
        node = Node(self.address, sources=sources)
        self.more.append(node)
        return node

    def remove(self, node: Node) -> None:
        self.more.remove(node)
        node.die()

    @property
    def living(self) -> int:
        return 1 + len(self.more)

    def close(self) -> None:
        # whatever happened, nothing stays behind
        for node in [*self.more, self.head]:
            node.die()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    try:
        made.join()
        yield made
    finally:
        made.close()


class Sabotaged(Engine):
    """An engine to which something happens after as many updates as `when` says; keeps a log."""

    def __init__(self, engine: Engine, when: dict[int, Callable[[], None]]) -> None:
        self._engine = engine
        self._when = dict(when)
        self._begin = time.monotonic()
        self.updates = 0
        self.lost = 0
        self.log: list[str] = []

    @property
    def workers(self) -> int:
        return self._engine.workers

    def submit(self, piece: Slice) -> int:
        return self._engine.submit(piece)

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        back = self._engine.wait(timeout)
        for ticket, result in back:
            if isinstance(result, Update):
                self.updates += 1
                ended = f", ended: {len(result.finished)}" if result.finished else ""
                self.note(f"slice {ticket}: step {result.step}{ended}")
            elif isinstance(result, Lost):
                self.lost += 1
                self.note(f"slice {ticket} is lost: {result.reason}")
            for number in [number for number in self._when if number <= self.updates]:
                event = self._when.pop(number)
                self.note(event.__name__.replace("_", " "))
                event()
        return back

    def note(self, line: str) -> None:
        spent = time.monotonic() - self._begin
        self.log.append(f"{spent:5.1f} s  {self.workers} workers  {line}")

    def said(self) -> list[str]:
        return self._engine.said()

    def close(self) -> None:
        self._engine.close()

    @property
    def happened(self) -> bool:
        """Whether all that should happen has."""
        return not self._when


RUNS = [
    Run(
        architecture=stack,
        task="eva:n=4,V=4",
        seed=seed,
        steps=120,
        batch=16,
        width=8,
        tested=128,
        stop_at=1.0,
    )
    for stack in ("full", "linear")
    for seed in range(3)
]


def stored(path: Path, engine: Engine, runs: Sequence[Run], packs: Sequence[Pack]) -> Store:
    """The store of a sweep that has ended."""
    store = Store.create(path)
    store.add("sweep", runs)
    run_sweep(store, packs, engine, owner=path.name, slice_seconds=0.3)
    return store


def test_the_store_of_a_cluster_that_loses_a_worker_and_a_node_is_that_of_one_machine(
    nodes: Nodes, tmp_path: Path
) -> None:
    runs = [run.canonical() for run in RUNS]
    packs = packed(runs, 2)
    with LocalEngine(1) as engine:
        local = stored(tmp_path / "local.db", engine, runs, packs)

    def a_worker_is_killed() -> None:
        (process,) = nodes.head.workers()
        subprocess.run(["kill", "-9", str(process)], check=True)

    def a_node_is_removed() -> None:
        nodes.remove(nodes.more[0])

    when = {3: a_worker_is_killed, 6: a_node_is_removed}
    with RayEngine(nodes.address) as cluster:
        until(lambda: (cluster.workers, cluster.nodes) == (2, 2))
        engine = Sabotaged(cluster, when)
        ray = stored(tmp_path / "ray.db", engine, runs, packs)
    print(*engine.log, sep="\n")
    assert engine.happened
    # a node that dies between two slices loses none
    assert 1 <= engine.lost <= 2
    for one, other in zip(local.rows("sweep"), ray.rows("sweep"), strict=True):
        assert other.key == one.key
        assert other.completions == 1
        assert other.outcome is not None
        assert one.outcome is not None
        assert replace(other.outcome, seconds=0.0) == replace(one.outcome, seconds=0.0)
        assert ray.metrics(other.key) == local.metrics(one.key)
    # a process that is told to end does so in its own time
    until(lambda: not nodes.head.workers())


def test_a_node_that_joins_is_used_and_one_with_other_code_is_not(
    nodes: Nodes, tmp_path: Path
) -> None:
    shutil.copytree(SOURCES / "separatrix", tmp_path / "separatrix")
    changed = tmp_path / "separatrix" / "core" / "errors.py"
    changed.write_text(changed.read_text() + "\n# not the same\n")
    with RayEngine(nodes.address, work=pretended.raising) as engine:
        # Ray may take seconds to see that the node of the test before has gone
        until(lambda: engine.nodes == nodes.living)
        other = nodes.join(tmp_path)
        try:
            lines: list[str] = []
            until(lambda: lines.extend(engine.said()) or lines)
            good = nodes.join()
            until(lambda: engine.nodes == nodes.living - 1)
            assert engine.workers == nodes.living - 1
            (line,) = lines
            assert not engine.said()
            assert code_version() in line
            assert "need the same" in line
            *back, bad = computed(engine, pretended.runs(7, first=pretended.BAD - 6))
            assert [isinstance(result, Update) for result in back] == [True] * 6
            assert isinstance(bad, Failed)
            assert "the bad run" in bad.error
            until(lambda: not other.workers())
            until(good.workers)
        finally:
            # the sweeps of later tests refuse a cluster with such a node
            nodes.remove(other)


def computed(engine: Engine, runs: Sequence[Run]) -> list[Result]:
    tickets = {
        engine.submit(Slice(pack=Pack((run,)), checkpoint=None, seconds=10.0)) for run in runs
    }
    back: dict[int, Result] = {}

    def all_back() -> bool:
        back.update(engine.wait(1.0))
        return back.keys() == tickets

    until(all_back)
    return [back[ticket] for ticket in sorted(back)]


def test_work_that_kills_its_worker(nodes: Nodes) -> None:
    (bad,) = pretended.runs(1, first=pretended.BAD)
    (good,) = pretended.runs(1)
    with RayEngine(nodes.address, work=pretended.killing) as engine:
        lost, update = computed(engine, [bad, good])
        assert isinstance(lost, Lost)
        assert "\n" not in lost.reason
        assert isinstance(update, Update)


def test_versions_of_ray_that_differ_are_one_line(nodes: Nodes) -> None:
    script = (
        "import ray; ray.__version__ = '1.2.3'\n"
        "from separatrix.training.sweeps.engines.ray_driver import Job, connected\n"
        f"connected(Job(*{parse_address(nodes.address)!r}, 'CPU', b''))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    python = sys.version.split()[0]
    assert "Ray 1.2.3" in done.stderr
    assert f"Python {python}" in done.stderr
    assert "EngineError" in done.stderr.splitlines()[-1]


def test_a_cluster_that_goes_ends_the_sweep_with_one_line(nodes: Nodes) -> None:
    with RayEngine(nodes.address, work=pretended.at_once) as engine:
        nodes.head.die()
        with pytest.raises(EngineError, match="has gone"):
            engine.wait(30.0)
