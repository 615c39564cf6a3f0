"""Files that living processes lock; signals that are noted first, and heeded when it fits."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from pathlib import Path

import pytest

from separatrix.training.sweeps import processes
from separatrix.training.sweeps.processes import Stopping, hold, is_held, let_go


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_copy_of_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    hold(file)
    heard, said = os.pipe()
    copy = os.fork()
    if not copy:
        os.write(said, b".")
        signal.pause()
    try:
        os.read(heard, 1)
        assert is_held(file)
        # as the system does where a process dies
        os.close(processes._held.pop(file))
        assert not is_held(file)
    finally:
        os.kill(copy, signal.SIGKILL)
        os.waitpid(copy, 0)
        os.close(heard)
        os.close(said)


def test_what_stands_where_a_locked_file_was(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    for make in (Path.mkdir, os.mkfifo, Path.touch):
        make(file)
        assert not is_held(file)
        let_go(file)
        assert not is_held(file)
        if file.exists():
            file.rmdir()
    hold(file)
    file.unlink()
    assert not is_held(file)
    hold(file)
    assert is_held(file)
    let_go(file)
    assert not file.exists()


def test_locks_are_asked_as_files_of_a_network_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS has a lock of the kind for which a file was opened only (flock(2))."""
    lock = fcntl.flock

    def over_network(file: int, kind: int) -> None:
        opened = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        wrong = os.O_RDONLY if kind & fcntl.LOCK_EX else os.O_WRONLY
        assert opened != wrong
        lock(file, kind)

    monkeypatch.setattr("fcntl.flock", over_network)
    hold(tmp_path / "lock")
    assert is_held(tmp_path / "lock")
    let_go(tmp_path / "lock")


@pytest.mark.parametrize(
    ("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_first_signal_is_noted_and_a_second_interrupts(
    sent: signal.Signals, raised: type[BaseException]
) -> None:
    before = [signal.signal(sent, signal.default_int_handler), signal.getsignal(sent)]
    try:
        with Stopping() as stopping:
            stopping.heed()
            os.kill(os.getpid(), sent)
            assert stopping.asked is sent
            with pytest.raises(raised) as heeded:
                stopping.heed()
            with pytest.raises(raised):
                os.kill(os.getpid(), sent)
        assert signal.getsignal(sent) is before[1]
    finally:
        signal.signal(sent, before[0])
    if raised is SystemExit:
        assert heeded.value.code == 128 + signal.SIGTERM  # pyright: ignore[reportAttributeAccessIssue]


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stopping() as stopping:
            os.kill(os.getpid(), signal.SIGINT)
            assert stopping.asked is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_change_nothing() -> None:
    handler = signal.getsignal(signal.SIGINT)
    seen = []

    def enter() -> None:
        with Stopping():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [handler]
