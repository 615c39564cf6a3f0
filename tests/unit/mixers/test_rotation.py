"""Softmax attention with rotation and sinks against its paper, token by token in NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.mixers import TOKENS, RecurrentHeads, turned

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva
from separatrix.theory import judge


@pytest.mark.parametrize("size", [None, 1, 7, 100])
@pytest.mark.parametrize(
    ("kv_heads", "conv", "base", "sink"),
    [(4, 0, 10_000, True), (2, 3, 100, False), (1, 1, 500_000, True)],
)
def test_softmax_with_rope(
    size: int | None, kv_heads: int, conv: int, base: int, sink: bool
) -> None:
    # scores Re <q e^{i n theta}, k e^{i m theta}>; a sink is one score more, of no value (gpt-oss)
    sizes = {"kv_heads": kv_heads, "conv": conv, "rope": True, "rope_base": base, "sink": sink}
    layer = RecurrentHeads(
        "full" if size is None else "window",
        sizes | ({} if size is None else {"size": size}),
        activated=False,
    )
    q, k, v = layer.qkv()
    scores = np.einsum("nhd,mhd->nmh", turned(q, base), turned(k, base).conj()).real
    y = np.zeros_like(v)
    for i, h in product(range(TOKENS), range(4)):
        seen = range(0 if size is None else max(0, i - size + 1), i + 1)
        e = np.exp([scores[i, j, h] for j in seen])
        below = e.sum() + (np.exp(layer.weights["sink"][h]) if sink else 0)
        y[i, h] = sum(e_j * v[j, h] for e_j, j in zip(e, seen, strict=True)) / below
    layer.output(y)


@pytest.mark.parametrize("spec", ["full", "indexed(index_dim=64)"])
def test_rotated_heads_are_not_taken_for_those_that_compare_addresses(spec: str) -> None:
    plain = judge(Architecture.parse(spec), Eva(n=64, V=64))[0]
    rotated = judge(Architecture.parse(f"{spec} @ rope=true"), Eva(n=64, V=64))[0]
    assert "address_bits" in plain.numbers
    assert "address_bits" not in rotated.numbers
