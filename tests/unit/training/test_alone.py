"""Training of one model: it learns what can be learned, its records are honest, its runs repeat."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from separatrix.checks.measurement import verify_measurement
from separatrix.errors import EvidenceError, SizeError
from separatrix.training.alone import train
from separatrix.training.record import Outcome, measurement
from separatrix.training.run import Run

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


def test_a_solver_learns_and_the_run_repeats() -> None:
    first = train(RUN)
    second = train(RUN)
    assert first.correct >= 500
    assert (first.correct, first.steps_done) == (second.correct, second.steps_done)
    assert all(
        (a == b).all()
        for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True)
    )


def test_progress_is_told_and_the_end_is_early() -> None:
    told: list[tuple[int, int]] = []
    trained = train(RUN, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (trained.steps_done, 300)
    assert trained.steps_done < 300


@pytest.mark.parametrize(
    "change", [{"steps": 0}, {"batch": 0}, {"seed": -1}, {"tested": True}, {"width": 0}]
)
def test_bad_runs(change: dict[str, int]) -> None:
    with pytest.raises(SizeError, match=next(iter(change))):
        replace(RUN, **change)


PARAMETERS = (5 + 6) * 32 + 4 * 256 * 32 + 3 * 32 + (64 * 32 + 64) + (32 * 64 + 32) + 4 * 32 + 4
"""Of full attention on eva, n = V = 4, 32 wide, by hand: embeddings of 5 tokens and 6 places, the
maps of 4 heads of 64, three norms, an MLP of 64 hidden units, a head of 4 answers.
"""


def test_the_record_of_two_seeds() -> None:
    outcomes = [
        Outcome(seed=0, correct=1000, steps_done=50, parameters=PARAMETERS),
        Outcome(seed=1, correct=900, steps_done=60, parameters=PARAMETERS),
    ]
    record = measurement("full", "eva:n=4,V=4", {"steps": 60}, outcomes)
    assert Fraction(record.chance) == Fraction(1, 4)
    for correct, (low, high) in zip((1000, 900), record.intervals, strict=True):
        assert float(low) < correct / 2048 < float(high)
    assert verify_measurement(record)


def test_a_seed_counts_once() -> None:
    one = Outcome(seed=0, correct=1, steps_done=1, parameters=1)
    with pytest.raises(SizeError, match="each seed once"):
        measurement("full", "eva:n=4", {}, [one, one])
    with pytest.raises(SizeError, match="at least one"):
        measurement("full", "eva:n=4", {}, [])


@pytest.mark.parametrize(
    "change",
    [
        {"correct": (2049,)},
        {"correct": (999,)},
        {"total": 2047},
        {"chance": "1/5"},
        {"intervals": (("0.1", "0.2"),)},
        {"intervals": ()},
        {"confidence": "0.99"},
        {"seeds": (0, 1)},
        {"task": "eva:n=4"},
        {"architecture": "full*1"},
        {"budget": {}},
    ],
)
def test_a_false_measurement_is_refused(change) -> None:
    record = measurement(
        "full",
        "eva:n=4,V=4",
        {},
        [Outcome(seed=0, correct=1000, steps_done=5, parameters=PARAMETERS)],
    )
    verify_measurement(record)
    with pytest.raises(EvidenceError):
        verify_measurement(replace(record, **change))
