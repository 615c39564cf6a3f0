"""When members end, and that the others go on: solved, plateau, budgets, divergence, curriculum."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from unit.training.test_engine import RUN, finished, pack, same

from separatrix.models.stored.run import Run
from separatrix.training.engine import Trainer, Watch
from separatrix.training.packs import Pack
from separatrix.training.step import Loss

EASY = replace(RUN, steps=320, stop_at=0.9, batch=32, width=16)


@pytest.mark.slow
def test_members_end_one_after_another_and_a_checkpoint_knows_it() -> None:
    """The slowest of the learning rates does not learn."""
    rates = (1e-2, 3e-3, 1e-7)
    chosen = Pack(tuple(replace(EASY, learning_rate=rate) for rate in rates))
    whole = finished(Trainer(chosen))
    ends = [whole.outcomes()[key] for key in chosen.keys]
    assert [end.stopped for end in ends] == ["solved", "solved", "steps"]
    assert ends[0].steps_done < ends[1].steps_done < ends[2].steps_done == 320
    assert ends[0].correct > 0.85 * RUN.tested > ends[2].correct
    between = Trainer(chosen)
    between.advance(ends[0].steps_done + 3)
    assert list(between.outcomes()) == [chosen.keys[0]]
    assert same(finished(Trainer.resumed(chosen, between.checkpoint())), whole)


@pytest.mark.slow
def test_a_checkpoint_behind_the_end_of_a_member() -> None:
    """One member learns, and ends when its losses are read for the second time; one does not."""
    run = replace(RUN, stop_at=0.4, batch=32, width=16)
    chosen = Pack((replace(run, learning_rate=1e-9), replace(run, learning_rate=2e-2)))
    whole = finished(Trainer(chosen))
    ends = [whole.outcomes()[key].steps_done for key in chosen.keys]
    assert ends == [45, 40]
    between = Trainer(chosen)
    between.advance(42)
    assert list(between.outcomes()) == [chosen.keys[1]]
    assert same(finished(Trainer.resumed(chosen, between.checkpoint())), whole)


def test_a_member_that_diverges_leaves_the_others_as_they_are() -> None:
    chosen = pack()
    spoilt = Trainer(chosen)
    spoilt.advance(22)
    with torch.no_grad():
        spoilt._models.rows[1] = math.nan
    finished(spoilt)
    untouched = finished(Trainer(chosen))
    end = spoilt.outcomes()[chosen.keys[1]]
    # the 23rd step is the first with a loss that is no number
    assert (end.status, end.stopped, end.steps_done) == ("diverged", "diverged", 23)
    assert (end.correct, end.tested) == (0, 0)
    for key in (chosen.keys[0], chosen.keys[2]):
        pairs = zip(spoilt.model(key).parameters(), untouched.model(key).parameters(), strict=True)
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)
    assert all(math.isfinite(metric.loss) for metric in spoilt.metrics())


def test_a_rate_that_is_far_too_large_diverges() -> None:
    """The weight decay alone multiplies weights by 1 - 10^6 / 100 in each step."""
    wild = replace(RUN, optimiser="adamw", learning_rate=1e6, schedule="constant")
    trainer = finished(Trainer(Pack((wild, replace(wild, learning_rate=1e-3)))))
    first, second = (trainer.outcomes()[key] for key in trainer.pack.keys)
    assert first.status == "diverged"
    assert (second.status, second.steps_done) == ("done", RUN.steps)


def test_seconds_end_training() -> None:
    trainer = finished(Trainer(pack(replace(RUN, steps=10**6, seconds=0.01))))
    ends = trainer.outcomes().values()
    assert {end.stopped for end in ends} == {"seconds"}
    assert sum(end.seconds for end in ends) == pytest.approx(trainer.seconds)


def test_steps_that_take_long_end_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses are read in time, not only where 20 steps are over. Each look takes half a second."""
    ticks = itertools.count()
    monkeypatch.setattr("separatrix.training.engine.time.perf_counter", lambda: next(ticks) / 2)
    trainer = finished(Trainer(pack(replace(RUN, seconds=5.0))))
    assert {end.stopped for end in trainer.outcomes().values()} == {"seconds"}
    # three looks in a step: a second each, and the second one is behind half of the sixth
    assert trainer.step == 6
    assert {metric.step for metric in trainer.metrics()} == {6}


CURRICULUM = replace(RUN, task="eva:n=4,V=8", curriculum=("n=2@10", "n=3@30"), longer=("n=6",))


@pytest.mark.parametrize("places", [(10,), pytest.param((7, 14, 30, 31), marks=pytest.mark.slow)])
def test_a_curriculum_goes_on_bit_for_bit(places: tuple[int, ...]) -> None:
    chosen = pack(CURRICULUM)
    whole = finished(Trainer(chosen))
    # inside of each stage, and at the border of two
    for steps in places:
        part = Trainer(chosen)
        part.advance(steps)
        assert same(finished(Trainer.resumed(chosen, part.checkpoint())), whole)
    assert all(len(end.longer) == 1 for end in whole.outcomes().values())


def test_the_tasks_of_a_curriculum_are_trained_in_their_steps() -> None:
    trainer = Trainer(pack(CURRICULUM))
    lengths = [trainer._streams.next().tokens.shape[-1] for _ in range(45)]
    # eva has n values and a query
    assert lengths == [3] * 10 + [4] * 20 + [5] * 15


def ended(run: Run, losses: list[float], accuracy: float = 0.0) -> list[tuple[str | None, int]]:
    """What a watch says when it is told losses that are the same for 20 steps each."""
    watch = Watch()
    return [
        watch.ended(run, [loss] * 20, [accuracy] * 20, 20 * number)
        for number, loss in enumerate(losses, 1)
    ]


def test_a_plateau_is_steps_without_progress() -> None:
    run = replace(RUN, steps=1000, plateau=60)
    falling = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert ended(run, falling)[-1] == (None, 120)
    flat = ended(run, [1.0, 0.9, 0.9, 0.895, 0.9])
    # 0.895 is lower by less than 1 %; best at step 40, 60 steps later it ends
    assert flat[3:] == [(None, 80), ("plateau", 100)]
    assert ended(replace(run, plateau=0), [1.0] * 9)[-1] == (None, 180)


def test_steps_without_progress_are_counted_on_after_a_checkpoint() -> None:
    """No loss is better than 0, and 50 steps from step 20 on are over when step 80 is read."""
    still = pack(replace(RUN, steps=100, batch=2, plateau=50), seeds=1)
    part = Trainer(still)
    part.advance(21)
    (watch,) = part._watches.values()
    watch.best = 0.0
    assert watch.since == 20
    (end,) = finished(Trainer.resumed(still, part.checkpoint())).outcomes().values()
    assert (end.stopped, end.steps_done) == ("plateau", 80)


def test_weights_that_are_no_numbers_are_seen_without_a_loss() -> None:
    """Those of an id that no prompt of the last steps had."""
    trainer = Trainer(pack(seeds=2))
    trainer.advance(44)
    with torch.no_grad():
        trainer._models.rows[1, 3] = math.inf
    trainer._models.losses = lambda rows, prompts: Loss((rows[:, :1] ** 2).sum(1), rows[:, 0])
    trainer.advance(1)
    first, second = (trainer.outcomes()[key] for key in trainer.pack.keys)
    assert (first.status, second.status, second.steps_done) == ("done", "diverged", 45)
    assert len(trainer.metrics()) == 6


def test_easier_stages_neither_solve_nor_bore() -> None:
    run = replace(RUN, steps=1000, plateau=40, stop_at=0.9, curriculum=("n=2@100",))
    told = ended(run, [0.1] * 9, accuracy=1.0)
    assert [end for end, _ in told[:5]] == [None] * 5
    assert told[5] == ("solved", 120)
    stuck = ended(run, [0.1] * 5 + [1.0] * 4)
    assert [end for end, _ in stuck] == [None] * 7 + ["plateau"] * 2


def test_divergence_has_the_step_of_the_first_loss_that_is_no_number() -> None:
    watch = Watch()
    losses = [1.0] * 20
    assert watch.ended(RUN, losses, losses, 20) == (None, 20)
    losses[3] = math.inf
    losses[9] = math.nan
    assert watch.ended(RUN, losses, losses, 40) == ("diverged", 24)
