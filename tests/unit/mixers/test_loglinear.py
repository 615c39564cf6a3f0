"""Log-linear attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import (
    TOKENS,
    Array,
    Heads,
    RecurrentHeads,
    one_head,
    options,
    phi,
    sigmoid,
    softplus,
    tokens_of,
    unit,
)

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.laws import close, drawn, inputs, stream
from separatrix.mixers.loglinear import levels
from separatrix.stacks.mechanisms import mechanism


def buckets(i: int) -> list[tuple[int, range]]:
    """(level, tokens) of the Fenwick tree at token i, as in the paper: take off the least
    significant bit until 0 is left.
    """
    found = [(0, range(i, i + 1))]
    end = i
    while end:
        lowest = end & -end
        found.append((lowest.bit_length(), range(end - lowest, end)))
        end -= lowest
    return found


@pytest.mark.parametrize("feature", ["elu", "relu", "identity"])
def test_loglinear(feature: str) -> None:
    heads = Heads("loglinear", {"feature": feature})
    weights = np.log1p(np.exp(heads.project("level.weight"))).reshape(TOKENS, -1, 4)

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            y = weights[i, 0, h] * (phi(feature, q[i]) @ phi(feature, k[i])) * v[i]
            start = 0
            for bit in reversed(
                range(i.bit_length())
            ):  # the largest bucket holds the earliest tokens
                if i >> bit & 1:
                    bucket = range(start, start + 2**bit)
                    y = y + weights[i, bit + 1, h] * sum(
                        (phi(feature, q[i]) @ phi(feature, k[j])) * v[j] for j in bucket
                    )
                    start += 2**bit
            assert start == i
            outputs.append(y)
        return np.stack(outputs)

    heads.check(head)


def test_buckets_by_hand() -> None:
    assert buckets(0) == [(0, range(1))]
    assert buckets(6) == [(0, range(6, 7)), (2, range(4, 6)), (3, range(4))]
    assert buckets(13) == [(0, range(13, 14)), (1, range(12, 13)), (3, range(8, 12)), (4, range(8))]


@pytest.mark.slow
@options
def test_loglinear_gdn(options: dict[str, Any]) -> None:
    # every token's value through the product of all later transitions, bucket by bucket, weighed by
    # its level
    layer = RecurrentHeads("loglinear", options, base="gdn", unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b"))
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros_like(v)
    weights = softplus(layer.map("level")).reshape(TOKENS, -1, layer.heads)
    for h in range(layer.heads):
        change = [
            a[i, h] * (np.eye(layer.d) - b[i, h] * np.outer(k[i, h], k[i, h]))
            for i in range(TOKENS)
        ]
        for i in range(TOKENS):
            for level, bucket in buckets(i):
                state = np.zeros((layer.e, layer.d))
                for j in bucket:
                    later = np.linalg.multi_dot(
                        [np.eye(layer.d), np.eye(layer.d), *change[j + 1 : i + 1]]
                    )
                    state += b[j, h] * np.outer(v[j, h], k[j, h]) @ later
                y[i, h] += weights[i, level, h] * (state @ q[i, h])
    layer.output(y)


@options
def test_loglinear_mamba2(options: dict[str, Any]) -> None:
    # the semiseparable matrix of Mamba-2, element by element, weighed by the levels; and the skip
    layer = RecurrentHeads("loglinear", options, base="mamba2")
    c, b, x = layer.qkv()
    delta = softplus(layer.map("dt"))
    a = np.exp(-np.exp(layer.weights["rate"]) * delta)
    weights = softplus(layer.map("level")).reshape(TOKENS, -1, layer.heads)
    y = np.zeros_like(x)
    for h in range(layer.heads):
        for i in range(TOKENS):
            for level, bucket in buckets(i):
                for j in bucket:
                    kept = a[j + 1 : i + 1, h].prod()
                    y[i, h] += (
                        weights[i, level, h] * (c[i, h] @ b[j, h]) * kept * delta[j, h] * x[j, h]
                    )
    skip = layer.weights["skip"][:, None] * x
    layer.output(y, skip)


@torch.no_grad()
def test_loglinear_mamba2_with_equal_weights_is_mamba2() -> None:
    # no gate, so that the two mechanisms have the same parameters but for the levels'
    one = drawn(
        mixer(mechanism("loglinear", heads=2, head_dim=5, value_dim=3, base="mamba2"), width=6)
    )
    other = drawn(mixer(mechanism("mamba2", heads=2, head_dim=3, state=5, groups=2), width=6))
    one.get_parameter("level.weight").zero_()
    parameters = dict(one.named_parameters())
    for name, parameter in other.named_parameters():
        parameter.copy_(parameters[name])
    x = inputs(one, 2, 75)
    # softplus(0) = ln 2 weighs what is read, not the skip
    plain = other(x)
    other.get_parameter("skip").zero_()
    one.get_parameter("skip").zero_()
    close(one(x), other(x) * np.log(2), "log-linear and plain")
    assert (other(x) - plain).abs().max() > 0.01


def test_levels_by_hand() -> None:
    # six tokens before token 6 = 4 + 2: tokens 0..3 in the bucket of bit 2, tokens 4 and 5 in that
    # of bit 1, itself level 0
    place = torch.arange(7)
    assert levels(torch.tensor(6), place).tolist() == [3, 3, 3, 3, 2, 2, 0]
    assert levels(torch.tensor(5), place[:6]).tolist() == [3, 3, 3, 3, 1, 0]
    assert levels(torch.tensor(1 << 31), torch.tensor(0)).item() == 32


@torch.no_grad()
def test_loglinear_slots_are_the_binary_digits_of_t() -> None:
    # identity features, keys 1: the state of a bucket is the sum of its values; six tokens leave 6
    # = 110 in binary
    m = one_head("loglinear")
    x = tokens_of(*((1, 2.0**i) for i in range(7)))
    _, state = stream(m, x[:, :6])
    assert state["S"].flatten().tolist() == [0, 16 + 32, 1 + 2 + 4 + 8]
    _, state = stream(m, x)
    assert state["S"].flatten().tolist() == [64, 16 + 32, 1 + 2 + 4 + 8]


def test_loglinear_refuses_tokens_beyond_its_levels() -> None:
    m = one_head("loglinear")
    with pytest.raises(SizeError, match="enough for 2\\^31 tokens"):
        m.step(
            torch.zeros(1, 2, dtype=torch.float64),
            {"S": torch.zeros(1, 32, 1, 1, 1, dtype=torch.float64)},
            1 << 31,
        )
