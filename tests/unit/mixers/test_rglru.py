"""RG-LRU: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from support.mixers import ON, TOKENS, Layer, made_with, outputs_of, sigmoid, tokens_of

from separatrix.mixers import Mixer


def rglru_of() -> Mixer:
    """Two channels: the first carries the gate's logit, r of the second is its sigmoid; a = 1/2
    where r = 1; g = 1.
    """
    return made_with(
        "rglru",
        2,
        {"width": 2},
        v__weight=[[1, 0], [0, 1]],
        o__weight=[[0, 1], [0, 0]],
        r__weight={(1, 0): 1},
        r__bias=[0.0, 0.0],
        g__weight={},
        g__bias=[ON, ON],
        rate=[log(exp(log(2) / 8) - 1)] * 2,
    )


@pytest.mark.parametrize("conv", [0, 1, 4])
@pytest.mark.parametrize("width", [1, 5])
def test_rglru(width: int, conv: int) -> None:
    # eqs. 1-4 of Griffin: a = sigmoid(Lambda), here with Lambda = -rate; a_t = a^{c r_t} with c = 8
    layer = Layer("rglru", width=width, conv=conv)
    u = layer.convolved(layer.map("v"), activated=False)
    a = sigmoid(-layer.weights["rate"]) ** (8 * sigmoid(layer.map("r", u)))
    gated = sigmoid(layer.map("g", u)) * u
    h = np.zeros(width)
    states = []
    for t in range(TOKENS):
        h = a[t] * h + np.sqrt(1 - a[t] ** 2) * gated[t]
        states.append(h)
    layer.check(layer.map("o", np.stack(states)))


def test_rglru_keeps_where_r_is_zero() -> None:
    # r = sigmoid(-800) = 0: a = 1 and the root sqrt(1 - 1) = 0, nothing enters; r = 1: h/2 +
    # sqrt(3/4) u; r = 1/2: a = sqrt(1/2), root the same
    x = tokens_of((ON, 4), (-800, 100), (-800, -7), (ON, 2), (0, 6))
    h = [4 * sqrt(0.75)] * 3
    h.append(h[-1] / 2 + 2 * sqrt(0.75))
    h.append((h[-1] + 6) * sqrt(0.5))
    assert outputs_of(rglru_of(), x) == pytest.approx(h, rel=1e-12)


def test_rglru_has_finite_gradients_where_the_root_is_zero() -> None:
    for dtype in (torch.float64, torch.float32):
        m = rglru_of().to(dtype)
        x = tokens_of((ON, 4), (-800, 100), (ON, 2)).to(dtype).requires_grad_()
        assert all(
            g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()])
        )
