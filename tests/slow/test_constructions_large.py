"""SeqComp on 10,000 random inputs of at least 4,096 tokens, in float32. About ten minutes each on one core."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.tasks import SeqComp


@pytest.mark.slow
@pytest.mark.parametrize("L", [2, 3])
def test_seqcomp_on_ten_thousand_random_inputs(L: int) -> None:
    task, rng, wrong = SeqComp.of_length(L, 4200), np.random.default_rng(L), 0
    assert task.length >= 4096
    model = construct(task).model
    for _ in range(2500):
        batch = task.sample(4, rng)
        with torch.inference_mode():
            wrong += int((model(torch.from_numpy(batch.tokens)).argmax(-1).numpy() != batch.targets).sum())
    assert wrong == 0
