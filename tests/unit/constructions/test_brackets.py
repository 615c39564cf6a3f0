"""Nested brackets by a counter, a stack and a flag: every prompt in every format and either form,
what the checker refuses, and what the stack needs.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from support.each import each
from support.task_cases.dyck import balanced

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.models.model import Model
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.brackets import hard
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Dyck

SIZES = [(2, 1, 1), (8, 1, 2), (8, 1, 9), (6, 2, 1), (6, 2, 2), (6, 2, 3), (4, 3, 2)]
FORMATS = [torch.float32, torch.bfloat16, torch.float16]
MIXED = (
    "linear(feature=relu, normaliser=false, heads=2) + full"
    " + gdn(heads=4, key_heads=2, head_dim=8) + gdn|window"
)


@cache
def made(n: int, k: int, D: int, spec: str = "") -> Built:
    return construct(Dyck(n=n, k=k, D=D), Architecture.parse(spec) if spec else None)


def answers(model: Model, tokens: np.ndarray) -> list[int]:
    with torch.inference_mode():
        return model(torch.from_numpy(tokens)).argmax(-1).tolist()


def step_by_step(model: Model, tokens: np.ndarray) -> list[int]:
    with torch.inference_mode():
        return model._streamed(torch.from_numpy(tokens))[:, -1].argmax(-1).tolist()


def in_format(built: Built, dtype: torch.dtype) -> Model:
    model = Model(built.model.config)
    model.load_state_dict(built.model.state_dict())
    return model.to(dtype)


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in FORMATS[1:])],
)
@pytest.mark.parametrize("size", SIZES)
def test_every_prompt_is_answered_in_either_form(
    size: tuple[int, int, int], dtype: torch.dtype
) -> None:
    built = made(*size)
    task = built.task
    assert isinstance(task, Dyck)
    prompts = np.array(list(itertools.product(range(2 * task.k), repeat=task.n)))
    right = [balanced(task, prompt) for prompt in prompts.tolist()]
    model = in_format(built, dtype)
    assert answers(model, prompts) == right
    assert step_by_step(model, prompts) == right


@pytest.mark.parametrize(
    ("spec", "dtype"),
    [
        ("", torch.float32),
        pytest.param("", torch.bfloat16, marks=pytest.mark.slow),
        pytest.param(MIXED, torch.float32, marks=pytest.mark.slow),
    ],
)
def test_longer_prompts_than_a_chunk_are_answered(spec: str, dtype: torch.dtype) -> None:
    """Balanced ones and ones with a fault each, 96 tokens in chunks of 64."""
    built = made(96, 3, 7, spec)
    task = Dyck(n=96, k=3, D=7)
    rng = np.random.default_rng(0)
    prompts = np.concatenate([task.sample(12, rng).tokens, hard(task, rng)])
    right = [balanced(task, prompt) for prompt in prompts.tolist()]
    assert 5 < sum(right) < len(right) - 5
    model = in_format(built, dtype)
    assert answers(model, prompts) == right
    assert step_by_step(model, prompts) == right


def test_far_too_deep_in_half_formats_stays_wrong() -> None:
    """A count beyond what bf16 (256) and fp16 (2048) hold is wrong long before it is rounded."""
    built = made(5000, 1, 3)
    deep = np.repeat([[0, 1]], 2500, axis=1)
    there = np.sort(deep, axis=1)
    flat = np.tile([[0, 1]], 2500)
    for dtype in FORMATS:
        assert answers(in_format(built, dtype), np.concatenate([there, flat])) == [0, 1]


@pytest.mark.parametrize("head", [0, 1])
def test_a_rate_that_overflows_is_refused(head: int) -> None:
    """e^100 is infinite in float32: infinity times the 0 of a saturated gate is no number, of a
    head that is not used, too.
    """
    spec = "linear(feature=identity, normaliser=false) + gdn*2 @ heads=2, head_dim=2"
    model = in_format(made(4, 2, 2, spec), torch.float32).requires_grad_(False)
    mixer = model.get_submodule("blocks.1.mixers.0")
    mixer.get_parameter("a.bias")[head] = -128.0
    mixer.get_parameter("rate")[head] = 100.0
    assert bool(model(torch.zeros(1, 4, dtype=torch.int64)).isnan().all())
    with pytest.raises(CheckFailed, match=r"a rate e\^100 may overflow"):
        DERIVATIONS["brackets"].derive(Dyck(n=4, k=2, D=2), model)


@pytest.mark.parametrize(
    ("n", "formats"),
    [(62, "float32, bfloat16 and float16"), (66, "float32 and float16"), (514, "float32")],
)
def test_formats_that_hold_every_count_are_named(n: int, formats: str) -> None:
    """4 (n - 1) is the largest sum of a hat: up to 2^8 in bf16, 2^11 in fp16."""
    said = f"every input that it asks, in {formats}, token by token"
    assert said in made(n, 2, 3).record.statement
    narrow = "linear + deltanet*2 @ feature=identity, normaliser=false, positions=none, bf16"
    task = Dyck(n=n, k=2, D=3)
    if n == 62:
        assert construct(task, Architecture.parse(narrow)).record.architecture.endswith("none")
    else:
        with pytest.raises(SizeError, match="formats that hold integers"):
            construct(task, Architecture.parse(narrow))


@each(
    "spec, said",
    [
        ("deltanet*3", "it needs a linear layer"),
        ("linear*3 @ feature=identity, normaliser=false", "deltanet or gdn layer"),
        ("linear + deltanet*2", "no normaliser"),
        ("deltanet*2 + linear @ feature=identity, normaliser=false", "it needs a linear layer"),
        (
            "linear|deltanet + deltanet @ feature=identity, normaliser=false",
            "behind it",
        ),
        (
            "linear + deltanet*2 @ feature=identity, normaliser=false, conv=4",
            "without conv or gate",
        ),
        ("linear + deltanet*2 @ feature=identity, normaliser=false, head_dim=2", "head_dim >= 3"),
        ("linear + deltanet*2 @ feature=identity, normaliser=false, value_dim=1", "value_dim >= 2"),
        ("linear + deltanet*2 @ feature=identity, normaliser=false, bf16", "integers up to 392"),
    ],
)
def test_stacks_without_room_are_told_what_is_needed(spec: str, said: str) -> None:
    with pytest.raises(SizeError, match=said):
        construct(Dyck(n=96, k=4, D=3), Architecture.parse(spec))
