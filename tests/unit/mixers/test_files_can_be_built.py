"""Recurrent layers of released models: what a config.json or a preset says can be built and run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.each import each
from support.hf_recurrent_configs import RECURRENT

from separatrix.core.numbers.bits import sum_bits
from separatrix.mixers import mixer, state_numbers
from separatrix.mixers.laws import drawn, inputs
from separatrix.mixers.laws.tools import stream
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.resolve import preset

FAMILIES = (
    "mamba",
    "falcon_mamba",
    "jamba",
    "mamba2",
    "rwkv6",
    "samba",
    "kda",
    "log_linear_mamba2",
)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_a_small_file_of_the_family(family: str) -> None:
    file: dict[str, Any] = RECURRENT[family] | {"attn": None}
    parts = {p for layer in from_config(file) for p in layer if p.group == "recurrent"}
    assert parts
    for part in parts:
        m = drawn(mixer(part, width=file["hidden_size"]))
        y, state = stream(m, inputs(m, 1, 5))
        assert y.isfinite().all()
        declared = sum_bits(item.bits for item in part.cache(5)).numbers
        assert state_numbers(state) == declared


@each(
    "name, width",
    [
        ("mamba-2.8b", 2560),
        ("falcon-mamba-7b", 4096),
        ("jamba-v0.1", 4096),
        ("codestral-mamba-7b", 4096),
    ],
)
def test_a_preset(name: str, width: int) -> None:
    """Shapes alone: on the meta device no weight takes memory."""
    architecture = preset(name)
    with torch.device("meta"):
        for part in {p for layer in architecture for p in layer if p.group == "recurrent"}:
            m = mixer(part, width=width)
            numbers = sum_bits(item.bits for item in part.cache(9)).numbers
            assert numbers == sum(torch.Size(s).numel() for s in m.shapes(9).values())
