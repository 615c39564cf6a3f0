"""Eva and SeqComp on 10,000 random inputs of at least 4,096 tokens, in float32: ten seconds for Eva, ten minutes each for SeqComp on one core."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.architecture import Architecture
from separatrix.constructions import construct
from separatrix.tasks import SeqComp, Task, parse_task

INPUTS = 10_000


def errors(task: Task, stack: str | None, *, batch: int, seed: int) -> int:
    """Wrong answers on `INPUTS` random inputs."""
    assert task.length >= 4096
    model, rng, wrong = construct(task, None if stack is None else Architecture.parse(stack)).model, np.random.default_rng(seed), 0
    for _ in range(INPUTS // batch):
        tokens, targets = task.sample(batch, rng)
        with torch.inference_mode():
            wrong += int((model(torch.from_numpy(tokens)).argmax(-1).numpy() != targets).sum())
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("stack", [None, "sparse(block=64, topk=1) @ heads=1, head_dim=16"])
def test_eva_on_ten_thousand_random_inputs(stack: str | None) -> None:
    assert errors(parse_task("eva:n=4096,V=4096"), stack, batch=10, seed=1) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("L", "stack"), [(2, None), (3, None), (2, "linear + full*2 @ heads=1, head_dim=16")])
def test_seqcomp_on_ten_thousand_random_inputs(L: int, stack: str | None) -> None:
    assert errors(SeqComp.of_length(L, 4200), stack, batch=4, seed=L) == 0
