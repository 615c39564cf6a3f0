"""Sliding windows: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import torch
from support.each import each
from support.mixers import TOKENS, Array, Heads, softmax

from separatrix.mixers import mixer
from separatrix.mixers.laws import close, drawn, inputs
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
