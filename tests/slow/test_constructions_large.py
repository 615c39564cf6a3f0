"""Eva and SeqComp on random inputs of at least 4,096 tokens, in float32: 10,000 of Eva in ten
seconds; of SeqComp 100, and by hand 10,000, which take three to twenty-five minutes each on one
core (`make test-long`).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Task, parse_task


def errors(task: Task, stack: str | None, inputs: int, *, batch: int, seed: int) -> int:
    """Wrong answers on so many random inputs."""
    assert task.length >= 4096
    model = construct(task, None if stack is None else Architecture.parse(stack)).model
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(inputs // batch):
        tokens, targets = task.sample(batch, rng)
        with torch.inference_mode():
            wrong += int((model(torch.from_numpy(tokens)).argmax(-1).numpy() != targets).sum())
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("stack", [None, "sparse(block=64, topk=1) @ heads=1, head_dim=16"])
def test_eva_on_ten_thousand_random_inputs(stack: str | None) -> None:
    assert errors(parse_task("eva:n=4096,V=4096"), stack, 10_000, batch=10, seed=1) == 0


@pytest.mark.parametrize(
    "inputs",
    [pytest.param(100, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.long)],
)
@pytest.mark.parametrize(
    ("L", "stack"), [(2, None), (3, None), (2, "linear + full*2 @ heads=1, head_dim=16")]
)
def test_seqcomp_on_random_inputs(L: int, stack: str | None, inputs: int) -> None:
    assert errors(SeqComp.of_length(L, 4200), stack, inputs, batch=4, seed=L) == 0
