"""Sequences in segments that hand on the state: equal outputs and gradients, whatever the
segments' length.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from separatrix.mixers import mixer
from separatrix.mixers.laws import drawn
from separatrix.mixers.ops import decay as segments
from separatrix.stacks.mechanisms import mechanism

SIZES: dict[str, Any] = {"heads": 2, "head_dim": 4}


@pytest.mark.parametrize("name", ["retnet", "gla", "mamba2", "gdn", "deltaproduct", "kda", "rwkv"])
@pytest.mark.parametrize("numbers", [1, 2 * 2 * 4 * 50])  # segments of one chunk, of three chunks
def test_segments_change_nothing(name: str, numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, Any] = SIZES | ({"state": 4} if name == "mamba2" else {})
    m = drawn(mixer(mechanism(name, **sizes), width=8))
    m.chunk = 16
    x = torch.randn(
        2, 150, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    whole = m(x)
    weight = torch.randn(
        whole.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    inputs = (x, *m.parameters())
    expected = torch.autograd.grad(whole, inputs, weight)
    monkeypatch.setattr(segments, "NUMBERS", numbers)
    parts = m(x)
    torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-12)
    for found, gradient in zip(torch.autograd.grad(parts, inputs, weight), expected, strict=True):
        torch.testing.assert_close(found, gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("tokens", "lengths"), [(12, [12]), (13, [8, 5]), (8, [8]), (3, [3]), (25, [8, 8, 8, 1])]
)
def test_segments_are_whole_chunks(
    tokens: int, lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        segments, "NUMBERS", 11 * 3 * 2
    )  # room for 11 tokens of 2 heads of 3 numbers
    found: list[tuple[int, bool]] = []

    def run(
        x: torch.Tensor, y: torch.Tensor, *, state: torch.Tensor | None, chunk: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert x.shape[2] == y.shape[2]
        found.append((x.shape[2], state is None))
        return x, x[:, :, -1]

    x = torch.randn(1, 2, tokens, 3)
    assert torch.equal(segments.in_segments(run, x, x[..., :1], chunk=4), x)
    assert found == [(length, i == 0) for i, length in enumerate(lengths)]
