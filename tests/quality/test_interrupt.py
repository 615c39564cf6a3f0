"""Ctrl-C and a killed parent: nothing half-written, nothing left running, what is done stays
saved.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.interrupts import heeds_interrupts
from support.waiting import SAFETY, until


def _start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "separatrix", "reproduce", "--quick", "--out", str(out)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeds_interrupts,
    )


def _alive(session: int) -> bool:
    """Whether a process of the session is still running (zombies aside)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes under /proc")
@pytest.mark.slow  # a whole process with workers; what is saved and picked up again: test_reproduce
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_stopping_the_main_job(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    process = _start(tmp_path)
    try:
        until(lambda: any((tmp_path / ".saved").glob("*.sqlite")) or process.poll() is not None)
        os.kill(process.pid, sent)
        _, errors = process.communicate(timeout=SAFETY)
        assert process.returncode == code
        assert "Traceback" not in errors
        until(lambda: not _alive(process.pid))
    finally:
        if _alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    assert not (tmp_path / "evidence.json").exists()
    assert not (tmp_path / "report.html").exists()
    if code == 130:
        assert "nothing is half-written" in errors
        assert not list((tmp_path / ".saved").glob(".*sqlite.*"))
