"""Recorded steps, on a machine without a GPU: a stand-in runs what a CUDA graph would."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from unit.training.test_engine import RUN, finished, pack, same

from separatrix.training import step as captured
from separatrix.training.engine import Trainer
from separatrix.training.step import Captured, Step


class Recorded:
    """As a graph does it: inputs and outputs have a memory of their own."""

    made = 0

    def __init__(self, function, inputs: tuple[Tensor | None, ...]) -> None:
        type(self).made += 1
        self.function = function
        self.inputs = tuple(None if part is None else part.clone() for part in inputs)
        self.outputs: tuple[Tensor, ...] = ()

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        for own, part in zip(self.inputs, inputs, strict=True):
            if own is not None and part is not None:
                own.copy_(part)
        new = self.function(*self.inputs)
        self.outputs = self.outputs or new
        for own, part in zip(self.outputs, new, strict=True):
            own.copy_(part)
        return self.outputs


@pytest.mark.slow
def test_recorded_steps_train_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Across lengths of a curriculum, and across the end of a member."""
    run = replace(RUN, task="eva:n=4,V=8", curriculum=("n=2@12",), stop_at=0.4, batch=32, width=16)
    chosen = pack(replace(run, learning_rate=2e-2), 2)
    plain = finished(Trainer(chosen))
    assert len({outcome.steps_done for outcome in plain.outcomes().values()}) == 2
    monkeypatch.setattr(captured, "_recorded", Recorded)
    monkeypatch.setattr(Step, "_quickest", lambda self: Captured(self._change))
    Recorded.made = 0
    assert same(finished(Trainer(chosen)), plain)
    # two lengths of prompts, and again for the member that is left
    assert Recorded.made == 3


def test_what_cannot_be_recorded_runs_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(function, inputs: tuple[Tensor | None, ...]) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(captured, "_recorded", refuse)
    twice = Captured(lambda x: (2 * x,))
    one = torch.ones(1)
    for _ in range(3):
        assert twice(one)[0] == 2
    with pytest.warns(UserWarning, match="cannot be recorded"):
        assert twice(one)[0] == 2
    assert twice(one)[0] == 2


def test_too_little_memory_is_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(function, inputs: tuple[Tensor | None, ...]) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(captured, "_recorded", full)
    twice = Captured(lambda x: (2 * x,))
    for _ in range(3):
        twice(torch.ones(1))
    with pytest.raises(torch.cuda.OutOfMemoryError):
        twice(torch.ones(1))
