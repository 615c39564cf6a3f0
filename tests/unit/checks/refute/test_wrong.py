"""Wrong answers, and how `refute` chooses what to look for."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from separatrix.checks.refute import NotFound, Search, record, refute, wrong, wrong_answer
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import decoded
from separatrix.models.model import Model, ModelConfig, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Batch, Eva, TwoSum
from separatrix.tasks.base.task import Tokens

TASK = Eva(n=8, V=8)


def _constant(n: int, bias: float) -> tuple[Model, TwoSum]:
    """A model that prefers the answer 1 by `bias` whatever the prompt, and 2-Sum, where the
    right answer is 0 half of the time.
    """
    task = TwoSum(n=n, M=3)
    model = Model(_config("full @ heads=1, head_dim=1", length=n + 1, vocabulary=3, width=1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.head.bias[1] = bias
    return model, task


def _config(architecture: str, *, length: int, vocabulary: int, width: int) -> ModelConfig:
    return ModelConfig(
        architecture=architecture,
        vocabulary=vocabulary,
        length=length,
        answers=2,
        width=width,
        hidden=0,
        norm=False,
        bos=False,
    )


class Ones(TwoSum):
    """Are at least n - 2 of n fair bits ones? (2-Sum as a decision lends its sizes.)"""

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(2, size=(batch, self.n))
        return Batch(tokens, self.answer(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return (tokens.sum(1) >= self.n - 2).astype(np.int64)


@pytest.mark.parametrize(
    "spec", ["full", "gdn*2", "full|linear", "sparse(block=4)", "loglinear + window(size=2)"]
)
def test_a_drawn_model_is_wrong_somewhere(spec: str) -> None:
    found = refute(Architecture.parse(f"{spec} @ heads=1, head_dim=4"), TASK, budget=600)
    assert isinstance(found, Certificate)
    assert found.form == "wrong_answer"
    assert found.cache_format is None
    (prompt,), (answer,) = found.inputs, found.answers
    assert answer == prompt[prompt[-1]] != found.output
    assert any("in float32 and token" in sentence for sentence in verify_certificate(found))


def test_small_changes_find_rare_mistakes() -> None:
    """The model reads the mean of 30 bits and says 1 for 30 ones only. It is wrong on 465 of
    2^30 inputs, one in 2,309,068.
    """
    model = Model(_config("full @ heads=1, head_dim=1", length=30, vocabulary=3, width=2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embed.weight[1, 0] = 1.0
        model.get_parameter("blocks.0.mixers.0.v.weight")[0, 0] = 1.0
        model.get_parameter("blocks.0.mixers.0.o.weight")[1, 0] = 1.0
        model.head.weight[1, 1], model.head.bias[1] = 10.0, -9.9
    found = wrong_answer(model, Ones(n=30, M=3, form="decision"), Search(seconds=20, tries=1 << 14))
    assert isinstance(found, Certificate)
    assert sum(found.inputs[0]) in (28, 29)
    assert (found.answers, found.output) == ([1], 0)


def test_a_constant_model() -> None:
    model, task = _constant(6, 1.0)
    found = wrong_answer(model, task, Search(seconds=20))
    assert isinstance(found, Certificate)
    assert (found.answers, found.output) == ([0], 1)
    verify_certificate(found)


def test_thin_margins_are_no_evidence() -> None:
    model, task = _constant(6, 5e-5)
    assert isinstance(wrong_answer(model, task, Search(seconds=5, tries=600)), NotFound)


def test_numbers_that_are_not_finite_are_no_evidence() -> None:
    model, task = _constant(6, float("nan"))
    assert isinstance(wrong_answer(model, task, Search(seconds=5, tries=600)), NotFound)


def test_a_float64_model_travels_as_float64() -> None:
    model = build(Architecture.parse("gdn @ heads=1, head_dim=2"), TASK).double()
    found = wrong_answer(model, TASK, Search(seconds=20))
    assert isinstance(found, Certificate)
    assert {entry["dtype"] for entry in found.weights.values()} == {"float64"}
    assert any("in float64 and token" in sentence for sentence in verify_certificate(found))


def test_a_search_ends_with_its_tries() -> None:
    model, task = _constant(6, 0.0)
    found = wrong_answer(model, task, Search(seconds=20, tries=1000))
    assert isinstance(found, NotFound)
    assert found.tried == 1000


def test_a_large_model_is_tried_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = _constant(6, 0.0)
    monkeypatch.setattr(record, "COST", 1)
    told: list[int] = []
    wrong_answer(
        model, task, Search(seconds=20, tries=3, progress=lambda tried, _: told.append(tried))
    )
    assert list(dict.fromkeys(told)) == [0, 1, 2, 3]


def test_time_ends_while_an_answer_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is past the budget once an answer is decoded."""
    model, task = _constant(6, 1.0)
    now = [1.0]
    monkeypatch.setattr(record, "monotonic", lambda: now[0])

    def late(*args: Any) -> Any:
        now[0] = 99.0
        return decoded(*args)

    monkeypatch.setattr(wrong, "decoded", late)
    found = wrong_answer(model, task, Search(seconds=5, tries=1 << 20))
    assert isinstance(found, NotFound)
    assert found.tried == wrong.BATCH


def test_time_ends_while_a_model_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes at each look at the clock: a model of many layers takes more."""
    monkeypatch.setattr(record, "monotonic", count(1.0).__next__)
    for budget in range(1, 40):
        found = refute(Architecture.parse("full*48"), TASK, budget=budget)
        assert isinstance(found, NotFound)
        assert found.tried == 0
        assert torch.is_grad_enabled()


def test_what_is_looked_for() -> None:
    small = Architecture.parse("gdn @ heads=1, head_dim=2, p3")
    wide = Architecture.parse("gdn @ heads=1, head_dim=2")
    for architecture, cache_format, form in [
        (small, None, "collision"),
        (wide, None, "wrong_answer"),
        (wide, "p2", "collision"),
    ]:
        found = refute(architecture, TASK, cache_format=cache_format, budget=600)
        assert isinstance(found, Certificate)
        assert found.form == form
    found = refute(small, TASK, cache_format="p2:step=2^-1", budget=600)
    assert isinstance(found, Certificate)
    assert found.cache_format == "p2:step=2^-1"


def test_bad_input() -> None:
    gdn = Architecture.parse("gdn @ heads=1, head_dim=2")
    with pytest.raises(UnknownNameError, match="'collision'"):
        refute(gdn, TASK, method="colision")  # type: ignore[arg-type]
    with pytest.raises(SizeError, match="give cache_format"):
        refute(gdn, TASK, method="collision")
    with pytest.raises(SizeError, match="no uniform levels"):
        refute(gdn, TASK, cache_format="bf16")
    with pytest.raises(SpecError, match="unknown number format"):
        refute(gdn, TASK, cache_format="q3")
    with pytest.raises(SpecError, match="is no grid"):
        refute(gdn, TASK, cache_format="p3:step=1")
    with pytest.raises(SizeError, match="1 to 32 bits"):
        refute(gdn, TASK, cache_format="p40")
    for bad in ({"budget": 0.0}, {"budget": float("nan")}, {"tries": 0}):
        with pytest.raises(SizeError, match="both must be positive"):
            refute(gdn, TASK, **bad)  # type: ignore[arg-type]
    with pytest.raises(SizeError, match="no mixer yet"):
        refute(Architecture.parse("rwkv4"), TASK)


def test_answers_are_the_oracles() -> None:
    found = refute(Architecture.parse("full @ heads=1, head_dim=4"), TASK, seed=4)
    assert isinstance(found, Certificate)
    assert TASK.answer(np.array(found.inputs)).tolist() == found.answers


@pytest.mark.parametrize(
    "stack", [f"{x}, heads=1, head_dim=2" for x in ("linear @ p3", "full @ fp32")]
)
@pytest.mark.parametrize("seconds", [2, 6, 20, 60])
def test_a_search_ends_within_a_batch(
    stack: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look at the clock takes a second: the budget and what a batch may take beyond it."""
    now = count(0.0)
    monkeypatch.setattr(record, "monotonic", lambda: next(now))
    small = Architecture.parse(stack)
    found = refute(small, Eva(n=16, V=4), budget=seconds, tries=4096)
    assert isinstance(found, Certificate) or f"within {seconds} s" in str(found)
    assert next(now) < seconds + 20


def test_more_memory_than_given_is_refused_before_a_model_is_drawn() -> None:
    with pytest.raises(SizeError, match="give more memory"):
        refute(Architecture.parse("full*48"), TASK, memory=1 << 20)
    model = build(Architecture.parse("full @ heads=1, head_dim=4"), TASK)
    searches = [Search(memory=1 << power) for power in (10, 20, 22, 40)]
    sizes = [search.at_once(model, TASK.length, 256) for search in searches]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1, 256)
