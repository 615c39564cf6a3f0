"""Collisions of caches, from the search to the independent check."""

from __future__ import annotations

import dataclasses
import json
from functools import cache

import numpy as np
import pytest
from support.each import each

from separatrix.checks.refute import NotFound, Search, collide, refute
from separatrix.checks.refute.collide import separating
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.core.errors import SizeError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Certificate, from_envelope
from separatrix.models.caches import Grid
from separatrix.models.model import Model, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, SeqComp, Task, TwoSum, parse_task

EVERY = [
    "linear",
    pytest.param("linear(normaliser=false)", marks=pytest.mark.slow),
    pytest.param("linear(feature=relu)", marks=pytest.mark.slow),
    "gdn",
    "window(size=3)",
    "loglinear",
    pytest.param("gdn*2", marks=pytest.mark.slow),
    "linear + window(size=2)",
    "gdn|loglinear",
]
TASKS = [
    pytest.param("eva:n=8,V=8", marks=pytest.mark.slow),
    pytest.param("eva:n=16,V=4", marks=pytest.mark.slow),
    "seqcomp:L=2,m=4,n_1=2",
    pytest.param("seqcomp:L=3,m=2,n_1=2,n_2=1", marks=pytest.mark.slow),
    pytest.param("twosum:n=8,M=16", marks=pytest.mark.slow),
    pytest.param("twosum:n=8,M=16,form=decision", marks=pytest.mark.slow),
]


@cache
def _found(spec: str, task: str = "eva:n=8,V=8", *, bits: int = 3, seed: int = 0) -> Certificate:
    found = refute(
        Architecture.parse(f"{spec} @ heads=1, head_dim=2, p{bits}"),
        parse_task(task),
        budget=600,
        seed=seed,
    )
    assert isinstance(found, Certificate), str(found)
    record = from_envelope(json.loads(canonical(found.envelope())))
    assert isinstance(record, Certificate)
    return record


@pytest.mark.parametrize("spec", EVERY)
@pytest.mark.slow
def test_every_bounded_mechanism_collides(spec: str) -> None:
    record = _found(spec)
    assert record.form == "collision"
    said = verify_certificate(record)
    assert any("the same cache" in sentence for sentence in said)
    first, second = record.inputs
    x = first[-1]
    assert second[-1] == x
    assert record.answers == [first[x], second[x]]
    assert first[x] != second[x]


@pytest.mark.parametrize("task", TASKS)
def test_every_task(task: str) -> None:
    record = _found("gdn", task)
    verify_certificate(record)
    assert parse_task(task).answer(np.array(record.inputs)).tolist() == record.answers
    assert record.answers[0] != record.answers[1]


def test_with_a_start_token() -> None:
    task = Eva(n=8, V=8)
    drawn = build(Architecture.parse("linear @ heads=1, head_dim=2, p3"), task, width=4)
    model = Model(dataclasses.replace(drawn.config, bos=True))
    wanted = model.state_dict()
    model.load_state_dict(
        {name: tensor[: len(wanted[name])] for name, tensor in drawn.state_dict().items()}
    )
    found = refute(model, task, budget=600)
    assert isinstance(found, Certificate)
    assert found.model["bos"] is True
    verify_certificate(found)


@pytest.mark.slow
def test_declared_bits_are_those_of_theorem_one() -> None:
    """18 = (2*2 numbers of S + 2 of Z) * 3 bits; 8 tokens of log-linear attention and a start
    token fill 4 slots of 4 numbers.
    """
    assert _found("linear").details["cache_bits"] == 18
    assert _found("gdn", bits=2).details["cache_bits"] == 8
    assert _found("window(size=3)").details["cache_bits"] == 3 * 4 * 3
    assert _found("loglinear").details["cache_bits"] == 4 * 4 * 3


@pytest.mark.slow
def test_one_seed_gives_one_certificate() -> None:
    assert _found("gdn", seed=3).digest == _found.__wrapped__("gdn", seed=3).digest
    assert _found("gdn", seed=3).digest != _found("gdn").digest


def test_the_model_given_is_not_changed() -> None:
    task = Eva(n=8, V=8)
    model = build(Architecture.parse("gdn @ heads=1, head_dim=2"), task)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    refute(model, task, cache_format="p2", budget=600)
    assert all(
        tensor.dtype == before[name].dtype and tensor.equal(before[name])
        for name, tensor in model.state_dict().items()
    )
    assert model.training


def test_nothing_found_is_said_to_prove_nothing() -> None:
    found = refute(
        Architecture.parse("linear @ heads=2, head_dim=8, p16"),
        Eva(n=16, V=16),
        budget=600,
        tries=100,
    )
    assert isinstance(found, NotFound)
    assert found.tried == 100
    assert found.space == "16^16 classes of prefixes"
    assert "proves nothing" in str(found)


def test_progress_is_told_and_never_overshoots() -> None:
    told: list[tuple[int, int]] = []
    refute(
        Architecture.parse("linear @ heads=2, head_dim=8, p16"),
        Eva(n=8, V=8),
        budget=600,
        tries=700,
        progress=lambda done, most: told.append((done, most)),
    )
    assert told[-1] == (700, 700)
    assert told == sorted(told)


def test_a_search_can_be_interrupted() -> None:
    def stop(done: int, most: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refute(Architecture.parse("gdn @ heads=1, head_dim=8, p16"), Eva(n=8, V=8), progress=stop)


@pytest.mark.parametrize(
    "spec", ["full", "sparse", pytest.param("gdn|full", marks=pytest.mark.slow)]
)
def test_reading_layers_have_no_equal_caches(spec: str) -> None:
    task = Eva(n=8, V=8)
    architecture = Architecture.parse(f"{spec} @ heads=1, head_dim=2, p3")
    with pytest.raises(SizeError, match=r"layer [12] of .* keeps"):
        refute(architecture, task, method="collision")
    found = refute(architecture, task, budget=600)
    assert isinstance(found, Certificate)
    assert found.form == "wrong_answer"


def test_a_model_of_another_task_is_refused() -> None:
    model = build(Architecture.parse("gdn @ heads=1, head_dim=2, p3"), Eva(n=8, V=8))
    for task in (Eva(n=8, V=9), Eva(n=7, V=7), TwoSum(n=8, M=8)):
        with pytest.raises(SizeError, match="does not fit"):
            refute(model, task)
        with pytest.raises(SizeError, match="does not fit"):
            collide(model, task, Grid(3, 0), Search())


@each(
    "task, first, second, equivalent",
    [
        (Eva(n=4, V=4), [0, 1, 2, 3], [0, 1, 3, 3], False),
        (TwoSum(n=4, M=9), [1, 2, 2, 1], [2, 1, 1, 1], True),
        (TwoSum(n=4, M=9), [1, 2, 2, 1], [2, 1, 1, 3], False),
        (TwoSum(n=4, M=9, form="decision"), [1, 2, 2], [2, 1, 1], True),
        (TwoSum(n=4, M=9, form="decision"), [1, 8, 2], [2, 7, 1], True),
        (SeqComp(L=2, m=2, branching=(1,)), [0, 1], [1, 1], False),
    ],
)
def test_separating_continuations(
    task: Task, first: list[int], second: list[int], equivalent: bool
) -> None:
    found = list(separating(task, np.array(first), np.array(second), np.random.default_rng(0)))
    assert bool(found) is not equivalent
    for ending, one, other in found:
        assert task.answer(np.array([[*first, *ending], [*second, *ending]])).tolist() == [
            one,
            other,
        ]
        assert one != other
