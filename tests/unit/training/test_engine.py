"""Packs: members are independent, and training goes on from checkpoints bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from separatrix.core.errors import EvidenceError
from separatrix.models.model import build
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack

RUN = Run(
    architecture="full @ heads=1, head_dim=8",
    task="eva:n=4,V=4",
    seed=0,
    steps=45,
    batch=16,
    width=8,
    hidden=16,
    tested=64,
    stop_at=2.0,
)


def pack(run: Run = RUN, seeds: int = 3) -> Pack:
    """Seeds of a run, each with a learning rate of its own."""
    return Pack(
        tuple(replace(run, seed=s, learning_rate=run.learning_rate / (s + 1)) for s in range(seeds))
    )


def finished(trainer: Trainer) -> Trainer:
    while trainer.active:
        trainer.advance(1000)
    return trainer


def weights(trainer: Trainer) -> list[torch.Tensor]:
    models = [trainer.model(key) for key in trainer.pack.keys]
    return [parameter.detach() for model in models for parameter in model.parameters()]


def same(one: Trainer, other: Trainer) -> bool:
    pairs = zip(weights(one), weights(other), strict=True)
    counted = [
        {key: replace(each, seconds=0.0) for key, each in trainer.outcomes().items()}
        for trainer in (one, other)
    ]
    return all(bool((a == b).all()) for a, b in pairs) and counted[0] == counted[1]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("optimiser", "seeds", "steps"),
    [
        ("muon", 3, 13),
        pytest.param("muon", 1, 13, marks=SLOW),
        pytest.param("muon", 3, 40, marks=SLOW),
        pytest.param("adamw", 1, 13, marks=SLOW),
        pytest.param("adamw", 3, 13, marks=SLOW),
        pytest.param("adamw", 3, 40, marks=SLOW),
    ],
)
def test_a_checkpoint_goes_on_bit_for_bit(optimiser, seeds: int, steps: int) -> None:
    """In the middle of the steps whose losses are read together, and at their end."""
    # more layers and steps where there is time
    run = replace(RUN, architecture="full*2 @ heads=1, head_dim=8") if steps == 40 else RUN
    chosen = pack(replace(run, optimiser=optimiser), seeds)
    whole = finished(Trainer(chosen))
    part = Trainer(chosen)
    part.advance(steps)
    assert part.step == steps
    resumed = Trainer.resumed(chosen, part.checkpoint())
    assert resumed.checkpoint() == part.checkpoint()
    assert same(finished(resumed), whole)


def test_members_of_a_pack_learn_as_they_do_alone() -> None:
    together = finished(Trainer(pack(replace(RUN, steps=12))))
    for run in together.pack.runs:
        alone = finished(Trainer(Pack((run,))))
        pairs = zip(
            alone.model(run.key).parameters(), together.model(run.key).parameters(), strict=True
        )
        # sums of stacked products may be added up in another order
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)


def test_training_is_a_plain_loop() -> None:
    """Losses of every step, read where they are kept: fresh prompts, gradients cut to length 1, and
    rate and decay of each member that follow one schedule.
    """
    # a decay that is felt, and losses steep enough to be cut
    run = replace(RUN, optimiser="adamw", learning_rate=0.05, weight_decay=1.0, steps=12)
    trainer = Trainer(pack(run, 2))
    trainer.advance(11)
    for place, member in enumerate(trainer.pack.runs):
        losses, longest = plain_loop(member, 11)
        assert longest > 1.05
        own = trainer._window[0, :11, place].tolist()
        assert own == pytest.approx(losses, rel=1e-4)
    trainer.advance(1)
    # half of a cosine from 1 to 0.1
    told = [metric.learning_rate for metric in trainer.metrics()]
    assert told == pytest.approx([0.55 * 0.05, 0.55 * 0.025])


def plain_loop(run: Run, steps: int) -> tuple[list[float], float]:
    """Losses of PyTorch's own AdamW, and the longest of the gradients."""
    task = parse_task(run.task)
    model = build(
        Architecture.parse(run.architecture),
        task,
        width=run.width,
        hidden=run.hidden,
        seed=run.seed,
    )
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": run.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    stream = np.random.default_rng([run.seed, 1])
    losses: list[float] = []
    longest = 0.0
    for step in range(steps):
        # ten steps of warm-up, then half a cosine over the two that are left
        factor = (step + 1) / 10 if step < 10 else 1.0
        for group in optimiser.param_groups:
            group["lr"] = run.learning_rate * factor
        batch = task.sample(run.batch, stream)
        logits = model.every(torch.from_numpy(batch.tokens))[:, -1]
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.targets))
        optimiser.zero_grad()
        loss.backward()
        longest = max(longest, float(torch.nn.utils.clip_grad_norm_(parameters, 1.0)))
        optimiser.step()
        losses.append(loss.item())
    return losses, longest


def test_a_checkpoint_belongs_to_its_pack() -> None:
    data = Trainer(pack()).checkpoint()
    with pytest.raises(EvidenceError, match="another training"):
        Trainer.resumed(pack(seeds=4), data)
    turned = bytearray(data)
    turned[-1] ^= 1
    for damaged in (b"", data[:100], data[:-8], b"x" * 100, bytes(turned)):
        with pytest.raises(EvidenceError, match="damaged"):
            Trainer.resumed(pack(), damaged)
