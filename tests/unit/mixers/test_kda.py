"""Kimi Delta Attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ON,
    ONE,
    PLANAR,
    PLANE,
    SCALARS,
    TOKENS,
    RecurrentHeads,
    made_with,
    options,
    outputs_of,
    sigmoid,
    softplus,
    tokens_of,
    unit,
)


@pytest.mark.parametrize("negative", [False, True])
@options
def test_kda(options: dict[str, Any], negative: bool) -> None:
    # S_i = (I - b k k^T) Diag(a) S_{i-1} + b k v^T, read as S^T q, with S (d, e) as in the paper;
    # b is twice as large with negative eigenvalues
    layer = RecurrentHeads("kda", options, unit_queries=True, negative=negative)
    (q, k, v), b = layer.qkv(), (1 + negative) * sigmoid(layer.map("b"))
    z = layer.map("a.up", layer.map("a.down")).reshape(TOKENS, layer.heads, layer.d)
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"])[:, None] * softplus(z))
    y = np.zeros_like(v)
    for h in range(layer.heads):
        state = np.zeros((layer.d, layer.e))
        for i in range(TOKENS):
            erase = np.eye(layer.d) - b[i, h] * np.outer(k[i, h], k[i, h])
            state = erase @ np.diag(a[i, h]) @ state + b[i, h] * np.outer(k[i, h], v[i, h])
            y[i, h] = state.T @ q[i, h]
    layer.output(y)


def test_kda_with_decay_in_one_dimension_only() -> None:
    # log a = -softplus(z): z = 0 in the first dimension gives a = 1/2, z = -800 in the second a =
    # 1; 3 under (1, 0), then 5 under (0, 1)
    m = made_with(
        "kda", 6, PLANE, a__up__weight={}, a__up__bias=[0.0, -800.0], rate=[0.0], **PLANAR
    )
    x = tokens_of((ON, 1, 0, 1, 1, 3), (ON, 0, 1, 1, 1, 5), *[(ON, 0, 0, 1, 1, 9)] * 3)
    assert outputs_of(m, x) == pytest.approx(
        [y / sqrt(2) for y in (3, 1.5 + 5, 0.75 + 5, 0.375 + 5, 0.1875 + 5)], abs=1e-12
    )


def test_kda_decays_before_it_overwrites() -> None:
    # one dimension, a = 1/2, b = 1/2: 8/2 = 4; then 4/2 = 2 is decayed, 2 + (6 - 2)/2 = 4; decay
    # after it would give (4 + (6 - 4)/2)/2 = 2.5
    m = made_with(
        "kda", 2, ONE, a__up__weight={}, a__up__bias=[0.0], rate=[0.0], b__weight={}, **SCALARS
    )
    assert outputs_of(m, tokens_of((1, 8), (1, 6))) == pytest.approx([4, 4], abs=1e-12)
