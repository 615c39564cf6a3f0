"""Native sparse attention by the paper's definition, token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import Array, Layer, sigmoid, silu, softmax

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.laws import drawn, inputs, stream
from separatrix.mixers.ops import blockwise
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import mechanism
from separatrix.stacks.mechanisms.base import OpenedBlocks
from separatrix.tasks import Eva, SeqComp
from separatrix.theory import judge

SIZES: dict[str, Any] = {
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 3,
    "value_dim": 2,
    "block": 4,
    "stride": 2,
    "selected": 4,
    "topk": 3,
    "near": 1,
    "window": 5,
}


def by_definition(layer: Layer, sizes: dict[str, Any]) -> Array:
    """The heads' gated outputs (t, h, e): every sum and every choice written out."""
    size, d, wide = sizes["block"], sizes["stride"], sizes["selected"]
    tokens = len(layer.x)
    sets = 1 if sizes.get("shared") else 3
    q = layer.map("q").reshape(tokens, 4, 3)
    k = layer.map("k").reshape(tokens, sets, 2, 3)
    v = layer.map("v").reshape(tokens, sets, 2, 2)
    (raw_k, raw_v), (k, v), (near_k, near_v) = ((k[:, n % sets], v[:, n % sets]) for n in range(3))
    gates = sigmoid(layer.map("g")).reshape(tokens, 3, 4)

    def pooled(name: str, block: Array) -> Array:
        if f"{name}.places" not in layer.weights:
            return block.mean(0)
        row = (block + layer.weights[f"{name}.places"]).ravel()
        return layer.weights[f"{name}.outer.weight"] @ silu(
            layer.weights[f"{name}.inner.weight"] @ row
        )

    y = np.zeros((tokens, 4, 2))
    for i in range(tokens):
        blocks = [range(m * d, m * d + size) for m in range(tokens) if m * d + size - 1 <= i]
        for g in range(2):
            heads = (2 * g, 2 * g + 1)
            ck = np.array([pooled("pool_k", raw_k[b, g]) for b in blocks]).reshape(-1, 3)
            cv = np.array([pooled("pool_v", raw_v[b, g]) for b in blocks]).reshape(-1, 2)
            shares = [softmax(ck @ q[i, h]) if blocks else np.zeros(0) for h in heads]
            own = i // wide
            score = []
            for j in range(own + 1):
                there = set(range(j * wide, (j + 1) * wide))
                score.append(
                    sum(
                        share[m] * len(there & set(b)) / d
                        for share in shares
                        for m, b in enumerate(blocks)
                    )
                )
            always = [
                j for j in range(own + 1) if j < sizes.get("first", 1) or j > own - sizes["near"]
            ]
            others = [j for j in range(own + 1) if j not in always]
            others = sorted(others, key=lambda j: (-score[j], j))
            chosen = always + others[: sizes["topk"] - len(always)]
            read = [t for t in range(i + 1) if t // wide in chosen]
            last = range(max(0, i + 1 - sizes["window"]), i + 1)
            for h, share in zip(heads, shares, strict=True):
                y[i, h] = (
                    gates[i, 0, h] * (share @ cv)
                    + gates[i, 1, h] * (softmax(k[read, g] @ q[i, h]) @ v[read, g])
                    + gates[i, 2, h] * (softmax(near_k[last, g] @ q[i, h]) @ near_v[last, g])
                )
    return y


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"pool": "mean", "shared": True},
        {"block": 2, "selected": 6, "near": 2},
        {"stride": 4, "topk": 2, "window": 40},
        {"block": 6, "stride": 3, "selected": 3, "topk": 4},
    ],
    ids=str,
)
def test_equals_the_definition(
    more: dict[str, Any], tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tiles:
        monkeypatch.setattr(blockwise, "SHORT", 0)
        monkeypatch.setattr(blockwise, "DENSE", 0)
    sizes = SIZES | more
    layer = Layer("nsa", **sizes)
    y = by_definition(layer, sizes)
    layer.check(layer.map("o", y.reshape(len(y), -1)))


@pytest.mark.slow
@torch.no_grad()
def test_long_sequences_in_tiles_and_parts() -> None:
    m = drawn(mixer(mechanism("nsa", **SIZES), width=6))
    x = inputs(m, 2, 600)
    torch.testing.assert_close(m(x), stream(m, x)[0], rtol=1e-9, atol=1e-9)


def test_blocks_must_fit_into_each_other() -> None:
    with pytest.raises(SizeError, match="stride=2"):
        mechanism("nsa", block=5, stride=2)
    with pytest.raises(SizeError, match="selected=24"):
        mechanism("nsa", selected=24)
    with pytest.raises(SizeError, match="first=1"):
        mechanism("nsa", topk=2)


def test_what_is_kept() -> None:
    """The paper's sizes after 100 tokens: (100 - 32) // 16 + 1 = 5 compressed blocks, 31 tokens
    that may belong to the sixth, 64 of a window.
    """
    part = mechanism("nsa", heads=2, head_dim=8, window=64)
    assert [item.bits.numbers for item in part.cache(100)] == [32 * 105, 32 * (64 + 31), 0]
    shared = mechanism("nsa", heads=2, head_dim=8, window=64, shared=True, pool="mean")
    assert [item.bits.numbers for item in shared.cache(100)] == [32 * 105, 0, 0]


@pytest.mark.slow
def test_heads_that_choose_together_read_what_no_small_number_bounds() -> None:
    """A group's ranks depend on what its heads find later, so a prefix counts as a whole there."""
    apart = mechanism("nsa", heads=2, head_dim=4)
    together = mechanism("nsa", heads=2, kv_heads=1, head_dim=4)
    assert apart.open_bits(10**6) < 10**6
    assert together.open_bits(10**6) == together.cache_bits(10**6)
    for part in ("nsa", "nsa(kv_heads=1)"):
        stack = Architecture.parse(f"{part} @ heads=2, head_dim=4")
        assert judge(stack, Eva(n=16, V=4))[0].status == "OPEN"
        assert judge(stack, SeqComp(L=2, m=8, branching=(1,)))[0].status == "OPEN"


def test_blocks_that_are_opened() -> None:
    """Theorem II speaks where messages and opened blocks are the same: 2 groups open 3 of them."""
    sizes = {"heads": 4, "kv_heads": 2, "head_dim": 8, "format": "bf16", "topk": 3, "window": 5}
    same = mechanism("nsa", block=16, stride=16, selected=16, **sizes)
    assert same.opened_blocks == OpenedBlocks(2, 16, 3, 2 * 16 * 16, 5)
    assert mechanism("nsa", **sizes).opened_blocks is None
