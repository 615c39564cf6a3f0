"""What a watcher sees of a sweep: the table, and lines where there is no terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from separatrix.training.sweeps.live import Line, Snapshot, drawn, headline, watching

FULL = Line(label="full", total=4, ended=1, right=1024, due=2048)
GDN = Line(label="gdn", total=4)


def snapshot(*cells: Line, done: int = 0, lines: Sequence[str] = (), **more: int) -> Snapshot:
    counts = {"running": sum(line.running for line in cells), "done": done, **more}
    counts["waiting"] = 8 - sum(counts.values())
    return Snapshot(counts, steps=100, rate=0.0, left=None, lines=tuple(lines), cells=cells)


def test_the_headline_says_what_there_is() -> None:
    assert headline(snapshot()) == "0/8 runs"
    now = snapshot(done=2, diverged=1, failed=1, elsewhere=2)._replace(rate=1840.2, left=192.0)
    assert headline(now).split("   ")[:4] == [
        "4/8 runs",
        "2 elsewhere",
        "1 diverged",
        "1 failed",
    ]
    assert "1,840 " in headline(now)
    assert "3:12" in headline(now)


def test_the_table_fits_the_terminal_and_shows_first_what_is_trained() -> None:
    console = Console(file=io.StringIO(), width=60, height=7)
    now = snapshot(FULL, GDN._replace(running=1, step=1200), done=1)
    console.print(drawn("two", now, console))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("##--------------  two: 1/8 runs")
    assert lines[-3].split() == ["gdn", "0/4", "1", "at", "step", "1,200", "-"]
    assert lines[-2].split() == ["full", "1/4", "50.0", "%"]
    tiny = Console(file=io.StringIO(), width=60, height=6)
    tiny.print(drawn("two", now, tiny))
    assert "1 cell more" in tiny.file.getvalue()  # type: ignore[attr-defined]


def test_a_long_name_is_cut_and_no_number() -> None:
    named = "(gdn(head_dim=4, heads=1)*3 + full(head_dim=16, heads=2))*2"
    line = Line(label=named, total=16, ended=4, running=4, step=1200)
    now = snapshot(line._replace(right=2043, due=2048), done=1)
    for width in (60, 80):
        console = Console(file=io.StringIO(), width=width, height=7)
        console.print(drawn("two", now, console))
        (row,) = [one for one in console.file.getvalue().splitlines() if "gdn" in one]  # type: ignore[attr-defined]
        assert len(row) <= width
        name, _, numbers = row.partition("…")
        assert named.startswith(name)
        assert numbers.split() == ["4/16", "4", "at", "step", "1,200", "99.7", "%"]


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    best = FULL._replace(ended=4, right=2048)
    with watching("two", shown=True) as told:
        assert told is not None
        told(snapshot(FULL._replace(running=4)))
        told(snapshot(lines=["worker 1 was lost"]))
        assert "worker 1 was lost" in capsys.readouterr().err
        monkeypatch.setattr("separatrix.core.progress.EVERY", 0.0)
        told(snapshot(best, GDN._replace(running=4), done=4))
        assert "two: 4/8 runs   4 running\n" in capsys.readouterr().err
    with watching("two", shown=False) as told:
        assert told is None
