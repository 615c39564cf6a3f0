"""A slice of training: what it tells, where it goes on, and what a small device makes of it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
import torch

import separatrix.training.work as module
from separatrix.core.errors import SizeError
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack, Slice, Update
from separatrix.training.run import Run
from separatrix.training.work import work

RUN = Run(
    architecture="full*1 @ heads=1, head_dim=8",
    task="eva:n=4,V=4",
    seed=0,
    steps=50,
    batch=8,
    width=8,
    hidden=0,
    tested=32,
    stop_at=2.0,
)
PACK = Pack(tuple(replace(RUN, seed=s) for s in range(3)))


def all_of(pack: Pack, forget: bool) -> list[Update]:
    updates: list[Update] = []
    checkpoint = None
    while True:
        # no time at all: a few steps are done in any case
        update = work(
            pickle.loads(pickle.dumps(Slice(pack=pack, checkpoint=checkpoint, seconds=0.0)))
        )
        updates.append(update)
        checkpoint = update.checkpoint
        if checkpoint is None:
            return updates
        if forget:
            module._Last.trainer = None


def test_slices_give_what_one_training_gives() -> None:
    remembered = all_of(PACK, forget=False)
    assert [update.step for update in remembered] == list(range(5, 51, 5))
    forgotten = all_of(PACK, forget=True)
    whole = Trainer(PACK)
    whole.advance(50)
    steps = {(metric.key, metric.step) for update in remembered for metric in update.metrics}
    assert steps == {(key, step) for key in PACK.keys for step in (20, 40, 50)}
    for updates in (remembered, forgotten):
        told = {key: outcome for update in updates for key, outcome in update.finished}
        for key, outcome in whole.outcomes().items():
            assert replace(told[key], seconds=0.0) == replace(outcome, seconds=0.0)


def test_a_pack_too_large_for_the_device_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that holds two members, in the middle of training."""
    begun = work(Slice(pack=PACK, checkpoint=None, seconds=0.0))
    advance = Trainer.advance

    def small(self: Trainer, steps: int) -> None:
        if len(self._members) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        advance(self, steps)

    monkeypatch.setattr(Trainer, "advance", small)
    update = work(Slice(pack=PACK, checkpoint=begun.checkpoint, seconds=0.0))
    assert (update.checkpoint, update.finished, update.step) == (None, (), 5)
    assert update.halves is not None
    assert update.halves[0].runs + update.halves[1].runs == PACK.runs
    whole = Trainer(PACK)
    advance(whole, 50)
    for half, checkpoint in zip(update.halves, update.half_checkpoints, strict=True):
        trainer = Trainer.resumed(half, checkpoint or b"")
        assert trainer.step == 5
        trainer.advance(45)
        for key in half.keys:
            pairs = zip(trainer.model(key).parameters(), whole.model(key).parameters(), strict=True)
            assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)


def test_halves_at_the_start_and_a_model_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Trainer, steps: int) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Trainer, "advance", none)
    update = work(Slice(pack=PACK, checkpoint=None, seconds=0.0))
    assert update.halves is not None
    assert update.half_checkpoints == (None, None)
    with pytest.raises(SizeError, match="not enough memory"):
        work(Slice(pack=Pack((RUN,)), checkpoint=None, seconds=0.0))
