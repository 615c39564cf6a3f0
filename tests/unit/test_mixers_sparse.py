"""The sparse family at length: every law on the tiled forms too, what they read under ties and NaN, sizes at their borders, and memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.architecture.mechanisms import mechanism
from separatrix.errors import SizeError
from separatrix.mixers import Mixer, _blocks, _choice, mixer
from separatrix.mixers._choice import largest
from separatrix.mixers.laws import LAWS, close, drawn, gradients, inputs, stream

_SIZES: dict[str, Any] = {"heads": 2, "head_dim": 3, "value_dim": 5}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sparse 4,2 GQA": ("sparse", {"block": 4, "topk": 2, "heads": 4, "kv_heads": 2}),
    "sparse 16,1 rope conv": ("sparse", {"block": 16, "topk": 1, "rope": True, "head_dim": 4, "conv": 3}),
    "sparse 1,3": ("sparse", {"block": 1, "topk": 3}),
    "sparse 32,9": ("sparse", {"block": 32, "topk": 9}),
    "sparse 7,2 window gates": ("sparse", {"block": 7, "topk": 2, "window": 9, "gates": True}),
    "moba 4,2 GQA": ("moba", {"block": 4, "topk": 2, "heads": 4, "kv_heads": 2}),
    "moba 16,1": ("moba", {"block": 16, "topk": 1}),
    "moba 1,3": ("moba", {"block": 1, "topk": 3, "kv_heads": 1}),
    "moba 300,2": ("moba", {"block": 300, "topk": 2}),
}
FORMS = ("step=forward", "chunks", "last", "causal", "stacks", "finite", "NaN")
"""The laws that see the parallel form."""


def made(name: str, **sizes: Any) -> Mixer:
    return drawn(mixer(mechanism(name, **(_SIZES | sizes)), width=6))


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence is short, and parts and tiles are small enough that there are several."""
    monkeypatch.setattr(_choice, "SHORT", 0)
    for module in (_choice, _blocks):
        monkeypatch.setattr(module, "ROOM", 1 << 10)


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("law", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_law_on_the_tiled_form(case: str, law: str) -> None:
    name, sizes = CASES[case]
    LAWS[law](made(name, **sizes))
