"""What several tests of mixers set up."""

from __future__ import annotations

import pytest

from separatrix.mixers.ops import block_choice, block_tiles


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence is short, and parts and tiles are small enough that there are several."""
    monkeypatch.setattr(block_choice, "SHORT", 0)
    monkeypatch.setattr(block_choice, "DENSE", 0)
    for module in (block_choice, block_tiles):
        monkeypatch.setattr(module, "ROOM", 1 << 10)
