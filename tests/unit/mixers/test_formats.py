"""Mixers under autocast."""

from __future__ import annotations

import pytest
import torch

from separatrix.mixers import mixer
from separatrix.stacks.mechanisms import mechanism


@pytest.mark.parametrize("name", ["rwkv", "gdn", "kda", "gla", "mlstm", "full", "sparse"])
def test_autocast(name: str) -> None:
    m = mixer(mechanism(name, heads=2, head_dim=4), width=8)
    m.reset(torch.Generator().manual_seed(0))
    x = torch.randn(1, 70, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = m(x)
    assert y.isfinite().all()
    assert (y - m(x)).abs().max() < 0.2 * m(x).abs().max()
