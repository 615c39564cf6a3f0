"""What a watcher sees of a sweep: the board's cells, the table, and lines where there is no
terminal.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console
from support.toy_runs import outcome, run

from separatrix.core.evidence.canonical import canonical
from separatrix.training.packs import Pack
from separatrix.training.run import Run
from separatrix.training.slices import Metric
from separatrix.training.sweeps.board import Board
from separatrix.training.sweeps.live import drawn, headline, watching
from separatrix.training.sweeps.snapshot import Snapshot, Standing
from separatrix.training.sweeps.stored import Stored

RUNS = [
    run(seed, rate, stack) for stack in ("full", "gdn") for rate in (1e-3, 1e-2) for seed in (0, 1)
]
FULL, GDN = Pack(tuple(RUNS[:4])), Pack(tuple(RUNS[4:]))


def stored(one: Run, correct: int | None = None, status: str = "done") -> Stored:
    ended = None if correct is None else outcome(one, correct)
    return Stored(
        key=one.key,
        sweep="two",
        specification=canonical(one.canonical().to_json()),
        status=status,  # type: ignore[arg-type]
        result=None if ended is None else canonical({**vars(ended), "longer": []}),
        error="",
        version="",
        created=0.0,
        ended=1.0,
        seconds=1.0,
        completions=1,
        step=40,
        owner=None,
        host="",
    )


def snapshot(
    *standing: Standing, done: int = 0, lines: Sequence[str] = (), **more: float
) -> Snapshot:
    running = sum(len(pack.metrics) for pack in standing)
    base = Snapshot(
        total=8,
        waiting=8 - running - done,
        running=running,
        elsewhere=0,
        done=done,
        diverged=0,
        failed=0,
        steps=100,
        rate=0.0,
        left=None,
        seconds=1.0,
        packs=standing,
        lines=tuple(lines),
    )
    return replace(base, **more)


def standing(pack: Pack, step: int, accuracies: Sequence[float]) -> Standing:
    metrics = zip(pack.runs, accuracies, strict=False)
    return Standing(
        pack=pack,
        step=step,
        metrics=tuple(Metric(r.key, step, 1.0, a, r.learning_rate) for r, a in metrics),
    )


def test_the_board_follows_packs_and_looks_up_what_ended() -> None:
    looked: list[str] = []
    outcomes = {RUNS[0].key: stored(RUNS[0], 1000), RUNS[2].key: stored(RUNS[2], 2047)}

    def look(key: str) -> Stored:
        looked.append(key)
        found = {one.key: one for one in RUNS}[key]
        return outcomes.get(key, stored(found, status="running"))

    board = Board(RUNS, [stored(one, status="waiting") for one in RUNS], look)
    board.heard(snapshot(standing(FULL, 25, [0.25, 0.5, 0.125, 0.0])))
    full, gdn = board.lines
    assert (full.label, full.running, full.step, full.accuracy) == ("full", 4, 25, 0.5)
    assert (gdn.label, gdn.running, gdn.accuracy, board.best) == ("gdn", 0, None, None)
    # two of four end
    left = standing(FULL, 50, [0.9] * 4)
    board.heard(snapshot(replace(left, metrics=left.metrics[1::2])))
    assert (full.ended, full.running, full.step) == (2, 2, 50)
    assert (full.right, full.due, full.rate) == (2047, 2048, 1e-2)
    assert board.best is full
    assert set(looked) == {RUNS[0].key, RUNS[2].key}


def test_a_pack_between_two_slices_has_not_ended() -> None:
    board = Board(RUNS, [], lambda key: stored({r.key: r for r in RUNS}[key], status="running"))
    board.heard(snapshot(standing(GDN, 25, [0.5] * 4)))
    board.heard(snapshot())
    assert [line.ended for line in board.lines] == [0, 0]
    board.heard(snapshot(standing(GDN, 50, [0.5] * 4)))
    assert [line.running for line in board.lines] == [0, 4]


def test_what_another_process_has_ended_is_looked_up_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [stored(one, 1024) for one in RUNS[:4]]
    board = Board(RUNS, [], None, lambda: rows)
    board.heard(snapshot(elsewhere=4))
    assert board.lines[0].ended == 0
    monkeypatch.setattr("separatrix.training.sweeps.board.AROUND", 0.0)
    board.heard(snapshot(elsewhere=4))
    assert (board.lines[0].ended, board.lines[0].best) == (4, 0.5)


def test_the_last_run_of_another_process_is_not_forgotten() -> None:
    rows = [stored(one, 1024) for one in RUNS[:4]]
    board = Board(RUNS, [], None, lambda: rows)
    board.heard(snapshot())
    assert board.lines[0].ended == 0
    board.heard(snapshot(elsewhere=4))
    board.heard(snapshot(done=4))
    assert (board.lines[0].ended, board.lines[0].best) == (4, 0.5)


def test_failed_and_diverged_runs_have_ended_without_a_best() -> None:
    rows = [stored(RUNS[0], 3, "diverged"), stored(RUNS[1], status="failed")]
    (line, _) = Board(RUNS, rows).lines
    assert (line.ended, line.right) == (2, None)


def test_the_headline_says_what_there_is() -> None:
    assert headline("two", snapshot()) == "two: 0/8 runs"
    now = snapshot(done=2, diverged=1, failed=1, elsewhere=2, rate=1840.2, left=192.0)
    assert headline("two", now) == (
        "two: 4/8 runs   2 elsewhere   1 diverged   1 failed   1,840 model-steps/s"
        "   about 3:12 left"
    )


def test_the_table_fits_the_terminal_and_shows_first_what_is_trained() -> None:
    board = Board(RUNS, [stored(RUNS[0], 1024)])
    console = Console(file=io.StringIO(), width=60, height=7)
    now = snapshot(standing(GDN, 1200, [0.61]), done=1)
    board.heard(now)
    console.print(drawn("two", board, now, console))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("##--------------  two: 1/8 runs")
    assert lines[-3].split() == ["gdn", "0/4", "1", "at", "step", "1,200,", "61%", "-"]
    assert lines[-2].split() == ["full", "1/4", "50.0", "%", "0.001"]
    tiny = Console(file=io.StringIO(), width=60, height=6)
    tiny.print(drawn("two", board, now, tiny))
    assert "1 cell more" in tiny.file.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(RUNS, [], lambda key: stored({r.key: r for r in RUNS}[key], 2048))
    with watching("two", board, shown=True) as told:
        told(snapshot(standing(FULL, 25, [0.5] * 4)))
        told(snapshot(lines=["worker 1 was lost"]))
        assert capsys.readouterr().err == "two: worker 1 was lost\n"
        monkeypatch.setattr("separatrix.training.sweeps.live.EVERY", 0.0)
        told(snapshot(standing(GDN, 25, [0.5] * 4), done=4))
        assert capsys.readouterr().err == "two: 4/8 runs   4 running   best run 100.0 % (full)\n"
        monkeypatch.setattr("separatrix.training.sweeps.live.EVERY", 60.0)
        over = snapshot(done=8)
        told(over)
        told(over)
        assert capsys.readouterr().err == "two: 8/8 runs   best run 100.0 % (full)\n"
    with watching("two", board, shown=False) as told:
        told(over)
    assert capsys.readouterr().err == ""
