"""RWKV-7: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest
from support.mixers import (
    ON,
    ONE,
    SCALARS,
    TOKENS,
    WIDTH,
    RecurrentHeads,
    made_with,
    outputs_of,
    sigmoid,
    tokens_of,
    unit,
)

from separatrix.mixers import Mixer


def rwkv_of(
    mu: float,
    decay: float = ON,
    rate: float = ON,
    written: float = 0.0,
    erased: float = 0.0,
    bonus: float = 0.0,
) -> Mixer:
    """r and k read coordinate 0, v coordinate 1; w and a are sigmoids of constants."""
    return made_with(
        "rwkv",
        2,
        ONE | {"width": 2},
        mu=[[mu, mu]] * 5,
        w__up__weight={},
        w__up__bias=[decay],
        a__up__weight={},
        a__up__bias=[rate],
        written=[[written]],
        erased=[[erased]],
        bonus=[[bonus]],
        **SCALARS,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conv": 3, "gate": "silu"},
        {"gate": "norm", "key_heads": 1},
        {"heads": 2, "head_dim": 1, "value_dim": 5},
    ],
)
def test_rwkv(options: dict[str, Any]) -> None:
    # section 4 of the RWKV-7 paper: lerp(x_t, x_{t-1}, mu), d_t, w_t, a_t, kappa, removal key,
    # replacement key, wkv_t, bonus
    layer = RecurrentHeads("rwkv", options, width=WIDTH)
    shape = (TOKENS, layer.heads, layer.d)
    w = layer.weights
    previous = np.vstack([np.zeros(WIDTH), layer.x[:-1]])
    z_r, z_k, z_v, z_w, z_a = (layer.x + (previous - layer.x) * mu for mu in w["mu"])
    r, k, v = layer.qkv(mixed=(z_r, z_k, z_v))
    d = layer.map("w.up", np.tanh(layer.map("w.down", z_w))).reshape(shape)
    decay = np.exp(-np.exp(-0.5) * sigmoid(d))
    rate = sigmoid(layer.map("a.up", layer.map("a.down", z_a))).reshape(shape)
    removal = unit(k * w["erased"])
    replacement = k * (1 + (rate - 1) * w["written"])
    y = np.zeros_like(v)
    for h in range(layer.heads):
        wkv = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            change = np.diag(decay[i, h]) - np.outer(removal[i, h], rate[i, h] * removal[i, h])
            wkv = wkv @ change + np.outer(v[i, h], replacement[i, h])
            y[i, h] = wkv @ r[i, h]
    layer.output(y, beside=np.einsum("thd,hd,thd->th", r, w["bonus"], replacement)[..., None] * v)


def test_rwkv_shifts_by_a_token_and_the_first_has_none_before() -> None:
    # mu = 1: everything is read from the token before, 0 for the first. w = exp(-e^{-1/2}); S: 0,
    # 2*3, w*6 + 1*5; read with r = 0, 2, 1
    w = exp(-exp(-0.5))
    assert outputs_of(rwkv_of(1), tokens_of((2, 3), (1, 5), (7, 7))) == pytest.approx(
        [0, 2 * 6, w * 6 + 5], rel=1e-12
    )


def test_rwkv_half_a_shift() -> None:
    # mu = 1/2: means with the token before: (1, 1.5), then (2, 4) where w = 1: S = 1.5, then 1.5 +
    # 8, read with 1 and 2
    assert outputs_of(rwkv_of(0.5, decay=-800), tokens_of((2, 3), (2, 5))) == pytest.approx(
        [1.5, 19], rel=1e-12
    )


def test_rwkv_without_shift_replaces_what_a_key_holds() -> None:
    # mu = 0, w = 1, a = 1, unit removal key: all that is there is removed, k v written
    assert outputs_of(
        rwkv_of(0, decay=-800, erased=1), tokens_of((1, 3), (-1, 5), (2, 7))
    ) == pytest.approx([3, 5, 28], rel=1e-12)


def test_rwkv_in_context_rate() -> None:
    # a = 1/2, w = 1: half of the state goes, and k = f (1 - h/2) with h = 1: f/2. S: 1/2*3, then
    # 3/4 + 1/2*5, read with 1; bonus r k p v, p = 4
    y = outputs_of(
        rwkv_of(0, decay=-800, rate=0, erased=1, written=1, bonus=4), tokens_of((1, 3), (1, 5))
    )
    assert y == pytest.approx([1.5 + 6, 0.75 + 2.5 + 10], rel=1e-12)
