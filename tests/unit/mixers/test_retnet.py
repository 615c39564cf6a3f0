"""Retention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from math import cos
from typing import Any

import numpy as np
import pytest
from support.mixers import TOKENS, RecurrentHeads, even, made_with, outputs_of, tokens_of, turned


@even
def test_retnet(options: dict[str, Any]) -> None:
    # o_n = sum_{m<=n} gamma^{n-m} (Q_n e^{i n theta}) (K_m e^{i m theta})^dagger v_m, gamma = 1 -
    # 2^{-5-h}
    layer = RecurrentHeads("retnet", options)
    q, k, v = layer.qkv()
    scores = np.einsum("nhd,mhd->hnm", turned(q), turned(k).conj()).real
    ago = np.arange(TOKENS)[:, None] - np.arange(TOKENS)
    decay = np.array(
        [np.where(ago >= 0, (1 - 2.0 ** (-5 - h)) ** np.abs(ago), 0) for h in range(layer.heads)]
    )
    layer.output(np.einsum("hnm,mhe->nhe", scores * decay, v))


def test_retnet_after_n_tokens_has_decayed_n_times_and_turned_by_n() -> None:
    # head_dim 2: theta = 1, so a key (1, 0) at place 0 and a query (1, 0) at place n have score
    # cos(n), in each of 3 heads
    m = made_with(
        "retnet",
        4,
        {"heads": 3, "head_dim": 2, "value_dim": 1},
        q__weight={(2 * h, 0): 1 for h in range(3)},
        k__weight={(2 * h, 1): 1 for h in range(3)},
        v__weight={(h, 2): 1 for h in range(3)},
        o__weight={(h, h): 1 for h in range(3)},
    )
    x = tokens_of((1, 1, 1, 0), *[(1, 0, 1, 0)] * 99)
    for h in range(3):
        wanted = [(1 - 2.0 ** (-5 - h)) ** n * cos(n) for n in range(100)]
        assert outputs_of(m, x, channel=h) == pytest.approx(wanted, abs=1e-12)
