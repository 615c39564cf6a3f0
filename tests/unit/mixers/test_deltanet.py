"""DeltaNet: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ON,
    PLANAR,
    PLANE,
    TOKENS,
    RecurrentHeads,
    made_with,
    options,
    outputs_of,
    sigmoid,
    tokens_of,
    unit,
)


@options
@pytest.mark.parametrize("negative", [False, True])
def test_deltanet(options: dict[str, Any], negative: bool) -> None:
    # fast weight programmers, eqs. 23-24: what the key now finds is replaced by a mix of it and of
    # the new value
    layer = RecurrentHeads("deltanet", options, negative=negative, unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b")) * (2 if negative else 1)
    q = unit(q)
    k = unit(k)
    y = np.zeros_like(v)
    for h in range(layer.heads):
        fast = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            found = fast @ k[i, h]
            mix = b[i, h] * v[i, h] + (1 - b[i, h]) * found
            fast = fast + np.outer(mix, k[i, h]) - np.outer(found, k[i, h])
            y[i, h] = fast @ q[i, h]
    layer.output(y)


@pytest.mark.parametrize(
    ("query", "reflected", "back"), [((1, 0), 0.28, 1.0), ((0, 1), -0.96, 0.0)]
)
def test_deltanet_two_identical_reflections_undo_each_other(
    query: tuple[float, float], reflected: float, back: float
) -> None:
    # b = 2 sigmoid(0) = 1 writes (1, 0); b = 2 with key (3, 4)/5 and value 0 reflects: (1, 0) - 2
    # (3/5) (3, 4)/5 = (0.28, -0.96); and back
    m = made_with("deltanet", 6, PLANE | {"negative": True}, **PLANAR)
    x = tokens_of(
        (0, 1, 0, *query, 1), (ON, 3, 4, *query, 0), (ON, 3, 4, *query, 0), (ON, -6, -8, *query, 0)
    )
    assert outputs_of(m, x) == pytest.approx([query[0], reflected, back, reflected], abs=1e-12)
