"""HGRN-2: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ON,
    ONE,
    TOKENS,
    RecurrentHeads,
    made_with,
    options,
    outputs_of,
    sigmoid,
    silu,
    tokens_of,
)


@options
def test_hgrn2(options: dict[str, Any]) -> None:
    # h_t = Diag(f_t) h_{t-1} + (1 - f_t) i_t^T, read by the output gate SiLU(.); f_t = sigmoid(.),
    # the lower bound 0 of a first layer
    layer = RecurrentHeads("hgrn2", options, activated=False)
    o, f, i = layer.qkv()
    o = silu(o)
    f = sigmoid(f)
    y = np.zeros_like(i)
    for h in range(layer.heads):
        state = np.zeros((layer.d, layer.e))
        for t in range(TOKENS):
            state = f[t, h][:, None] * state + np.outer(1 - f[t, h], i[t, h])
            y[t, h] = o[t, h] @ state
    layer.output(y)


def test_hgrn2_keeps_where_f_is_one_and_overwrites_where_it_is_zero() -> None:
    # silu(40) = 40 to within e^-40; the forget gate's logit is coordinate 0, the value coordinate 1
    m = made_with(
        "hgrn2",
        3,
        ONE,
        q__weight=[[0, 0, 1]],
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
        o__weight=[[1], [0], [0]],
    )
    x = tokens_of((-ON, 3, ON), (ON, 5, ON), (ON, 7, ON), (-ON, 11, ON), (0, 1, ON))
    assert outputs_of(m, x) == pytest.approx([40 * y for y in (3, 3, 3, 11, 6)], rel=1e-12)
