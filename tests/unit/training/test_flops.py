"""Operations counted from declared sizes, against PyTorch's count of built models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from separatrix.models.model import Model, ModelConfig
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.flops import forward_flops

RUN = Run(
    architecture="full*2 @ heads=2, head_dim=16",
    task="mqar:vocab_size=16,input_seq_len=32,num_kv_pairs=4",
    seed=0,
    width=32,
    hidden=48,
)
TOKENS = 33
"""The start token is one of them."""


def built(run: Run) -> Model:
    task = parse_task(run.task)
    config = ModelConfig(
        architecture=run.architecture,
        vocabulary=task.vocabulary,
        length=run.length,
        answers=task.answers,
        width=run.width,
        hidden=run.hidden,
        norm=True,
        bos=True,
    )
    return Model(config).reset(torch.Generator().manual_seed(0))


def counted(run: Run) -> tuple[int, int]:
    """PyTorch's count of a forward pass over one prompt, and ours."""
    model = built(run)
    tokens, _ = parse_task(run.task).sample(1, np.random.default_rng(0))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.every(torch.from_numpy(tokens))
    parameters = sum(p.numel() for p in model.parameters())
    return counter.get_total_flops(), forward_flops(run, parameters)


def test_by_hand() -> None:
    """Maps of 32 x 32, scores and sums of values of t tokens, MLPs of 48, 8 answers."""
    _, ours = counted(RUN)
    maps = 2 * (4 * 32 * 32) * 2 * TOKENS
    mixing = 2 * sum(4 * 2 * 16 * t for t in range(1, TOKENS + 1))
    mlp = 2 * (2 * 32 * 48) * 2 * TOKENS
    assert ours == maps + mixing + mlp + 32 * 8 * 2 * 32


@pytest.mark.parametrize(
    ("spec", "heads"),
    [
        ("full*2 @ heads=2, head_dim=16", 2 * 2),
        ("full*3 @ heads=4, kv_heads=2, head_dim=16", 3 * 4),
        # a convolution is a sum of shifted products, which PyTorch does not count
        ("full @ heads=2, head_dim=16, conv=4", 2),
    ],
)
@pytest.mark.parametrize("change", [{}, {"hidden": 0}, {"task": "eva:n=24,V=30", "width": 16}])
def test_where_pytorch_counts_everything(spec: str, heads: int, change: dict[str, Any]) -> None:
    """It counts all T^2 scores of explicit attention, of which T(T - 1)/2 are masked."""
    run = replace(RUN, architecture=spec, **change)
    theirs, ours = counted(run)
    tokens = run.length + 1
    masked = 4 * heads * 16 * (tokens * (tokens - 1) // 2)
    convolved = 2 * 4 * (3 * 32) * tokens if "conv" in spec else 0
    assert theirs == ours + masked - convolved


@pytest.mark.parametrize(
    "spec",
    [
        "linear @ heads=2, head_dim=16",
        "full(heads=1, head_dim=16) + linear(heads=1, head_dim=16)",
        "gdn @ heads=2, head_dim=16",
        "mamba2 @ heads=2, head_dim=16, state=16",
        "shortconv(width=32)",
        "window(size=8) @ heads=2, head_dim=8",
        "rglru(width=32)",
        "sparse(block=4, topk=1) @ heads=1, head_dim=8",
        "loglinear @ heads=2, head_dim=8",
        "deltanet @ heads=2, head_dim=8",
        "mla @ heads=2, head_dim=16, latent=8",
    ],
)
def test_other_mechanisms_come_near(spec: str) -> None:
    """Recurrences are declared token by token, and computed in chunks with more operations."""
    theirs, ours = counted(replace(RUN, architecture=spec))
    assert 0.5 < ours / theirs < 1.2
