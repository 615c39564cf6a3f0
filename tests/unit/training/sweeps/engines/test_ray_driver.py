"""What a worker of a Ray cluster does with a slice; no cluster is needed."""

from __future__ import annotations

from support import pretended

from separatrix.core.evidence.canonical import code_version
from separatrix.training.packs import Pack, Slice
from separatrix.training.sweeps.engines.base import Failed
from separatrix.training.sweeps.engines.ray_driver import Worker


def test_what_is_raised_comes_back_as_text() -> None:
    (run,) = pretended.runs(1, first=pretended.BAD)
    piece = Slice(pack=Pack((run,)), checkpoint=None, seconds=10.0)
    failed = Worker(pretended.raising).compute(piece)
    assert isinstance(failed, Failed)
    assert "the bad run" in failed.error


def test_a_worker_says_which_code_runs() -> None:
    assert Worker(pretended.pretend).hello()[0] == code_version()
