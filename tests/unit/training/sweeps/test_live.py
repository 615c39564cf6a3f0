"""What a watcher sees of a sweep: a line, and what happened."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from separatrix.training.sweeps.live import Snapshot, headline, watching


def snapshot(done: int = 0, *, solved: int = 0, lines: Sequence[str] = (), **more: int) -> Snapshot:
    counts = {"done": done, **more}
    counts["waiting"] = 8 - sum(counts.values())
    return Snapshot(counts, steps=100, rate=0.0, left=None, lines=tuple(lines), solved=solved)


def test_the_headline_says_what_there_is() -> None:
    assert headline(snapshot()) == ["0/8 runs"]
    now = snapshot(2, solved=1, diverged=1, failed=1, elsewhere=2)
    assert headline(now) == [
        "4/8 runs",
        "1 solved",
        "2 elsewhere",
        "1 diverged",
        "1 failed",
    ]
    first, left, *_, pace = headline(now._replace(rate=1840.2, left=192.0))
    assert first == "4/8 runs"
    assert "3:12" in left
    assert "1,840 " in pace


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching("two", shown=True) as told:
        assert told is not None
        told(snapshot(running=4))
        told(snapshot(lines=["worker 1 was lost"]))
        assert "worker 1 was lost" in capsys.readouterr().err
        monkeypatch.setattr("separatrix.core.progress.EVERY", 0.0)
        told(snapshot(4, running=4))
        assert "two: 4/8 runs  4 running\n" in capsys.readouterr().err
    with watching("two", shown=False) as told:
        assert told is None
