"""Mamba-2: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from itertools import product
from math import log

import numpy as np
import pytest
from support.mixers import (
    TOKENS,
    RecurrentHeads,
    made_with,
    outputs_of,
    softplus,
    tokens_of,
    with_weights,
)


@pytest.mark.parametrize("conv", [0, 4])
@pytest.mark.parametrize(("groups", "size", "state"), [(1, 3, 5), (2, 1, 4), (4, 2, 1)])
def test_mamba2(groups: int, size: int, state: int, conv: int) -> None:
    # the paper's semiseparable matrix, M_ij = C_i^T (A_{j+1} ... A_i) B_j D_j, and the skip
    layer = RecurrentHeads(
        "mamba2", {}, heads=4, head_dim=size, state=state, groups=groups, conv=conv, value_dim=None
    )
    c, b, x = layer.qkv(d=state, e=size)
    delta = softplus(layer.map("dt"))
    a = np.exp(-np.exp(layer.weights["rate"]) * delta)
    y = layer.weights["skip"][:, None] * x
    for h, i, j in product(range(4), range(TOKENS), range(TOKENS)):
        if j <= i:
            y[i, h] += (c[i, h] @ b[j, h]) * a[j + 1 : i + 1, h].prod() * delta[j, h] * x[j, h]
    layer.output(y)


def test_mamba2_state_and_skip() -> None:
    # Delta = softplus(0) = ln 2 and A = -1, so a = 1/2; B = coordinate 0, x coordinate 1, C
    # coordinate 2; skip 10
    m = made_with(
        "mamba2",
        3,
        {"heads": 1, "head_dim": 1, "state": 1},
        k__weight=[[1, 0, 0]],
        v__weight=[[0, 1, 0]],
        q__weight=[[0, 0, 1]],
    )
    m = with_weights(
        m, o__weight=[[1], [0], [0]], dt__weight={}, dt__bias=[0.0], rate=[0.0], skip=[10.0]
    )
    x = tokens_of((0, 3, 1), (1, 3, 0), (1, 5, 1), (0, 0, 1), (0, 0, 2))
    # nothing read; only the skip; (3/2 + 5) ln 2 + 50; then halved twice, read with 1 and 2
    assert outputs_of(m, x) == pytest.approx(
        [30, 30, 6.5 * log(2) + 50, 3.25 * log(2), 3.25 * log(2)], rel=1e-12
    )
