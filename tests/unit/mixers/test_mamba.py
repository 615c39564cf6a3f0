"""Mamba: its definition token by token, values by hand, segments, and edge cases."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import TOKENS, Array, Layer, made_with, outputs_of, softplus, tokens_of

from separatrix.mixers import mixer
from separatrix.mixers.laws import close, drawn, gradients, inputs, stream
from separatrix.mixers.laws.tools import all_close
from separatrix.mixers.ops import scan as selective_scan
from separatrix.stacks.mechanisms import mechanism


def normed(x: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize(
    ("channels", "state", "rank", "conv", "norms"),
    [(5, 3, 2, 0, False), (1, 4, None, 4, True), (7, 1, 3, 4, False), (5, 3, 2, 0, True)],
)
def test_mamba(channels: int, state: int, rank: int | None, conv: int, norms: bool) -> None:
    # the paper's algorithm 2, each token's sum over all before it written out
    sizes: dict[str, Any] = {"width": channels, "state": state, "conv": conv, "norms": norms}
    layer = Layer("mamba", **sizes, **({} if rank is None else {"rank": rank}))
    u = layer.convolved(layer.map("v"), activated=True)
    low, b, c = (layer.map(name, u) for name in ("dt.down", "b", "c"))
    assert low.shape == (TOKENS, rank or 1)
    if norms:
        low, b, c = normed(low), normed(b), normed(c) * layer.weights["read"]
    delta = softplus(layer.map("dt.up", low))
    a = -np.exp(layer.weights["rate"])
    y = layer.weights["skip"] * u
    for i in range(TOKENS):
        for j in range(i + 1):
            kept = np.exp(delta[j + 1 : i + 1].sum(0)[:, None] * a)  # c n
            y[i] += (kept * b[j] * c[i]).sum(1) * delta[j] * u[j]
    layer.check(layer.map("o", y))


def test_state_and_skip() -> None:
    # D = softplus(0) = ln 2 and A = -1, -2: the two numbers of the state are halved and quartered;
    # u is coordinate 0; B = (u, 3 u), C = (u, 2 u); skip 10
    m = made_with(
        "mamba",
        2,
        {"width": 1, "state": 2, "rank": 1},
        v__weight=[[1, 0]],
        o__weight=[[1], [0]],
        b__weight=[[1], [3]],
        c__weight=[[1], [2]],
        dt__down__weight={},
        dt__up__weight={},
        dt__up__bias=[0.0],
        rate=[[0.0, log(2)]],
        skip=[10.0],
    )
    x = tokens_of((1, 0), (0, 0), (2, 0))
    # h = ln 2 (1, 3), then (1/2, 3/4) ln 2, then (1/4 + 4, 3/16 + 12) ln 2; read by u (1, 2)
    wanted = [7 * log(2) + 10, 0, 2 * (4.25 + 24.375) * log(2) + 20]
    assert outputs_of(m, x) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("numbers", [1, 200])
def test_segments(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few tokens are worked on at a time, outputs and gradients are the same."""
    m = drawn(mixer(mechanism("mamba", width=4, state=3, conv=2, rank=2), width=6))
    x = inputs(m, 2, 23).requires_grad_()
    m.chunk = 5
    whole = [m(x), m.last(x)]
    monkeypatch.setattr(selective_scan, "NUMBERS", numbers)
    parts = [m(x), m.last(x)]
    for a, b in zip(whole, parts, strict=True):
        close(a, b, "segments")
    all_close(gradients(m, x, whole), gradients(m, x, parts), "segments")
    close(parts[0], stream(m, x)[0], "segments and steps")


def test_second_derivatives_are_those_of_the_first() -> None:
    m = drawn(mixer(mechanism("mamba", width=3, state=2, rank=1), width=2))
    x = inputs(m, 2, 5).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, *p: m(x), (x, *m.parameters()))


@torch.no_grad()
def test_a_large_step_forgets() -> None:
    # D of 50 on a rate of 16 or more keeps less than e^-800, which is 0: only the token itself
    sizes: dict[str, Any] = {"width": 3, "state": 2, "rank": 1}
    m = made_with("mamba", 6, sizes, dt__up__bias=[50.0] * 3, rate=[[log(16)] * 2] * 3)
    x = inputs(m, 1, 70)
    alone = torch.cat([m(x[:, i : i + 1]) for i in range(70)], 1)
    close(m(x), alone, "each token alone")
