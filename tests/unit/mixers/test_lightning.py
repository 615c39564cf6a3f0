"""Lightning attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest
from support.mixers import TOKENS, RecurrentHeads, made_with, options, outputs_of, tokens_of

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.stacks.mechanisms import mechanism


@options
def test_lightning(options: dict[str, Any]) -> None:
    # O = ((Q K^T) * M) V, M_ij = lambda^{i-j}, lambda = e^{-slope}, slopes of ALiBi: 2^{-8/H}, and
    # each that times the one before
    layer = RecurrentHeads("lightning", options)
    q, k, v = layer.qkv()
    slope = 1.0
    y = np.zeros_like(v)
    for h in range(layer.heads):
        slope *= 2 ** (-8 / layer.heads)
        for i, j in product(range(TOKENS), range(TOKENS)):
            if j <= i:
                y[i, h] += np.exp(-slope) ** (i - j) * (q[i, h] @ k[j, h]) * v[j, h]
    layer.output(y)


def test_lightning_decays_of_four_heads() -> None:
    # slopes 2^-2, 2^-4, 2^-6, 2^-8
    m = made_with(
        "lightning",
        4,
        {"heads": 4, "head_dim": 1, "value_dim": 1},
        q__weight={(h, 0): 1 for h in range(4)},
        k__weight={(h, 1): 1 for h in range(4)},
        v__weight={(h, 2): 1 for h in range(4)},
        o__weight={(h, h): 1 for h in range(4)},
    )
    x = tokens_of((1, 1, 1, 0), *[(1, 0, 1, 0)] * 70)
    for h, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert outputs_of(m, x, channel=h) == pytest.approx(
            [exp(-slope * n) for n in range(71)], rel=1e-12
        )


def test_rotated_keys_are_declared_only() -> None:
    with pytest.raises(SizeError, match="rotated=true"):
        mixer(mechanism("lightning", heads=1, head_dim=2, rotated=True), width=2)
