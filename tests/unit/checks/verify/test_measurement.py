"""Measurements are checked number by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.each import each
from support.outcomes import singly

from separatrix.checks.verify.measurement import NOT_RUN, verify_measurement
from separatrix.core.errors import EvidenceError, SeparatrixError, SizeError, SpecError
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement, enveloped, from_envelope
from separatrix.core.numbers.wilson import wilson
from separatrix.models.stored.run import Run
from separatrix.training.alone import measurement

RUN = Run(
    architecture="full @ heads=1, head_dim=4",
    task="parity:n=8",
    seed=0,
    steps=60,
    batch=16,
    width=8,
    hidden=0,
    curriculum=("n=4@30",),
    longer=("n=16",),
    tested=200,
    plateau=40,
)
PARAMETERS = (3 + 17) * 8 + 4 * 4 * 8 + 3 * 8 + (8 + 1) * 2
"""By hand, as in the tests of records."""


def test_a_file_that_says_that_nothing_is_there_says_so_in_one_way() -> None:
    run = replace(RUN, task="eva:n=8,V=8", curriculum=(), longer=())
    one = singly(seed=0, correct=20, tested=200, steps_done=60, parameters=376)
    record = measurement(run, [one])
    assert verify_measurement(record)[-1] == NOT_RUN
    body = record.body() | {"longer": [], "answers": []}
    with pytest.raises(EvidenceError, match="answers, longer"):
        from_envelope(enveloped(record.kind, body))


def made(solved_after: int = 50) -> Measurement:
    one = singly(
        seed=0, correct=120, tested=200, longer=(99,), steps_done=60, parameters=PARAMETERS
    )
    two = singly(one, seed=1, stopped="solved", steps_done=solved_after, correct=200)
    gone = singly(
        one,
        seed=2,
        status="diverged",
        stopped="diverged",
        correct=0,
        tested=0,
        longer=(0,),
        steps_done=9,
    )
    return measurement(RUN, [one, two, gone])


def test_a_record_under_the_rule_of_stopping_holds() -> None:
    run = replace(RUN, plateau=0, warmup=5, rule="study")
    one = singly(
        seed=0, correct=120, tested=200, longer=(99,), steps_done=60, parameters=PARAMETERS
    )
    with pytest.raises(SizeError, match="none of this"):
        measurement(run, [one])
    record = measurement(run, [replace(one, rule="study")])
    assert verify_measurement(record)
    for name, value in (("stop_at", 0.99), ("plateau", 10), ("seconds", 9.0)):
        with pytest.raises(EvidenceError, match="not kept"):
            verify_measurement(replace(record, budget=record.budget | {name: value}))


def test_what_an_outcome_says_of_its_rule() -> None:
    own = singly(seed=0, correct=1, tested=2, steps_done=3, parameters=4)
    assert "rule" not in own.to_json()
    held = replace(own, rule="study")
    assert Outcome.from_json(held.to_json()) == held
    for rule in ("none", 1, None):
        with pytest.raises(SpecError, match="an outcome"):
            Outcome.from_json(own.to_json() | {"rule": rule})


def changed(**entries: Any) -> Measurement:
    record = made()
    return replace(record, budget=record.budget | entries)


@each(
    "name, value",
    [
        ("optimiser", "AdamW"),
        ("optimiser", ["muon"]),
        ("schedule", "cosin"),
        ("precision", None),
        ("precision", {}),
        ("warmup", 0),
        ("warmup", 61),
        ("warmup", True),
        ("rule", "study"),
        ("rule", "own"),
        ("rule", ["study"]),
        ("plateau", -1),
        ("plateau", True),
        ("seconds", -1),
        ("seconds", "0"),
        ("seconds", True),
        ("curriculum", "n=4@30"),
        ("curriculum", ["n=4@030"]),
        ("curriculum", ["n=4@60"]),
        ("curriculum", [["n=4@30"]]),
        ("curriculum", ["n=32@30"]),
        ("curriculum", ["n=4@30"] * 65),
        ("curriculum", ["eva:n=4@30"]),
        ("longer", []),
        ("longer", ["n=17"]),
        ("longer", [" n=16"]),
        ("longer", ["n=16", "n=16"]),
        ("longer", None),
        ("longer", [16]),
        ("stopped", ["steps", "solved"]),
        ("stopped", "steps"),
        ("stopped", ["steps", "solved", "steps"]),
        ("stopped", ["steps", "steps", "diverged"]),
        ("stopped", ["steps", "seconds", "diverged"]),
        ("stopped", ["diverged", "solved", "diverged"]),
        ("stopped", ["steps", [], "diverged"]),
        ("stopped", ["done", "solved", "diverged"]),
        ("stop_at", 1.5),
        ("steps_done", [60, 49, 9]),
        ("steps_done", [59, 50, 9]),
        ("batch", 15),
        ("parameters", PARAMETERS - 8),
    ],
)
def test_a_budget_that_contradicts_itself(name: str, value: Any) -> None:
    verify_measurement(made())
    with pytest.raises(SeparatrixError) as found:
        verify_measurement(changed(**{name: value}))
    assert "\n" not in str(found.value)


def test_solved_takes_a_window_after_the_last_stage() -> None:
    """The stage ends at 30, a running accuracy is of 20 steps."""
    verify_measurement(made(50))
    with pytest.raises(EvidenceError, match="'solved' after 49"):
        verify_measurement(made(49))


def test_other_ends_that_a_budget_allows() -> None:
    verify_measurement(changed(stopped=["steps", "plateau", "diverged"]))
    verify_measurement(changed(seconds=1.5, stopped=["steps", "seconds", "diverged"]))
    with pytest.raises(EvidenceError, match="'plateau'"):
        verify_measurement(changed(plateau=51, stopped=["steps", "plateau", "diverged"]))


@each(
    "change",
    [
        {"task": "parity:n=17"},
        {"chance": "1/3"},
        {"correct": [99, 99, 1]},
        {"correct": [99, 99]},
        {"correct": [99, 201, 0]},
        {"correct": [99, 99.0, 0]},
        {"correct": "999"},
        {"intervals": []},
        {"intervals": [list(wilson(99, 200))] * 3},
        {"intervals": None},
        {"more": 1},
    ],
)
def test_what_is_said_of_longer_sizes(change: dict[str, Any]) -> None:
    record = made()
    (said,) = record.longer
    with pytest.raises(EvidenceError):
        verify_measurement(replace(record, longer=(said | change,)))
    with pytest.raises(EvidenceError, match="lack"):
        verify_measurement(replace(record, longer=({},)))
    with pytest.raises(EvidenceError, match="2 longer sizes"):
        verify_measurement(replace(record, longer=(said, said)))


def test_a_seed_that_diverged_answered_nothing() -> None:
    record = made()
    for right in (1, 200):
        correct = (*record.correct[:2], right)
        intervals = tuple(wilson(count, 200) for count in correct)
        with pytest.raises(EvidenceError, match="diverged"):
            verify_measurement(replace(record, correct=correct, intervals=intervals))


def test_the_sentence_on_prompts_drawn_twice_follows_from_the_budget() -> None:
    record = made()
    assert "on average" in record.repeats
    for other in ("", record.repeats + "!", record.repeats.replace("256", "257")):
        with pytest.raises(EvidenceError, match="repeats"):
            verify_measurement(replace(record, repeats=other))


def with_count(count: int) -> Measurement:
    """A record of 64 bits of memory that is said to know 64 facts of 64 values."""
    run = Run(
        architecture="linear @ heads=1, head_dim=1",
        task="eva:n=16,V=64",
        longer=("n=64",),
        seed=0,
        tested=512,
    )
    parameters = (65 + 66) * 32 + 4 * 32 + 3 * 32 + (64 * 32 + 64) + (32 * 64 + 32) + 64 * 33
    fair = singly(
        seed=0, correct=200, tested=512, longer=(60,), steps_done=1000, parameters=parameters
    )
    record = measurement(run, [fair])
    (said,) = record.longer
    said = said | {"correct": [count], "intervals": [list(wilson(count, 512))]}
    return replace(record, longer=(said,))


def test_theorem_a_at_longer_sizes() -> None:
    assert any("on eva:n=64,V=64 that" in said for said in verify_measurement(with_count(60)))
    with pytest.raises(EvidenceError, match="no weights"):
        verify_measurement(with_count(400))


@each(
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
def test_a_false_measurement_is_refused(change: dict[str, Any]) -> None:
    parameters = (5 + 6) * 32 + 4 * 256 * 32 + 3 * 32 + (64 * 32 + 64) + (32 * 64 + 32) + 4 * 32 + 4
    one = singly(seed=0, correct=1000, steps_done=1000, parameters=parameters)
    record = measurement(Run(architecture="full", task="eva:n=4,V=4", seed=0), [one])
    verify_measurement(record)
    with pytest.raises(EvidenceError):
        verify_measurement(replace(record, **change))


def test_a_seed_that_solved_is_right_in_its_test() -> None:
    """Training ends at 0.995; a test may fall short of it by a tenth, and by chance."""
    record = made()
    for right, holds in ((200, True), (178, True), (150, False), (3, False)):
        correct = (120, right, 0)
        told = replace(record, correct=correct, intervals=tuple(wilson(c, 200) for c in correct))
        if holds:
            verify_measurement(told)
            continue
        with pytest.raises(EvidenceError, match=r"seed 1 .* 'solved'.* contradict"):
            verify_measurement(told)
