"""Linear attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.each import each
from support.mixers import TOKENS, Array, Heads, both_forms, one_head, phi, tokens_of


@each("normaliser", [True, False])
@each("feature", ["elu", "relu", "identity", "taylor"])
def test_linear(feature: str, normaliser: bool) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        state = 0.0
        total = 0.0
        outputs = []
        for i in range(TOKENS):
            state = state + np.outer(v[i], phi(feature, k[i]))
            total = total + phi(feature, k[i])
            y = state @ phi(feature, q[i])
            z = total @ phi(feature, q[i])
            outputs.append(y / z if normaliser and z != 0 else 0 * y if normaliser else y)
        return np.stack(outputs)

    Heads("linear", {"feature": feature, "normaliser": normaliser, "key_heads": 2}).check(head)


def test_linear_defines_zero_over_zero_as_zero() -> None:
    # relu features: the first two keys are negative, so Z = 0 there; then phi(q) phi(k) v / phi(q)
    # phi(k) = v; last a query of 0
    m = one_head("linear", feature="relu")
    assert both_forms(m, tokens_of((-1, 5), (-2, 7), (3, 11), (-1, 13))) == [0, 0, 11, 0]


def test_linear_identity_may_divide_by_a_negative_sum_and_by_a_sum_of_zero() -> None:
    # k = q = 2, -2, -1: <q, Z> = 4, 0, 1; S q = 2*1*2 = 4; 0 at the second by definition; (2*1 -
    # 2*3 - 1*5)(-1) = 9 over (2-2-1)(-1) = 1
    m = one_head("linear", feature="identity")
    assert both_forms(m, tokens_of((2, 1), (-2, 3), (-1, 5))) == [1, 0, 9]


def test_linear_zero_over_zero_has_finite_gradients() -> None:
    m = one_head("linear", feature="relu")
    x = tokens_of((-1, 5), (-2, 7)).requires_grad_()
    (gradient,) = torch.autograd.grad(m(x).sum(), x)
    assert gradient.isfinite().all()


def test_linear_taylor_by_hand() -> None:
    # s = q k: at the second token 2*1 = 2 and 2*2 = 4; weights 1 + s + s^2/2 = 5 and 13
    m = one_head("linear", feature="taylor", normaliser=False)
    assert both_forms(m, tokens_of((1, 1), (2, 10))) == pytest.approx([2.5, 5 * 1 + 13 * 10])
