"""Indexed attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import pytest
from support.each import each
from support.mixers import (
    TOKENS,
    Heads,
    both_forms,
    chosen_blocks,
    made,
    one_head,
    softmax,
    tokens_of,
    with_weights,
)

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.laws import gradients, inputs
from separatrix.stacks.mechanisms import mechanism


@each("topk, index_heads, kv_heads", [(1, 1, 4), (2, 3, 2), (7, 2, 1), (23, 2, 4), (100, 1, 2)])
def test_indexed(topk: int, index_heads: int, kv_heads: int) -> None:
    heads = Heads(
        "indexed", {"topk": topk, "index_heads": index_heads, "index_dim": 5, "kv_heads": kv_heads}
    )
    queries = heads.project("index_q.weight").reshape(TOKENS, index_heads, 5)
    keys = heads.project("index_k.weight")
    weights = heads.project("index_w.weight")
    read = []
    for i in range(TOKENS):
        scores = [
            sum(weights[i, j] * max(0.0, queries[i, j] @ keys[s]) for j in range(index_heads))
            for s in range(i + 1)
        ]
        read.append(chosen_blocks(np.array(scores), topk))
    assert (
        any(i not in tokens for i, tokens in enumerate(read)) or topk >= 7
    )  # the token itself is not forced in

    heads.check(
        lambda h, q, k, v: np.stack(
            [softmax(k[read[i]] @ q[i]) @ v[read[i]] for i in range(TOKENS)]
        )
    )


def test_indexed_takes_the_earlier_of_equal_tokens_and_not_always_the_token_itself() -> None:
    # index keys 0: all scores are 0; keys 0: the mean of the first two tokens
    m = with_weights(one_head("indexed", topk=2, index_dim=1), index_k__weight=[[0, 0]])
    assert both_forms(m, tokens_of((0, 2), (0, 100), (0, 4), (0, 8))) == [2, 51, 51, 51]


def test_indexed_leaves_negative_products_out_before_it_weighs_them() -> None:
    # index query 1 (second coordinate), weight -1, index keys 3, -5, 1: scores -3, 0, -1, so the
    # second token; then the third, -1, before -3
    m = with_weights(
        one_head("indexed", topk=1, index_dim=1),
        index_q__weight=[[0, 1]],
        index_k__weight=[[1, 0]],
        index_w__weight=[[0, -1]],
    )
    m = with_weights(m, q__weight=[[0, 0]])
    assert both_forms(m, tokens_of((3, 1), (-5, 1), (1, 1))) == [1, 1, 1]
    two = with_weights(
        one_head("indexed", topk=2, index_dim=1),
        index_q__weight=[[0, 1]],
        index_k__weight=[[1, 0]],
        index_w__weight=[[0, -1]],
    )
    assert both_forms(
        with_weights(two, q__weight=[[0, 0]]), tokens_of((3, 1), (-5, 9), (1, 4))
    ) == [
        1,
        5,
        (9 + 4) / 2,
    ]


def test_indexed_blocks_are_declared_only() -> None:
    with pytest.raises(SizeError, match="'indexed'"):
        mixer(mechanism("indexed", block=2), width=6)


def test_the_indexer_learns_nothing_here() -> None:
    m = made("indexed", topk=3, index_dim=4)
    x = inputs(m, 1, 20).requires_grad_()
    found = gradients(m, x, [m(x)])
    assert all(
        found[name].abs().max() == 0
        for name in ("index_q.weight", "index_k.weight", "index_w.weight")
    )
    assert found["q.weight"].abs().max() > 0
