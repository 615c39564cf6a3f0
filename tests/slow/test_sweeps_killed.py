"""Sweeps that are killed or interrupted, as processes: on pretended training, so that it is quick.
benchmarks/kills.py does the same with more kills, and with real training.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import pretended
from support.interrupts import heeds_interrupts
from support.waiting import SAFETY, until

from separatrix.training.sweeps.store import Store

KILLS = Path(__file__).parents[2] / "benchmarks" / "kills.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers under /proc"),
]


@pytest.mark.parametrize("schedulers", ["1", "2"])
def test_kill_9_at_random_moments_loses_nothing(schedulers: str) -> None:
    """Of the scheduler, of a worker, of both: each run ends once, as in an undisturbed sweep."""
    command = [sys.executable, str(KILLS), "--pretended", "--schedulers", schedulers]
    command += ["--kills", "3", "--runs", "8", "--steps", "300", "--slice-seconds", "0.2"]
    done = subprocess.run(
        [*command, "--between", "0", "0.5", "--seed", schedulers],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SAFETY,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ended once" in done.stdout


SWEEP = """
import sys
from support import pretended
from separatrix.core.errors import SeparatrixError
from separatrix.training.sweeps.engines.pool import LocalEngine
from separatrix.training.sweeps.schedule import run_sweep
from separatrix.training.sweeps.store import Store
from separatrix.training.packs import packed

runs = pretended.runs(4, steps=100_000)
with Store.open(sys.argv[1], version="test") as store:
    with LocalEngine(2, work=pretended.pretend) as engine:
        run_sweep(store, packed(runs, 1), engine, owner="me", slice_seconds=0.2)
"""


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_stopped_a_sweep_gives_back_its_claims(
    sent: signal.Signals, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    runs = pretended.runs(4, steps=100_000)
    with Store.create(path, version="test") as store:
        store.add("sweep", runs)
        process = start([sys.executable, "-c", SWEEP, str(path)])
        until(lambda: len(store.packs([run.key for run in runs])) == 2)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(workers) == 2
        # a terminal sends Ctrl-C to every process; `kill` sends to one
        os.killpg(process.pid, sent) if sent == signal.SIGINT else process.send_signal(sent)
        _, errors = process.communicate(timeout=SAFETY)
        assert process.returncode == code
        # Python itself says so of a KeyboardInterrupt that reaches the top, once
        assert errors.count("Traceback") == (1 if sent == signal.SIGINT else 0)
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
        assert store.counts() == {"waiting": 4}
        assert not store.owners()
        assert len(store.packs([run.key for run in runs])) == 2


def test_a_second_process_waits_for_what_the_first_holds_and_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    runs = pretended.runs(3, steps=1000)
    with Store.create(path, version="test") as store:
        store.add("sweep", runs)
        script = SWEEP.replace("runs(4, steps=100_000)", "runs(3, steps=1000)")
        first = start([sys.executable, "-c", script, str(path)])
        until(lambda: store.counts().get("running", 0) == 2)
        second = start([sys.executable, "-c", script.replace('"me"', '"you"'), str(path)])
        until(lambda: store.counts().get("running", 0) == 3)
        first.kill()
        first.communicate()
        _, errors = second.communicate(timeout=SAFETY)
        assert second.returncode == 0, errors
        assert [row.outcome for row in store.rows()] == [pretended.expected(run) for run in runs]
        assert [row.completions for row in store.rows()] == [1, 1, 1]


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=heeds_interrupts,
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
