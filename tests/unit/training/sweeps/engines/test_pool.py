"""Worker processes: what comes back, however they end, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.interrupts import heeds_interrupts
from support.waiting import SAFETY, until

from separatrix.core.errors import EngineError, SizeError
from separatrix.training.sweeps.engines.base import Failed, Lost
from separatrix.training.sweeps.engines.pool import Processes, cores


def collected(processes: Processes, many: int) -> dict[int, Any]:
    found: dict[int, Any] = {}

    def all_back() -> bool:
        for ticket, back in processes.wait(1.0):
            assert ticket not in found
            found[ticket] = back
        return len(found) >= many

    until(all_back)
    return found


def square_or_suffer(what: int | str) -> object:
    if what == "raise":
        raise ValueError("no\nmore")
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "end":
        os._exit(3)
    if what == "sleep":
        time.sleep(60)
    if what == "threads":
        return os.environ["OMP_NUM_THREADS"]
    assert isinstance(what, int)
    return what * what


def cannot_start() -> None:
    raise ImportError("no such thing")


def ends_at_the_start() -> None:
    os._exit(7)


@pytest.mark.slow  # several processes
def test_what_comes_back() -> None:
    with closing(Processes(square_or_suffer, 2)) as processes:
        wanted = {processes.submit(n): n * n for n in range(7)}
        found = collected(processes, 7)
        assert found == wanted
        assert processes.wait(0) == []
        odd = [processes.submit(what) for what in ("raise", "threads")]
        found = collected(processes, 2)
        raised, threads = (found[ticket] for ticket in odd)
        assert isinstance(raised, Failed)
        assert raised.error.startswith("ValueError: no (test_pool.py, line ")
        assert threads == "1"


@pytest.mark.slow  # several processes
def test_a_worker_that_dies_is_told_and_another_takes_its_place() -> None:
    with closing(Processes(square_or_suffer, 1)) as processes:
        tickets = [processes.submit(what) for what in ("die", 3, "end", 4)]
        found = collected(processes, 4)
        killed, nine, ended, sixteen = (found[ticket] for ticket in tickets)
        assert isinstance(killed, Lost)
        assert killed.reason.endswith("was killed by SIGKILL")
        assert isinstance(ended, Lost)
        assert ended.reason.endswith("exit code 3")
        assert nine == 9
        assert sixteen == 16


def test_a_death_is_told_and_closing_drops_what_runs() -> None:
    processes = Processes(square_or_suffer, 1)
    processes.submit("die")
    (died,) = collected(processes, 1).values()
    assert isinstance(died, Lost)
    processes.submit(1)
    assert list(collected(processes, 1).values()) == [1]
    processes.submit("sleep")
    (worker,) = processes.crew
    processes.close()
    processes.close()
    assert worker.handle[0].returncode == -signal.SIGTERM


@pytest.mark.slow  # several processes
def test_workers_that_cannot_start() -> None:
    for first, why in (
        (cannot_start, "ended with exit code 1, 3 times in a row"),
        (ends_at_the_start, "ended with exit code 7, 3 times in a row"),
    ):
        with closing(Processes(square_or_suffer, 1, first=first)) as processes:
            processes.submit(1)
            with pytest.raises(EngineError, match=why):
                collected(processes, 1)


@each("many", [0, -1, True, 1.5])
def test_how_many(many: int) -> None:
    with pytest.raises(SizeError, match="at least 1"):
        Processes(square_or_suffer, many)


def test_one_for_each_core() -> None:
    assert Processes(square_or_suffer).most == cores() <= (os.cpu_count() or 1)


SCRIPT = """
import time
from separatrix.training.sweeps.engines.pool import Processes
# without a guard: workers must not run this again
processes = Processes(time.sleep, 2)
processes.submit(60)
processes.submit(60)
while not all(worker.ready for worker in processes.crew) or len(processes.crew) < 2:
    processes.wait(0.1)
print(*(worker.handle[0].pid for worker in processes.crew), flush=True)
processes.wait(60)
"""


@pytest.mark.slow  # a whole process with workers
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_none_outlives_its_parent(sent: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        preexec_fn=heeds_interrupts,
    )
    assert parent.stdout is not None
    workers = [int(number) for number in parent.stdout.readline().split()]
    assert len(workers) == 2
    # Ctrl-C goes to all processes of the terminal
    os.killpg(parent.pid, sent) if sent == signal.SIGINT else parent.kill()
    _, errors = parent.communicate(timeout=SAFETY)
    assert errors.count("Traceback") == (1 if sent == signal.SIGINT else 0)
    until(lambda: not any(lives(worker) for worker in workers))


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
