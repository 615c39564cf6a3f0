"""The engine of one machine, on pretended training."""

from __future__ import annotations

import pytest
import torch
from support import pretended

from separatrix.core.errors import EngineError
from separatrix.training.packs import Pack, Slice, Update
from separatrix.training.sweeps.engines.base import Failed, Lost, Result
from separatrix.training.sweeps.engines.pool import LocalEngine, cores, devices


def computed(engine: LocalEngine, piece: Slice) -> Result:
    ticket = engine.submit(piece)
    while not (back := engine.wait(1.0)):
        pass
    assert [number for number, _ in back] == [ticket]
    return back[0][1]


@pytest.mark.slow  # several processes
def test_what_comes_back() -> None:
    good = Slice(pack=Pack(tuple(pretended.runs(2))), checkpoint=None, seconds=60.0)
    bad = Slice(
        pack=Pack(tuple(pretended.runs(1, first=pretended.BAD))), checkpoint=None, seconds=60.0
    )
    with LocalEngine(1, work=pretended.raising) as engine:
        update = computed(engine, good)
        assert isinstance(update, Update)
        assert [found for _, found in sorted(update.finished, key=lambda one: one[1].seed)] == [
            pretended.expected(run) for run in good.pack.runs
        ]
        failed = computed(engine, bad)
        assert isinstance(failed, Failed)
        assert failed.error.startswith("ValueError: the bad run (")
    with LocalEngine(1, work=pretended.killing) as engine:
        lost = computed(engine, bad)
        assert isinstance(lost, Lost)
        assert lost.reason.endswith("was killed by SIGKILL")
        assert isinstance(computed(engine, good), Update)


def test_where_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices("cpu") == ["cpu"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert devices("cuda") == ["cuda:0", "cuda:1", "cuda:2"]
    assert devices("cuda:1") == ["cuda:1"]
    with pytest.raises(EngineError, match="'cuda:3'"):
        devices("cuda:3")
    assert LocalEngine(device="cuda").workers == 3
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(EngineError, match="no CUDA device; take --device cpu"):
        LocalEngine(device="cuda")
    assert LocalEngine().workers == cores()
    assert LocalEngine(5).workers == 5
