"""What a worker of a Ray cluster does with a slice; no cluster is needed."""

from __future__ import annotations

from dataclasses import replace

from support import pretended

from separatrix.core.evidence.canonical import code_version
from separatrix.training.packs import Pack, Slice, Update
from separatrix.training.sweeps.engines.base import Failed
from separatrix.training.sweeps.engines.ray_driver import Worker

ONE_STEP = 1e-9


def test_a_worker_goes_on_from_what_it_gave_last() -> None:
    (run,) = pretended.runs(1, steps=8)
    piece = Slice(pack=Pack((run,)), checkpoint=None, seconds=ONE_STEP)
    worker = Worker(pretended.pretend)
    first = worker.compute(piece, False)
    assert isinstance(first, Update)
    sent = worker.compute(piece, True)
    with_checkpoint = Worker(pretended.pretend).compute(
        replace(piece, checkpoint=first.checkpoint), False
    )
    assert isinstance(sent, Update)
    assert isinstance(with_checkpoint, Update)
    assert sent.checkpoint == with_checkpoint.checkpoint
    assert sent.step == 2 * first.step


def test_what_is_raised_comes_back_as_text() -> None:
    (run,) = pretended.runs(1, first=pretended.BAD)
    piece = Slice(pack=Pack((run,)), checkpoint=None, seconds=10.0)
    failed = Worker(pretended.raising).compute(piece, False)
    assert isinstance(failed, Failed)
    assert "the bad run" in failed.error


def test_a_worker_says_which_code_runs() -> None:
    assert Worker(pretended.pretend).hello()[0] == code_version()
