"""Gated linear attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ONE,
    TOKENS,
    RecurrentHeads,
    made_with,
    options,
    outputs_of,
    sigmoid,
    tokens_of,
    with_weights,
)


@options
def test_gla(options: dict[str, Any]) -> None:
    # the paper's parallel form, (Q * B) (K / B)^T below the diagonal, B the cumulative products of
    # the gates
    layer = RecurrentHeads("gla", options)
    q, k, v = layer.qkv()
    assert layer.weights["a.down.weight"].shape[0] == 16
    alpha = sigmoid(layer.map("a.up", layer.map("a.down"))).reshape(
        TOKENS, layer.heads, layer.d
    ) ** (1 / 16)
    b = np.cumprod(alpha, 0)
    layer.output(np.einsum("ihd,jhd,ij,jhe->ihe", q * b, k / b, np.tri(TOKENS), v))


def test_gla_raises_its_gate_to_one_sixteenth() -> None:
    # sigmoid(0) = 1/2: sixteen tokens halve the state; keys of 0 after the first token, so q = 1 is
    # a bias of its own coordinate
    m = made_with(
        "gla",
        3,
        ONE,
        a__up__weight={},
        a__up__bias=[0.0],
        q__weight=[[0, 0, 1]],
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
    )
    m = with_weights(m, o__weight=[[1], [0], [0]])
    assert outputs_of(m, tokens_of((1, 4, 1), *[(0, 9, 1)] * 16))[16] == pytest.approx(2, rel=1e-12)
