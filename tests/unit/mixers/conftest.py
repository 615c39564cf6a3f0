"""What several tests of mixers set up."""

from __future__ import annotations

import pytest

from separatrix.mixers.ops import blockwise, softmax


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence is short, and parts and tiles are small enough that there are several."""
    monkeypatch.setattr(blockwise, "SHORT", 0)
    monkeypatch.setattr(blockwise, "DENSE", 0)
    for module in (blockwise, softmax):
        monkeypatch.setattr(module, "ROOM", 1 << 10)
