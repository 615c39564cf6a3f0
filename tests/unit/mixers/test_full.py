"""Full attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mixers import TOKENS, Heads, softmax


@pytest.mark.parametrize("sizes", [{}, {"kv_heads": 2}, {"kv_heads": 1}])
def test_full(sizes: dict[str, Any]) -> None:
    Heads("full", sizes).check(
        lambda h, q, k, v: np.stack(
            [softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(TOKENS)]
        )
    )
