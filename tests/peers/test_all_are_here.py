"""`make test-peers` installs every peer: a test that is skipped because one is missing would
compare nothing.
"""

from __future__ import annotations

import importlib.util

import pytest


@pytest.mark.parametrize(
    "peer", ["accelerate", "datasets", "fla", "lm_eval", "ray", "sklearn", "transformers"]
)
def test_is_installed(peer: str) -> None:
    assert importlib.util.find_spec(peer) is not None, (
        "run `make test-peers`, which installs the extra 'peers'"
    )
