"""mLSTM: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
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

from separatrix.mixers import Mixer
from separatrix.mixers.laws import stream


def mlstm_of(forget: float) -> Mixer:
    """q = 1 (coordinate 2), k = coordinate 0, v = coordinate 1, log g = coordinate 3, f =
    sigmoid(forget).
    """
    m = made_with(
        "mlstm",
        4,
        ONE,
        q__weight=[[0, 0, 1, 0]],
        k__weight=[[1, 0, 0, 0]],
        v__weight=[[0, 1, 0, 0]],
        i__weight=[[0, 0, 0, 1]],
    )
    return with_weights(
        m, o__weight=[[1], [0], [0], [0]], i__bias=[0.0], f__weight={}, f__bias=[forget]
    )


@options
def test_mlstm(options: dict[str, Any]) -> None:
    # eqs. 19-27 of the xLSTM paper as they stand, with exponential input gates and nothing that
    # keeps numbers small
    layer = RecurrentHeads("mlstm", options)
    (q, k, v), i, f = layer.qkv(), np.exp(layer.map("i")), sigmoid(layer.map("f"))
    y = np.zeros_like(v)
    for h in range(layer.heads):
        c = np.zeros((layer.e, layer.d))
        n = np.zeros(layer.d)
        for t in range(TOKENS):
            c = f[t, h] * c + i[t, h] * np.outer(v[t, h], k[t, h])
            n = f[t, h] * n + i[t, h] * k[t, h]
            y[t, h] = c @ q[t, h] / max(abs(n @ q[t, h]), 1)
    layer.output(y)


@pytest.mark.parametrize("size", [200.0, 1e4])
def test_mlstm_with_gates_beyond_float32(size: float) -> None:
    # f = 1: y is the mean of the values, weighed by e^gate: equal gates; then one more by ln 3, at
    # weights 1, 1, 3; then one that drowns all
    m = mlstm_of(800).float()
    x = tokens_of(
        (1, 5, 1, size),
        (1, 7, 1, size),
        (1, 2, 1, size + log(3)),
        (1, 9, 1, 2 * size),
        (1, 4, 1, -size),
    ).float()
    wanted = torch.tensor([5, 6, 18 / 5, 9, 9])
    with torch.no_grad():
        for y in (m(x), stream(m, x)[0]):
            torch.testing.assert_close(
                y[0, :, 0], wanted, rtol=2e-3 if size > 1e3 else 1e-4, atol=0
            )  # size + ln 3 itself is rounded
    x.requires_grad_()
    assert all(g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()]))


def test_mlstm_with_all_gates_very_negative() -> None:
    # |n q| = e^-200 and less is below 1, so y = C q: e^-200 5, e^-200 (5 + 7), and where f = e^-300
    # the last token alone
    x = tokens_of((1, 5, 1, -200), (1, 7, 1, -200))
    assert outputs_of(mlstm_of(800), x) == pytest.approx([5 * exp(-200), 12 * exp(-200)], rel=1e-12)
    assert outputs_of(mlstm_of(-300), x) == pytest.approx([5 * exp(-200), 7 * exp(-200)], rel=1e-12)
    m = mlstm_of(-300).float()
    with torch.no_grad():
        assert (
            m(x.float())[..., 0].tolist() == stream(m, x.float())[0][..., 0].tolist() == [[0, 0]]
        )  # e^-200 is 0 in float32
    x = x.float().requires_grad_()
    assert all(g.isfinite().all() for g in torch.autograd.grad(m(x).sum(), [x, *m.parameters()]))


def test_mlstm_divides_by_one_where_the_normaliser_is_smaller() -> None:
    # f = 1, log g = 0: n = 1/2, y = C = 2; then n = 1/2 - 3/4 = -1/4, C = 2 - 3 = -1; then n =
    # -9/4, C = -1 - 8 = -9, and y = -9 / (9/4)
    assert outputs_of(
        mlstm_of(800), tokens_of((0.5, 4, 1, 0), (-0.75, 4, 1, 0), (-2, 4, 1, 0))
    ) == pytest.approx([2, -1, -4], rel=1e-12)
