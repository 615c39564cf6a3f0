"""Gated DeltaProduct: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ON,
    ONE,
    PLANE,
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


@options
@pytest.mark.parametrize(("householders", "negative"), [(2, True), (3, False)])
def test_deltaproduct(options: dict[str, Any], householders: int, negative: bool) -> None:
    # S_i = S_{i-1} A_i + B_i, A_i = a_i H_1 ... H_n and B_i = sum_j b_j v_j k_j^T H_{j+1} ... H_n,
    # H_j = I - b_j k_j k_j^T
    layer = RecurrentHeads(
        "deltaproduct", options, householders=householders, negative=negative, unit_queries=True
    )
    n = householders
    heads = layer.heads
    parts = [layer.map(name) for name in "qkv"]
    mixed = layer.convolved(np.concatenate(parts, 1), activated=True)
    q, k, v = np.split(mixed, np.cumsum([p.shape[1] for p in parts[:2]]), 1)
    q = unit(layer.apart(q, layer.d))
    keys = [unit(layer.apart(x, layer.d)) for x in np.split(k, n, 1)]
    values = [layer.apart(x, layer.e) for x in np.split(v, n, 1)]
    b = [sigmoid(x) * (2 if negative else 1) for x in np.split(layer.map("b"), n, 1)]
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros((TOKENS, heads, layer.e))
    for h in range(heads):
        state = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            reflections = [
                np.eye(layer.d) - b[j][i, h] * np.outer(keys[j][i, h], keys[j][i, h])
                for j in range(n)
            ]
            added = np.zeros_like(state)
            for j in range(n):
                new = b[j][i, h] * np.outer(values[j][i, h], keys[j][i, h])
                added = added + np.linalg.multi_dot([new, *reflections[j + 1 :], np.eye(layer.d)])
            state = state @ np.linalg.multi_dot([a[i, h] * np.eye(layer.d), *reflections]) + added
            y[i, h] = state @ q[i, h]
    layer.output(y)


@pytest.mark.parametrize("degrees", [30, 45, 72])
@pytest.mark.parametrize("name", ["first", "second"])
def test_deltaproduct_of_two_reflections_is_a_rotation(name: str, degrees: float) -> None:
    # reflections along keys at angles 0 and t, in this order, turn by 2 t: angle f goes to pi - f,
    # then to 2 t + pi - (pi - f) = f + 2 t
    query, wanted = ((1, 0), cos) if name == "first" else ((0, 1), sin)
    # coordinates: b of both updates, keys of both, query, value of the first; width 9
    m = made_with(
        "deltaproduct",
        9,
        PLANE | {"householders": 2},
        b__weight={(0, 0): 1, (1, 1): 1},
        k__weight={(i, 2 + i): 1 for i in range(4)},
        q__weight={(0, 6): 1, (1, 7): 1},
        v__weight={(0, 8): 1},
        o__weight={(0, 0): 1},
        a__weight={},
        a__bias=[-800.0],
        rate=[0.0],
    )
    t = degrees * pi / 180
    write = (0, -ON, 1, 0, 1, 0, *query, 1)
    turn = (ON, ON, 1, 0, cos(t), sin(t), *query, 0)
    wanted_outputs = [wanted(2 * t * n) for n in range(8)]
    assert outputs_of(m, tokens_of(write, *[turn] * 7)) == pytest.approx(wanted_outputs, abs=1e-12)


def test_deltaproduct_applies_its_updates_in_order_and_decays_once() -> None:
    # a = 1/2, b = 1 in both: the second update under one key replaces what the first wrote: 3, then
    # 5; with no key, 5 halves per token
    m = made_with(
        "deltaproduct",
        5,
        ONE | {"householders": 2, "negative": False},
        b__weight={(0, 0): 1, (1, 0): 1},
        k__weight={(0, 1): 1, (1, 2): 1},
        q__weight={(0, 0): 1},
        v__weight={(0, 3): 1, (1, 4): 1},
        o__weight={(0, 0): 1},
        a__weight={},
        a__bias=[0.0],
        rate=[0.0],
    )
    x = tokens_of((ON, 1, 1, 3, 5), (ON, 0, 0, 7, 7), (ON, 0, 0, 7, 7), (ON, 1, 0, 2, 7))
    assert outputs_of(m, x) == pytest.approx([5, 2.5, 1.25, 2], abs=1e-12)
