"""Mixture of block attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.mixers import (
    TOKENS,
    TWO_SUM,
    Array,
    Heads,
    both_forms,
    chosen_blocks,
    one_head,
    softmax,
    tokens_of,
)

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import MoBA, mechanism
from separatrix.theory.fails.ii_block_messages import BlockSizes, TheoremII


@pytest.mark.parametrize(
    ("block", "topk", "kv_heads"),
    [(1, 1, 4), (4, 2, 2), (5, 1, 1), (4, 50, 4), (23, 1, 4), (40, 3, 2)],
)
def test_moba(block: int, topk: int, kv_heads: int) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            blocks = [list(range(m * block, (m + 1) * block)) for m in range(i // block)]
            tokens = list(range(i // block * block, i + 1))
            for m in chosen_blocks(np.array([k[b].mean(0) @ q[i] for b in blocks]), topk):
                tokens += blocks[m]
            outputs.append(softmax(k[tokens] @ q[i]) @ v[tokens])
        return np.stack(outputs)

    Heads("moba", {"block": block, "topk": topk, "kv_heads": kv_heads}).check(head)


def test_moba_takes_the_earlier_of_equal_blocks() -> None:
    # blocks of one token, all keys 0: tokens read = block 0 and the token itself, averaged
    assert both_forms(
        one_head("moba", block=1, topk=1), tokens_of((0, 2), (0, 100), (0, 4), (0, 8))
    ) == [
        2,
        51,
        3,
        5,
    ]


def test_moba_reads_the_block_with_the_best_mean() -> None:
    # mean keys 1 and 1.5 against a query of ln 2: the second block, keys 0 and 3, and the token
    # itself with key ln 2: e^<q, k> = 1, 8, 2^ln 2
    own = 2 ** math.log(2)
    m = one_head("moba", block=2, topk=1)
    with torch.no_grad():
        y = m(tokens_of((2, 100), (0, 100), (0, 1), (3, 2), (math.log(2), 5)))[0, -1, 1].item()
    assert y == pytest.approx((1 * 1 + 8 * 2 + own * 5) / (1 + 8 + own))


def test_sizes_of_moba() -> None:
    m = mechanism(
        "moba",
        heads=4,
        kv_heads=2,
        head_dim=3,
        value_dim=5,
        block=8,
        topk=2,
        format="p8",
        accumulator="p16",
        running_max=False,
    )
    assert isinstance(m, MoBA)
    assert m.cache_bits(100) == (100 * 2 * 8 + 12 * 2 * 3) * 8
    assert m.read_bits() == 4 * 2 * (5 + 2) * 16  # score, 5 numerators, denominator
    assert mechanism("moba", heads=4, head_dim=3, topk=2, format="p8").read_bits() == 4 * 2 * 6 * 32
    assert [m.open_bits(t) for t in (0, 3, 100)] == [0, 3 * 128, 7 * 128]
    assert m.message_bits() == 2 * 3 * 8
    assert m.flops(100) == 2 * 4 * 3 * 12 + 24 * 2 * 4 * (3 + 5)


def test_theorem_ii_on_moba() -> None:
    """Messages are mean keys: 2 key-value heads of 3 numbers of 4 bits; 4 heads open 2 blocks
    each.
    """
    spec = Architecture.parse("moba @ heads=4, kv_heads=2, head_dim=3, block=4, topk=2, p4")
    assert TheoremII().sizes(spec, TWO_SUM) == BlockSizes(T=16, B=4, k=8, c=24, N=128)
    small = Architecture.parse("moba @ heads=1, head_dim=1, block=8, topk=1, p8")
    verdict = TheoremII().judge(small, TWO_SUM)
    # u1 = 128 * 7/8 = 112 values leave 1 + sum_{j<=8} binomial(112, j) > 2^8 traces
    assert verdict is not None
    assert verdict.status == "FAILS"
