"""The record of a run's seeds: nothing is left out, and nothing of another run gets in."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.outcomes import singly

from separatrix.checks.verify.measurement import verify_measurement
from separatrix.core.errors import CheckFailed, EvidenceError, SizeError, SpecError
from separatrix.core.evidence.outcome import FormatOutcome, Outcome
from separatrix.core.evidence.records import from_envelope
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.models.model import parameter_count, trained_config
from separatrix.models.stored.accuracy import prompt_stream
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.alone import measurement
from separatrix.training.stream import TRAINING

RUN = Run(
    architecture="full @ heads=1, head_dim=4",
    task="parity:n=8",
    seed=0,
    steps=60,
    batch=16,
    width=8,
    hidden=0,
    curriculum=("n=4@30",),
    longer=("n=12", "n=16"),
    tested=200,
    plateau=20,
)
PARAMETERS = (3 + 17) * 8 + 4 * 4 * 8 + 3 * 8 + (8 + 1) * 2
"""By hand: embeddings of 3 tokens and of 17 places, as many as the longest size needs, four maps of
4 x 8, three norms, a head of 2 answers.
"""


def outcome(seed: int, **changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "seed": seed,
        "correct": 120,
        "tested": 200,
        "longer": (110, 100),
        "steps_done": 60,
        "parameters": PARAMETERS,
    }
    return singly(**values | changes)


DIVERGED = outcome(
    2, status="diverged", stopped="diverged", correct=0, tested=0, longer=(0, 0), steps_done=7
)
SEEDS = [outcome(0), outcome(1, stopped="solved", steps_done=55, correct=200), DIVERGED]
COUNTED = outcome(
    0,
    right=750,
    due=800,
    bits=0.1,
    bits_squares=0.07,
    longer_right=(700, 600),
    longer_due=(800, 900),
    formats=(FormatOutcome(format="bf16", correct=119, right=740, due=800, bits=0.2),),
)
"""Where four answers are due in each prompt of the task."""


def test_the_record_holds_every_seed() -> None:
    record = measurement(replace(RUN, seed=99), SEEDS)
    assert record.seeds == (0, 1, 2)
    assert record.correct == (120, 200, 0)
    assert Fraction(record.chance) == Fraction(1, 2)
    assert record.intervals == tuple(wilson(count, 200) for count in (120, 200, 0))
    # one of three: a seed that diverged has not solved the task, and counts
    assert record.solved == 1
    budget = record.budget
    assert budget["stopped"] == ["steps", "solved", "diverged"]
    assert budget["steps_done"] == [60, 55, 7]
    assert budget["parameters"] == PARAMETERS
    own = RUN.canonical().to_json()
    assert {name: budget[name] for name in own if name in budget} == {
        name: value for name, value in own.items() if name not in ("architecture", "task", "seed")
    }
    assert [one["task"] for one in record.longer] == ["parity:n=12", "parity:n=16"]
    assert [one["correct"] for one in record.longer] == [[110, 110, 0], [100, 100, 0]]
    assert record.longer[1]["intervals"] == [list(wilson(n, 200)) for n in (100, 100, 0)]
    said = verify_measurement(record)
    assert any("1 of 3 seeds diverged" in one for one in said)
    assert from_envelope(json.loads(json.dumps(record.envelope()))) == record


def test_test_prompts_that_were_trained_on() -> None:
    """256 prompts of 8 bits; the task itself was drawn in 25 steps at least, after 30 of n = 4."""
    record = measurement(RUN, SEEDS)
    # at most 256/(2 * 401) = 0.319... of the tests are new
    assert record.repeats.startswith("parity:n=8 ")
    assert re.findall(r" (\d[\d.]*)", record.repeats) == ["256", "400", "68.0"]
    assert record.repeats in verify_measurement(record)
    # after 2^8/2 prompts it cannot be said of half of them any more
    fewer = replace(RUN, batch=5)
    assert measurement(fewer, SEEDS).repeats == ""
    assert (
        measurement(
            replace(RUN, task="parity:n=60", longer=(), curriculum=()),
            [singly(one, longer=()) for one in SEEDS],
        ).repeats
        == ""
    )


SEVERAL = replace(
    RUN,
    architecture="gdn @ heads=1, head_dim=4",
    task="mqar:input_seq_len=16,num_kv_pairs=2,vocab_size=8",
    curriculum=(),
    longer=("input_seq_len=24",),
    formats=("bf16",),
)
"""Two answers are due in each of its 200 prompts."""


def answered(**changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "seed": 0,
        "correct": 90,
        "tested": 200,
        "right": 250,
        "due": 400,
        "bits": 1.5,
        "bits_squares": 3.0,
        "longer": (80,),
        "longer_right": (240,),
        "longer_due": (400,),
        "formats": (FormatOutcome(format="bf16", correct=89, right=249, due=400, bits=1.6),),
        "steps_done": 60,
        "parameters": parameter_count(
            trained_config(
                SEVERAL.stack.spec, SEVERAL.trained, width=8, hidden=0, length=SEVERAL.length
            )
        ),
    }
    return Outcome(**values | changes)


GONE = answered(
    seed=1,
    status="diverged",
    stopped="diverged",
    steps_done=7,
    formats=(),
    **dict.fromkeys(("correct", "tested", "right", "due"), 0),
    **dict.fromkeys(("bits", "bits_squares"), 0.0),
    **dict.fromkeys(("longer", "longer_right", "longer_due"), (0,)),
)


def test_the_record_holds_single_answers_where_several_are_due() -> None:
    record = measurement(SEVERAL, [answered(), GONE])
    verify_measurement(record)
    assert record.correct == (90, 0)
    own, longer, rounded = record.answers
    assert own["right"] == [250, 0]
    assert own["bits"] == [1.5, 0]
    # five of eight, 125 of 200 prompts
    assert own["intervals"] == [list(wilson(125, 200)), list(wilson(0, 200))]
    assert (longer["task"], longer["right"]) == (
        parse_task("mqar:input_seq_len=24,num_kv_pairs=2,vocab_size=8").spec,
        [240, 0],
    )
    assert (rounded["format"], rounded["correct"], rounded["right"]) == ("bf16", [89, 0], [249, 0])
    assert from_envelope(json.loads(json.dumps(record.envelope()))) == record
    # one answer a prompt: the counts say it all
    assert measurement(RUN, [outcome(0)]).answers == ()


@each(
    "place, change",
    [
        (0, {"right": [401, 0]}),
        (0, {"right": [250]}),
        (0, {"right": [True, 0]}),
        (0, {"right": [251, 0]}),
        # 110 prompts are not right as a whole: as many answers are wrong at least
        (0, {"right": [291, 0]}),
        (0, {"due": [200 * 17, 0]}),
        (0, {"due": [400, 400]}),
        (0, {"bits": [0.3, 0.0]}),
        (0, {"bits": [-1.0, 0.0]}),
        (0, {"bits": [1, 0]}),
        (0, {"bits_squares": [[], 0.0]}),
        (0, {"intervals": [["0.1", "0.2"], ["0.1", "0.2"]]}),
        (0, {"task": "mqar:input_seq_len=24,num_kv_pairs=2,vocab_size=8"}),
        (0, {"format": "bf16"}),
        (0, {"more": 1}),
        (1, {"bits": [1.5, 0.0]}),
        (1, {"right": [0, 1]}),
        (2, {"format": "fp16"}),
        (2, {"correct": [201, 0]}),
        (2, {"correct": [0]}),
        (2, {"bits": [math.inf, 0.0]}),
    ],
)
def test_what_is_said_of_answers(place: int, change: dict[str, Any]) -> None:
    record = measurement(SEVERAL, [answered(), GONE])
    entry = record.answers[place] | change
    if "right" in change and len(entry["right"]) == 2 and change != {"right": [251, 0]}:
        pairs = zip(entry["right"], entry["due"], strict=True)
        entry["intervals"] = [list(wilson_of_answers(min(pair), pair[1], 200)) for pair in pairs]
    answers = (*record.answers[:place], entry, *record.answers[place + 1 :])
    with pytest.raises(EvidenceError):
        verify_measurement(replace(record, answers=answers))
    for fewer in (record.answers[:2], ()):
        with pytest.raises(EvidenceError, match=r"none of this run|lack"):
            verify_measurement(replace(record, answers=fewer))


@each(
    "change",
    [
        {"right": 401},
        {"longer_right": ()},
        {"longer_due": (239,)},
        {"formats": ()},
        {"formats": (FormatOutcome(format="fp16", correct=0, right=0, due=400, bits=1.0),)},
        {"formats": (FormatOutcome(format="bf16", correct=201, right=0, due=400, bits=1.0),)},
    ],
)
def test_an_outcome_with_answers_of_another_run(change: dict[str, Any]) -> None:
    with pytest.raises(SizeError, match="seed 0 is none"):
        measurement(SEVERAL, [answered(**change)])


def test_a_seed_counts_once() -> None:
    with pytest.raises(SizeError, match="each seed once"):
        measurement(RUN, [SEEDS[0], SEEDS[0]])
    with pytest.raises(SizeError, match="at least one"):
        measurement(RUN, [])


@each(
    "change",
    [
        {"tested": 100},
        {"correct": 201},
        {"correct": -1},
        {"longer": (110,)},
        {"longer": (110, 201)},
        {"steps_done": 61},
        {"steps_done": 0},
        {"parameters": PARAMETERS + 1},
        {"stopped": "diverged"},
        {"status": "diverged"},
    ],
)
def test_an_outcome_of_another_run(change: dict[str, Any]) -> None:
    with pytest.raises(SizeError, match="seed 1 is none"):
        measurement(RUN, [outcome(0), outcome(1, **change)])


def test_what_no_weights_can_have_at_longer_sizes() -> None:
    """64 bits are carried: 16 numbers of 16 values fit, 64 of them do not."""
    run = Run(
        architecture="linear @ heads=1, head_dim=1",
        task="eva:n=16,V=64",
        longer=("n=64",),
        seed=0,
        tested=512,
    )
    good = singly(seed=0, correct=200, tested=512, longer=(60,), steps_done=1000, parameters=1)
    measurement(run, [good])
    with pytest.raises(CheckFailed, match="eva:n=64,V=64"):
        measurement(run, [singly(good, longer=(400,))])


def test_an_outcome_comes_back_from_json() -> None:
    for one in [*SEEDS, COUNTED]:
        assert Outcome.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_an_outcome_without_a_field_is_none() -> None:
    for name in (data := COUNTED.to_json()):
        with pytest.raises(SpecError, match="fields seed, status"):
            Outcome.from_json({key: value for key, value in data.items() if key != name})


def test_a_hostile_format() -> None:
    data = COUNTED.to_json()
    (good,) = data["formats"]
    bad = [{"format": "fp8"}, {"format": []}, {"correct": -1}, {"right": True}, {"due": 1.5}]
    for change in (*bad, {"bits": math.nan}, {"bits": -1.0}, {"bits": "1"}, {"more": 1}):
        with pytest.raises(SpecError, match="another type or range"):
            Outcome.from_json(data | {"formats": [good | change]})
    with pytest.raises(SpecError, match="another type or range"):
        Outcome.from_json(data | {"formats": [{"format": "bf16"}]})


@each("name", [*COUNTED.to_json()])
def test_a_hostile_outcome(name: str) -> None:
    data = COUNTED.to_json()
    fits = {
        "seed": (2**63,),
        "correct": (0, 5),
        "tested": (0, 5),
        "longer": ([],),
        "right": (0, 5),
        "due": (0, 5),
        "bits": (0, 5, 1e300),
        "bits_squares": (0, 5, 1e300),
        "longer_right": ([],),
        "longer_due": ([],),
        "formats": ([],),
        "steps_done": (0, 5),
        "parameters": (0, 5),
        "seconds": (0, 5, 1e300),
    }
    others = ("status", "stopped", "longer", "longer_right", "longer_due", "formats")
    values = (
        None,
        True,
        -1,
        0,
        5,
        2**63,
        1e300,
        -0.5,
        math.nan,
        math.inf,
        "",
        "done",
        [],
        [[]],
        {},
    )
    for value in values:
        if type(value) is int and value >= 0 and name not in others:
            assert Outcome.from_json(data | {name: value})
        elif not any(value == one for one in fits.get(name, ())) and value != data[name]:
            with pytest.raises(SpecError, match="an outcome"):
                Outcome.from_json(data | {name: value})
    with pytest.raises(SpecError, match="fields seed, status"):
        Outcome.from_json({key: value for key, value in data.items() if key != name})
    with pytest.raises(SpecError, match="fields seed, status"):
        Outcome.from_json(data | {"more": 1})
    with pytest.raises(SpecError, match="another type or range"):
        Outcome.from_json(data | {"seconds": 10**400})


def test_tests_are_drawn_from_streams_of_their_own() -> None:
    """The streams that docs/evidence.md names; of 2^60 prompts none is drawn twice."""
    task = parse_task("parity:n=60")
    ours = [prompt_stream(7, longer) for longer in (0, 1, 2)]
    named = [np.random.default_rng(entropy) for entropy in ([7, 2], [7, 2, 1], [7, 2, 2])]
    for one, other in zip(ours, named, strict=True):
        assert one.bit_generator.state == other.bit_generator.state
    assert TRAINING == 1
    streams = [np.random.default_rng([7, TRAINING]), *ours]
    drawn = [{row.tobytes() for row in task.sample(1000, rng).tokens} for rng in streams]
    assert len(set.union(*drawn)) == 4 * 1000
