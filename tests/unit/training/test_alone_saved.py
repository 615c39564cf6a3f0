"""A training that is interrupted and goes on gives, bit for bit, what it gives uninterrupted."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from separatrix.core.errors import EvidenceError, OutputError
from separatrix.models.stored.run import Run
from separatrix.training import alone as session
from separatrix.training import engine
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack

RUN = Run(
    architecture="full @ heads=1, head_dim=4",
    task="eva:n=4,V=4",
    seed=5,
    steps=45,
    batch=8,
    width=8,
    hidden=8,
    tested=32,
    stop_at=2.0,
)
PACK = Pack((RUN,))


def weights(trainer: Trainer) -> list[torch.Tensor]:
    return list(trainer.model(RUN.key).state_dict().values())


@pytest.mark.parametrize(
    ("sent", "raised"),
    [
        (signal.SIGINT, KeyboardInterrupt),
        pytest.param(signal.SIGTERM, SystemExit, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_waits_for_the_step_and_saves(
    sent: signal.Signals, raised: type[BaseException], tmp_path: Path
) -> None:
    file = tmp_path / "here.checkpoint"
    before = signal.getsignal(sent)
    stopped_at: list[int] = []

    def told(trainer: Trainer) -> None:
        if trainer.step >= 7 and not stopped_at:
            os.kill(os.getpid(), sent)
            stopped_at.append(trainer.step)

    signal.signal(sent, signal.default_int_handler)
    try:
        with pytest.raises(raised):
            session.saved(PACK, file, told=told)
        assert signal.getsignal(sent) is signal.default_int_handler
    finally:
        signal.signal(sent, before)
    again = Trainer.resumed(PACK, file.read_bytes())
    assert 7 <= again.step == stopped_at[0] < 45
    seen: list[int] = []
    ended = session.saved(PACK, file, told=lambda trainer: seen.append(trainer.step))
    # it went on, and did not begin again
    assert seen[0] > again.step
    alone = Trainer(PACK)
    alone.advance(45)
    assert all(map(torch.equal, weights(ended), weights(alone)))
    assert ended.outcomes()[RUN.key].correct == alone.outcomes()[RUN.key].correct


@pytest.mark.slow
def test_it_saves_while_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SAVE_EVERY", 0.0)
    file = tmp_path / "here.checkpoint"
    steps: list[int] = []
    session.saved(
        PACK, file, told=lambda _: steps.append(Trainer.resumed(PACK, file.read_bytes()).step)
    )
    assert steps == list(range(45))


def test_files_that_are_no_checkpoint_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "here.checkpoint"
    file.write_bytes(b"")
    with pytest.raises(EvidenceError, match=r"damaged.*--out"):
        session.saved(PACK, file)
    file.write_bytes(Trainer(Pack((replace(RUN, seed=6),))).checkpoint())
    with pytest.raises(EvidenceError, match=r"another training.*--out"):
        session.saved(PACK, file)
    file.write_bytes(Trainer(PACK).checkpoint())
    monkeypatch.setattr(engine, "code_version", lambda: "0.0.9+00000000")
    with pytest.raises(EvidenceError, match=r"another version.*0\.0\.9"):
        session.saved(PACK, file)
    with pytest.raises(OutputError, match="cannot be read"):
        session.saved(PACK, tmp_path)
