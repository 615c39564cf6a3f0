"""A Ray cluster of this machine for tests: a head and more nodes, each with processes, folder and
ports of its own. Nothing of it is left when it is closed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import separatrix
from separatrix.training.packs import Slice, Update
from support.waiting import until

MARK = "SEPARATRIX_TEST_NODE"
"""In the environment of every process of a node: Ray's own change their names and sessions."""
SOURCES = Path(separatrix.__file__).parents[1]
TESTS = Path(__file__).parents[1]
OBJECTS = 80_000_000
"""Bytes for a node's objects: the least that Ray takes."""


class Node:
    """One node: what `ray start` starts."""

    def __init__(
        self, address: str | None = None, *, cpus: int = 1, sources: Path = SOURCES
    ) -> None:
        """A head without an address. Its code is that of `sources`."""
        self.mark = uuid4().hex
        # not pytest's folder: the paths of Ray's sockets may have 107 letters
        self.folder = Path(tempfile.mkdtemp(prefix="ray"))
        self._log = open(self.folder / "ray_start.log", "w")  # noqa: SIM115
        where = (
            [f"--address={address}"]
            if address
            else [
                "--head",
                "--port=0",
                "--include-dashboard=false",
            ]
        )
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ray.scripts.scripts", "start", *where, "--block"),
                *(f"--temp-dir={self.folder}", f"--num-cpus={cpus}", "--num-gpus=0"),
                *(f"--object-store-memory={OBJECTS}", "--disable-usage-stats"),
                "--node-ip-address=127.0.0.1",
            ],
            env={
                **os.environ,
                MARK: self.mark,
                "PYTHONPATH": f"{sources}:{TESTS}",
                # the processes of two nodes and of the test share few cores
                "OMP_NUM_THREADS": "1",
                # Ray gives up after half a minute, which a busy machine may take
                "RAY_raylet_start_wait_time_s": "300",
            },
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def address(self) -> str:
        """Where a head listens, once it does."""
        note = self.folder / "ray_current_cluster"
        until(lambda: note.exists() or self._process.poll() is not None)
        assert note.exists(), f"no head: {self.log()}"
        return note.read_text().strip()

    def log(self) -> str:
        """The end of what `ray start` printed."""
        return (self.folder / "ray_start.log").read_text()[-2000:]

    def processes(self) -> list[int]:
        """All that run on this node."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:
                # it has ended, or is another user's
                continue
            if f"{MARK}={self.mark}".encode() in environment.split(b"\0"):
                found.append(int(folder.name))
        return found

    def workers(self) -> list[int]:
        """The processes that compute slices."""
        return [one for one in self.processes() if _name(one).startswith("ray::Worker")]

    def die(self) -> None:
        """Ends as a machine does whose power fails: all processes at once."""
        while found := self.processes():
            for process in found:
                _kill(process)
            # our own child is reaped
            self._process.poll()
            time.sleep(0.02)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def by_processor_time(piece: Slice) -> Update:
    """Training whose seconds are those of the processor, however many share it."""
    from separatrix.training.work import work

    begin = time.process_time()
    update = work(piece)
    return replace(update, seconds=time.process_time() - begin)


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        # it has ended meanwhile
        return
