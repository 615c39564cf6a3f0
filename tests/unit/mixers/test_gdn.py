"""Gated DeltaNet: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import (
    TOKENS,
    Array,
    Heads,
    RecurrentHeads,
    both_forms,
    one_head,
    options,
    sigmoid,
    softplus,
    tokens_of,
    unit,
    with_weights,
)

from separatrix.mixers import mixer
from separatrix.stacks.mechanisms import mechanism


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_gdn(key_heads: int) -> None:
    heads = Heads("gdn", {"key_heads": key_heads})
    z = heads.project("a.weight") + heads.weights["a.bias"]
    a = np.exp(-np.exp(heads.weights["rate"]) * np.log1p(np.exp(z)))
    b = sigmoid(heads.project("b.weight"))

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        state = np.zeros((2, 3))
        outputs = []
        for i in range(TOKENS):
            key = k[i] / np.linalg.norm(k[i])
            query = q[i] / np.linalg.norm(q[i])
            state = a[i, h] * state @ (np.eye(3) - b[i, h] * np.outer(key, key)) + b[
                i, h
            ] * np.outer(v[i], key)
            outputs.append(state @ query)
        return np.stack(outputs)

    heads.check(head)


@options
def test_gdn_with_its_options(options: dict[str, Any]) -> None:
    # alpha in the form of Mamba-2, exp(-e^A softplus(. + dt_bias)); S_n is the sum of b_j v_j k_j^T
    # times all later transitions
    layer = RecurrentHeads("gdn", options, negative=True, unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b")) * 2
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros_like(v)
    for h, i in product(range(layer.heads), range(TOKENS)):
        later = np.eye(layer.d)
        for j in reversed(range(i + 1)):
            y[i, h] += b[j, h] * v[j, h] * (k[j, h] @ later @ q[i, h])
            later = a[j, h] * (np.eye(layer.d) - b[j, h] * np.outer(k[j, h], k[j, h])) @ later
    layer.output(y)


def test_gdn_overwrites_the_value_of_a_key() -> None:
    # a = 1 and b = 1 to within e^-40: the second value under one key replaces the first
    m = with_weights(
        one_head("gdn"), a__weight=[[0, 0]], a__bias=[-40], rate=[0], b__weight=[[40, 0]]
    )
    assert both_forms(m, tokens_of((1, 5), (1, 7))) == pytest.approx([5, 7], abs=1e-12)


def test_gdn_decays_what_it_does_not_overwrite() -> None:
    # a = 1/2, b = sigmoid(0) = 1/2, k = 0 at the second token: S = 1/2 * 3 = 1.5, then 0.75, read
    # with q = 0, then key 1 again
    m = with_weights(one_head("gdn"), a__weight=[[0, 0]], a__bias=[0], rate=[0], b__weight=[[0, 0]])
    # third: S = 1/2 * 0.75 * (1 - 1/2) + 1/2 * 4 = 2.1875
    assert both_forms(m, tokens_of((1, 3), (0, 9), (1, 4))) == pytest.approx([1.5, 0, 2.1875])


def test_gdn_keys_of_length_zero_have_finite_gradients() -> None:
    m = one_head("gdn")
    x = tokens_of((0, 5), (0, 7)).requires_grad_()
    (gradient,) = torch.autograd.grad(m(x).sum(), x)
    assert gradient.isfinite().all()


def test_gdn_gates_start_near_one() -> None:
    m = mixer(mechanism("gdn", heads=64, head_dim=1), width=4)
    m.reset(torch.Generator().manual_seed(0))
    forgotten = 1 - torch.exp(
        -torch.nn.functional.softplus(dict(m.named_parameters())["a.bias"].detach().double())
    )
    assert 0.9e-3 < forgotten.min() < 3e-3
    assert 3e-2 < forgotten.max() < 1.01e-1
