"""Shapes are checked while testing: jaxtyping with beartype on every module that holds tensors."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest

pytest_plugins = (
    "support.printed_audits",
)  # from here, since conftest files of folders are not read where tests run in several processes

jaxtyping.install_import_hook(
    ["separatrix.laws", "separatrix.mixers", "separatrix.model", "separatrix.plugins"],
    "beartype.beartype",
)


@pytest.fixture
def nan_memory() -> Iterator[None]:
    """Fills `torch.empty` with NaN, so that unwritten outputs cannot hide."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)
