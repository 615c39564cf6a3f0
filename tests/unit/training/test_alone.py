"""Training of one model: it learns what can be learned, and its runs repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.each import each

from separatrix.core.errors import EngineError, SizeError, SpecError, UnknownNameError
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
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


def test_texts_and_settings_are_a_run() -> None:
    by_words = train(RUN.architecture, parse_task(RUN.task), steps=2, batch=8, tested=16)
    assert (
        by_words.run
        == replace(
            Run(architecture=RUN.architecture, task=RUN.task, seed=0), steps=2, batch=8, tested=16
        ).canonical()
    )
    assert train(by_words.run).outcome.correct == by_words.outcome.correct


def test_a_run_says_all_of_it() -> None:
    with pytest.raises(SpecError):
        train("full")
    with pytest.raises(SpecError):
        train(RUN, "eva:n=4,V=4")
    with pytest.raises(UnknownNameError, match="stepz"):
        train("full", "eva:n=4,V=4", stepz=2)
    with pytest.raises(SpecError):
        train("full", "eva:n=4,V=4", architecture="gdn")
    with pytest.raises(EngineError, match="no device 'gpu'"):
        train(RUN, device="gpu")


@each("change", [{"steps": 0}, {"batch": 0}, {"seed": -1}, {"tested": True}, {"width": 0}])
def test_bad_runs(change: dict[str, int]) -> None:
    with pytest.raises(SizeError, match=next(iter(change))):
        replace(RUN, **change)
