"""Training of one model: it learns what can be learned, and its runs repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.models.stored.run import Run
from separatrix.training.alone import train

RUN = Run(
    architecture="full*2 @ heads=1, head_dim=16",
    optimiser="adamw",
    task="eva:n=4,V=4",
    seed=0,
    steps=300,
    batch=64,
    width=16,
    hidden=32,
    tested=512,
)


@pytest.mark.slow
def test_a_solver_learns_and_the_run_repeats() -> None:
    first = train(RUN)
    second = train(RUN)
    assert first.outcome.correct >= 500
    assert (first.outcome.correct, first.outcome.steps_done) == (
        second.outcome.correct,
        second.outcome.steps_done,
    )
    assert all(
        (a == b).all()
        for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True)
    )


def test_progress_is_told_and_the_end_is_early() -> None:
    told: list[tuple[int, int]] = []
    trained = train(RUN, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (trained.outcome.steps_done, 300)
    assert trained.outcome.steps_done < 300


@each("change", [{"steps": 0}, {"batch": 0}, {"seed": -1}, {"tested": True}, {"width": 0}])
def test_bad_runs(change: dict[str, int]) -> None:
    with pytest.raises(SizeError, match=next(iter(change))):
        replace(RUN, **change)
