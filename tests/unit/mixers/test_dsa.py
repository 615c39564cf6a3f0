"""DeepSeek sparse attention by hand: what is chosen, and what is read of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mixers import Array, Layer, softmax

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import mechanism
from separatrix.tasks import Eva
from separatrix.theory import judge

SIZES: dict[str, Any] = {
    "heads": 2,
    "head_dim": 3,
    "value_dim": 2,
    "latent": 5,
    "rope_dim": 4,
    "index_heads": 3,
    "index_dim": 6,
    "topk": 4,
}


def scaled(x: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def turned(x: Array) -> Array:
    """The first 4 of the last axis, as two complex numbers, turn with the first axis."""
    theta = 10_000.0 ** (-2 * np.arange(2) / 4)
    z = (x[..., :2] + 1j * x[..., 2:4]) * np.exp(
        1j * np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) * theta
    )
    return np.concatenate([z.real, z.imag, x[..., 4:]], -1)


@pytest.mark.parametrize("queries", [None, 5])
def test_equals_the_definition(queries: int | None) -> None:
    layer = Layer("dsa", **SIZES, query_latent=queries)
    asking = layer.x if queries is None else scaled(layer.map("a"))
    tokens = len(layer.x)
    q = layer.map("q", asking).reshape(tokens, 2, 7)
    q = np.concatenate([q[..., :3], turned(q[..., 3:])], -1)
    c = scaled(layer.map("c"))
    r = turned(layer.map("r"))
    k = layer.map("k", c).reshape(tokens, 2, 3)
    v = layer.map("v", c).reshape(tokens, 2, 2)
    index_q = turned(layer.map("index_q", asking).reshape(tokens, 3, 6))
    raw = layer.map("index_k")
    centred = raw - raw.mean(-1, keepdims=True)
    index_k = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    index_k = turned(
        index_k * layer.weights["index_norm.weight"] + layer.weights["index_norm.bias"]
    )
    w = layer.map("index_w")
    y = np.zeros((tokens, 2, 2))
    for i in range(tokens):
        scores = [
            sum(w[i, h] * max(0.0, index_q[i, h] @ index_k[j]) for h in range(3))
            for j in range(i + 1)
        ]
        chosen = sorted(range(i + 1), key=lambda j: (-scores[j], j))[:4]
        for h in range(2):
            keys = np.concatenate([k[chosen, h], r[chosen]], 1)
            y[i, h] = softmax(keys @ q[i, h]) @ v[chosen, h]
    layer.check(layer.map("o", y.reshape(tokens, -1)))


def test_its_index_keys_must_hold_what_is_turned() -> None:
    with pytest.raises(SizeError, match="index_dim=6"):
        mechanism("dsa", rope_dim=8, index_dim=6)
    assert mechanism("dsa", rope_dim=8, index_dim=6, rope=False).rotation is None


def test_theory_asks_for_twice_the_bits_in_the_indexer() -> None:
    """6 address bits and 2 tags, each beside its negative, beside 4 numbers that turn, which tell
    no 65 places apart in bf16; queries come through a latent that holds 8 bits.
    """

    def status(**sizes: int) -> str:
        given = {"head_dim": 8, "value_dim": 2, "latent": 10, "index_dim": 20, "query_latent": 8}
        said = ", ".join(
            f"{k}={v}" for k, v in ({"rope_dim": 4, "topk": 1} | given | sizes).items()
        )
        return judge(Architecture.parse(f"dsa @ heads=1, bf16, {said}"), Eva(n=64, V=4))[0].status

    assert status() == "SOLVABLE"
    for short in ("head_dim", "latent", "query_latent", "value_dim"):
        assert status(**{short: {"head_dim": 7, "latent": 9, "value_dim": 1}.get(short, 7)}) == (
            "OPEN"
        ), short
    assert status(index_dim=19) == "OPEN"
    # who reads every token need not choose
    assert status(index_dim=19, topk=65) == "SOLVABLE"
