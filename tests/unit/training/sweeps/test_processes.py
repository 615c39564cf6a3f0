"""Signals that are noted first, and heeded when it fits."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from separatrix.training.sweeps.processes import Stopping


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
