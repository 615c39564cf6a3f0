"""Two runs of tokens: prompts by hand, states that stand still far before Theorem P's bound, what a
checker refuses, and bad input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from separatrix.checks.refute import NotFound, Search, refute, two_runs
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.cli.report.evidence import certificate_parts
from separatrix.constructions import construct
from separatrix.core.document.terminal import shown
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.model import Model, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Parity, Task, parse_task
from separatrix.tasks.base.layout import in_runs
from separatrix.theory.fails.p_parity import TheoremP

SIZES = "heads=1, head_dim=4, positions=none, state_format=bf16"


def drawn(spec: str, task: Task, seed: int = 0) -> Model:
    return build(Architecture.parse(spec), task, width=8, seed=seed, exact_state=True)


def counting_ones() -> Model:
    """A linear layer that adds up ones, and a readout that is right for parity of up to 3 bits:
    the logits of 1 and 0 are a hat over the count.
    """
    task = Parity(n=3)
    spec = "linear(feature=identity, normaliser=false) @ heads=1, head_dim=1, positions=none"
    model = Model(replace(build(Architecture.parse(spec), task, width=3).config, norm=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embed.weight[:, 0] = 1.0
        model.embed.weight[1, 1] = 1.0
        block = model._blocks()[0]
        for name in ("q", "k"):
            block.mixers[0].get_parameter(f"{name}.weight")[0, 0] = 1.0
        block.mixers[0].get_parameter("v.weight")[0, 1] = 1.0
        block.mixers[0].get_parameter("o.weight")[2, 0] = 1.0
        assert block.mlp is not None
        for unit, factor in enumerate((1.0, -2.0, 2.0)):
            block.mlp.up.weight[unit, 2] = 1.0
            block.mlp.up.bias[unit] = -float(unit)
            # after the stack coordinate 1 is the bit, plus 1 for odd counts
            block.mlp.down.weight[1, unit] = factor
        # the bit itself goes out again
        block.mlp.up.weight[3, 1] = 1.0
        block.mlp.down.weight[1, 3] = -1.0
        model.head.weight[1, 1] = 2.0
        model.head.bias[0] = 1.0
    return model


def test_a_model_that_is_right_is_not_refuted() -> None:
    model = counting_ones()
    prompts = torch.tensor([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    with torch.inference_mode():
        assert model(prompts).argmax(-1).tolist() == [0, 1, 1, 0, 1, 0, 0, 1]
    found = two_runs(model, Parity(n=3), Search())
    assert isinstance(found, NotFound)
    # ones that end after 0, 1, 2 tokens, and zeros likewise
    assert found.tried == 6
    assert "proves nothing" in str(found)


@pytest.mark.parametrize("task", ["parity:n=12", "group:n=8,G=C3"])
def test_what_is_proved_is_not_refuted(task: str) -> None:
    asked = parse_task(task)
    found = two_runs(construct(asked).model, asked, Search())
    assert isinstance(found, NotFound)
    assert found.tried == 2 * asked.length


@pytest.mark.parametrize(
    "task", ["parity:n=48", pytest.param("group:n=48,G=C3", marks=pytest.mark.slow)]
)
def test_states_stand_still_far_before_the_bound(task: str) -> None:
    asked = parse_task(task)
    model = drawn(f"gla @ {SIZES}", asked)
    verdict = TheoremP().judge(model.architecture, asked)
    assert verdict is not None
    assert verdict.n == 2 * verdict.numbers["T"] + 1 > 2**17
    with torch.no_grad():
        gate = model._blocks()[0].mixers[0].get_submodule("a")
        gate.get_parameter("up.weight").zero_()
        # a = sigmoid(-8)^(1/16) = 0.61, and 0.61^23 < 2^-16
        gate.get_parameter("up.bias").fill_(-8.0)
    found = two_runs(model, asked, Search())
    assert isinstance(found, Certificate)
    assert found.details["equal_state"] is True
    assert found.details["first"] == "1 x 24, 0 x 24"
    assert found.details["second"] == "1 x 25, 0 x 23"
    assert found.answers == asked.answer(torch.tensor(found.inputs).numpy()).tolist()
    assert "one state behind" in " ".join(verify_certificate(found))
    said = "\n".join(line.text for line in shown(certificate_parts(found), 200))
    assert "1 x 25, 0 x 23" in said
    assert "the same state" in said


@pytest.mark.parametrize(
    "task",
    [
        "parity:n=12",
        "counting:n=12,V=2",
        "modular:n=12,m=3",
        "permutation:n=12,k=3",
    ],
)
@pytest.mark.parametrize(
    "spec", ["full", pytest.param("linear + window(size=4)", marks=pytest.mark.slow)]
)
def test_drawn_models_answer_two_runs_alike(spec: str, task: str) -> None:
    asked = parse_task(task)
    found = refute(drawn(f"{spec} @ heads=1, head_dim=4", asked), asked)
    assert isinstance(found, Certificate)
    assert found.form == "two_runs"
    first, second = found.inputs
    assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
    assert found.answers[0] != found.answers[1]
    assert verify_certificate(found)


def test_prompts_in_runs() -> None:
    assert in_runs([1] * 37 + [0] * 1063) == "1 x 37, 0 x 1,063"
    assert in_runs([]) == ""
    assert in_runs([0, 1] * 10).endswith("0 x 1, ... 9 runs ..., 0 x 1, 1 x 1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: {"details": found.details | {"equal_state": True}}, "equal_state is False"),
        (lambda found: {"details": found.details | {"first": "1 x 5, 0 x 7"}}, "first is 1 x 6"),
        (lambda found: {"details": {}}, "missing or unknown"),
        (lambda found: {"output": 1 - found.output}, "the certificate says"),
        (lambda found: {"cache_format": "p4:step=2^-1"}, "without the cache format"),
        (lambda found: {"inputs": [found.inputs[0]] * 2}, "the right answers are"),
        (lambda found: {"inputs": found.inputs[:1]}, "has 2 inputs"),
    ],
)
def test_forged_certificates_are_refused(
    change: Callable[[Certificate], dict[str, Any]], said: str
) -> None:
    task = Parity(n=12)
    found = two_runs(drawn("gdn @ heads=1, head_dim=4", task), task, Search())
    assert isinstance(found, Certificate)
    with pytest.raises(EvidenceError, match=said):
        verify_certificate(replace(found, **change(found)))


def test_bad_input() -> None:
    task = Parity(n=12)
    model = drawn("gdn @ heads=1, head_dim=4", task)
    other = parse_task("istree:n=64")
    with pytest.raises(SizeError, match="two prompts"):
        two_runs(drawn("gdn @ heads=1, head_dim=4", other), other, Search())
    with pytest.raises(SizeError, match="does not fit"):
        two_runs(model, Parity(n=13), Search())
    with pytest.raises(SizeError, match="both must be positive"):
        two_runs(model, task, Search(seconds=0))
    with torch.no_grad():
        model.head.bias.fill_(float("nan"))
    assert isinstance(two_runs(model, task, Search(tries=4)), NotFound)
