"""Chunked attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import torch
from support.each import each
from support.mixers import TOKENS, Array, Heads, both_forms, one_head, softmax, tokens_of

from separatrix.mixers.laws import stream


@each("size", [1, 2, 7, 23, 100])
def test_chunked(size: int) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        seen = [slice(i // size * size, i + 1) for i in range(TOKENS)]
        return np.stack([softmax(k[s] @ q[i]) @ v[s] for i, s in enumerate(seen)])

    Heads("chunked", {"size": size, "kv_heads": 2}).check(head)


def test_chunked_forgets_at_the_border() -> None:
    # keys 0 make every softmax a mean over the token's chunk of 2
    assert both_forms(
        one_head("chunked", size=2), tokens_of((0, 1), (0, 10), (0, 5), (0, 7), (0, 9))
    ) == [1, 5.5, 5, 6, 9]


@torch.no_grad()
def test_chunked_carries_tokens_it_does_not_see() -> None:
    m = one_head("chunked", size=2)
    _, state = stream(m, tokens_of((0, 1), (0, 10), (0, 5)))
    assert state["values"].flatten().tolist() == [10, 5]
