"""Sliding windows: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.each import each
from support.mixers import TOKENS, Array, Heads, softmax

from separatrix.mixers import mixer, window
from separatrix.mixers.laws import close, drawn, inputs
from separatrix.mixers.ops import softmax as softmaxes
from separatrix.stacks.mechanisms import mechanism


@each("size", [1, 2, 7, 23, 100])
def test_window(size: int) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        seen = [slice(max(0, i - size + 1), i + 1) for i in range(TOKENS)]
        return np.stack([softmax(k[s] @ q[i]) @ v[s] for i, s in enumerate(seen)])

    Heads("window", {"size": size, "kv_heads": 2}).check(head)


@torch.no_grad()
def test_window_as_long_as_the_input_is_full_attention() -> None:
    x = inputs(drawn(mixer(mechanism("full", heads=2, head_dim=3), width=6)), 2, 50)
    full, window = (
        drawn(mixer(mechanism(name, heads=2, head_dim=3), width=6)) for name in ("full", "window")
    )
    close(window(x), full(x), "window of 128 tokens")


@each("size, tokens", [(4, 9), (70, 200), (100, 290)])
def test_wide_windows_go_a_few_queries_at_a_time(
    size: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own gradient, and that of it, is that of the other form, where a part of 64 queries
    begins inside the first window, too.
    """
    q, k, v = (torch.randn(2, 2, tokens, 3).double().requires_grad_() for _ in range(3))
    # the fused kernel has no second derivatives
    monkeypatch.setattr(softmaxes, "FUSED_FROM", 1000)
    found = []
    for wide in (1, tokens):
        monkeypatch.setattr(window, "WIDE", wide)
        y = window.windowed(q, k, v, size=size, chunk=64)
        first = torch.autograd.grad(y.square().sum(), (q, k, v), create_graph=True)
        total = torch.stack([gradient.square().sum() for gradient in first]).sum()
        second = torch.autograd.grad(total, (q, k, v))
        found.append([y, *first, *second])
    for one, other in zip(*found, strict=True):
        close(one, other, "wide windows")
