"""Constructions answer every input of some larger sizes, in every stack they fit, in the
parallel form and token by token.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.models.model import Model
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, SeqComp, Task, TwoSum, parse_task
from separatrix.tasks.base.task import Tokens


def every_input(task: Task) -> Tokens:
    """All prompts of a task, written down from its definition (theory.md, section 2)."""
    match task:
        case Eva():
            ranges = [task.V] * task.n + [task.n]
        case SeqComp():
            sizes = [
                task.m * int(np.prod(task.branching[:level])) for level in range(task.L)
            ]  # N_0, ..., N_{L-1}
            ranges = [size for size in reversed(sizes) for _ in range(size)] + [
                task.m,
                int(np.prod(task.branching)),
            ]
        case TwoSum():
            ranges = [task.M] * (task.n + 1)
        case _:
            raise AssertionError(task)
    return np.array(list(itertools.product(*map(range, ranges))), np.int64)


@torch.inference_mode()
def answered(model: Model, tokens: Tokens) -> Tokens:
    return model(torch.from_numpy(tokens)).argmax(-1).numpy()


LARGER = [
    "eva:n=2,V=33",
    "eva:n=6,V=4",
    "seqcomp:L=1,m=5",
    "seqcomp:L=3,m=2,n_1=1,n_2=2",
    "seqcomp:L=4,m=2,n_1=1,n_2=1,n_3=1",
    "twosum:n=4,M=4",
    "twosum:n=4,M=5",
]
"""Beyond the sizes of the tests of each construction."""


@pytest.mark.slow
@pytest.mark.parametrize("text", LARGER)
def test_every_input_is_answered_right(text: str) -> None:
    task = parse_task(text)
    built = construct(task)
    tokens = every_input(task)
    assert built.model.config.norm is False
    assert {tensor.dtype for tensor in built.model.state_dict().values()} == {torch.float32}
    assert (answered(built.model, tokens) == task.answer(tokens)).all()


@pytest.mark.parametrize(
    ("stack", "text"),
    [
        ("linear*3 + full @ heads=1, head_dim=8", "eva:n=4,V=4"),
        ("full + gdn @ heads=1, head_dim=8", "eva:n=4,V=4"),
        ("full*3 @ heads=4, head_dim=3", "eva:n=4,V=4"),
        ("full(kv_heads=1) @ heads=2, head_dim=8", "eva:n=4,V=4"),
        ("window + full(value_dim=2) + mlp + loglinear @ head_dim=3", "eva:n=4,V=4"),
        ("full|linear @ heads=2, head_dim=8", "eva:n=4,V=4"),
        ("gdn|full + sparse @ heads=2, head_dim=8", "eva:n=4,V=4"),
        ("linear*3 + full @ heads=1, head_dim=8", "twosum:n=3,M=5"),
        ("full + gdn + linear @ heads=2, head_dim=3", "twosum:n=3,M=4"),
        ("linear|full @ heads=1, head_dim=4", "twosum:n=3,M=6"),
        ("full*5 @ heads=2, head_dim=4", "seqcomp:L=2,m=2,n_1=2"),
        ("full + gdn + full + linear + full @ heads=1, head_dim=4", "seqcomp:L=2,m=2,n_1=2"),
        ("full|window + full*2 @ heads=1, head_dim=4", "seqcomp:L=2,m=2,n_1=1"),
    ],
)
def test_layers_that_are_not_used_add_nothing(stack: str, text: str) -> None:
    task = parse_task(text)
    architecture = Architecture.parse(stack)
    built = construct(task, architecture)
    tokens = every_input(task)
    assert built.record.architecture == architecture.spec == built.model.config.architecture
    assert (answered(built.model, tokens) == task.answer(tokens)).all()


@pytest.mark.parametrize(
    "text",
    ["eva:n=5,V=4", "seqcomp:L=2,m=3,n_1=2", "seqcomp:L=3,m=2,n_1=2,n_2=2", "twosum:n=9,M=12"],
)
def test_token_by_token_gives_the_same_answers(text: str) -> None:
    task = parse_task(text)
    model = construct(task).model
    batch = task.sample(256, np.random.default_rng(5))
    tokens = torch.from_numpy(batch.tokens)
    cache = model.init_cache(256)
    logits = torch.empty(0)
    with torch.inference_mode():
        for t in range(task.length):
            logits, cache = model.step(tokens[:, t], cache, t)
        assert torch.equal(model.every(tokens)[:, -1].argmax(-1), logits.argmax(-1))
    assert (logits.argmax(-1).numpy() == batch.targets).all()


def test_the_answers_do_not_come_from_the_sampler() -> None:
    """A broken weight is noticed: without its last address bit, the head answers some input
    wrongly.
    """
    task = Eva(n=4, V=4)
    model = construct(task).model
    tokens = every_input(task)
    position = model.position.weight
    varies = [c for c in range(position.shape[1]) if len(position[: task.n, c].unique()) > 1]
    assert len(varies) == 2  # ceil(log2 4) address bits
    position[:, varies[-1]] = 0.0
    assert (answered(model, tokens) != task.answer(tokens)).any()
