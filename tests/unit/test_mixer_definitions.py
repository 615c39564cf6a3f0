"""Every mixer against its definition, written out token by token in NumPy from the weights alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from separatrix.architecture.mechanisms import mechanism
from separatrix.mixers import mixer
from separatrix.mixers.laws import drawn, inputs

Array = NDArray[np.float64]
WIDTH, TOKENS = 6, 23
_SIZES: dict[str, Any] = {"heads": 4, "head_dim": 3, "value_dim": 2}


class Heads:
    """Weights as arrays, and per head the queries, keys and values (t, .) of one sequence."""

    def __init__(self, name: str, sizes: dict[str, Any]) -> None:
        self.mixer = drawn(mixer(mechanism(name, **(_SIZES | sizes)), width=WIDTH))
        self.weights: dict[str, Array] = {k: p.detach().numpy() for k, p in self.mixer.named_parameters()}
        self.x: Array = inputs(self.mixer, 1, TOKENS)[0].numpy()
        self.k_heads, self.v_heads = (self.weights[k].shape[0] // d for k, d in (("k.weight", 3), ("v.weight", 2)))

    def __iter__(self) -> Iterator[tuple[int, Array, Array, Array]]:
        q_heads = self.weights["q.weight"].shape[0] // 3
        for h in range(4):
            parts = (("q", q_heads, 3), ("k", self.k_heads, 3), ("v", self.v_heads, 2))
            q, k, v = (self.project(f"{part}.weight")[:, (i := h * n // 4) * d : (i + 1) * d] for part, n, d in parts)
            yield h, q, k, v

    def project(self, name: str) -> Array:
        return self.x @ self.weights[name].T

    def check(self, head: Callable[[int, Array, Array, Array], Array]) -> None:
        """Compares with `head`, the outputs (t, value_dim) of one head."""
        y = np.concatenate([head(*parts) for parts in self], 1) @ self.weights["o.weight"].T
        with torch.no_grad():
            found = self.mixer(torch.from_numpy(self.x)[None])[0].numpy()
        np.testing.assert_allclose(found, y, rtol=1e-10, atol=1e-10 * np.abs(y).max())


def softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max())
    return e / e.sum()


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def phi(name: str, x: Array) -> Array:
    match name:
        case "elu":
            return np.where(x > 0, x + 1, np.exp(x))
        case "relu":
            return np.maximum(x, 0)
        case "identity":
            return x
        case _:
            return np.concatenate([[1.0], x, np.outer(x, x).ravel() / np.sqrt(2)])


@pytest.mark.parametrize("sizes", [{}, {"kv_heads": 2}, {"kv_heads": 1}])
def test_full(sizes: dict[str, Any]) -> None:
    Heads("full", sizes).check(lambda h, q, k, v: np.stack([softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(TOKENS)]))


@pytest.mark.parametrize("size", [1, 2, 7, 23, 100])
def test_window(size: int) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        seen = [slice(max(0, i - size + 1), i + 1) for i in range(TOKENS)]
        return np.stack([softmax(k[s] @ q[i]) @ v[s] for i, s in enumerate(seen)])

    Heads("window", {"size": size, "kv_heads": 2}).check(head)


@pytest.mark.parametrize("normaliser", [True, False])
@pytest.mark.parametrize("feature", ["elu", "relu", "identity", "taylor"])
def test_linear(feature: str, normaliser: bool) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        state, total, outputs = 0.0, 0.0, []
        for i in range(TOKENS):
            state, total = state + np.outer(v[i], phi(feature, k[i])), total + phi(feature, k[i])
            y, z = state @ phi(feature, q[i]), total @ phi(feature, q[i])
            outputs.append(y / z if normaliser and z != 0 else 0 * y if normaliser else y)
        return np.stack(outputs)

    Heads("linear", {"feature": feature, "normaliser": normaliser, "key_heads": 2}).check(head)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_gdn(key_heads: int) -> None:
    heads = Heads("gdn", {"key_heads": key_heads})
    z = heads.project("a.weight") + heads.weights["a.bias"]
    a, b = np.exp(-np.exp(heads.weights["rate"]) * np.log1p(np.exp(z))), sigmoid(heads.project("b.weight"))

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        state, outputs = np.zeros((2, 3)), []
        for i in range(TOKENS):
            key, query = k[i] / np.linalg.norm(k[i]), q[i] / np.linalg.norm(q[i])
            state = a[i, h] * state @ (np.eye(3) - b[i, h] * np.outer(key, key)) + b[i, h] * np.outer(v[i], key)
            outputs.append(state @ query)
        return np.stack(outputs)

    heads.check(head)


@pytest.mark.parametrize("feature", ["elu", "relu", "identity"])
def test_loglinear(feature: str) -> None:
    heads = Heads("loglinear", {"feature": feature})
    weights = np.log1p(np.exp(heads.project("level.weight"))).reshape(TOKENS, -1, 4)

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            y, start = weights[i, 0, h] * (phi(feature, q[i]) @ phi(feature, k[i])) * v[i], 0
            for bit in reversed(range(i.bit_length())):  # the largest bucket holds the earliest tokens
                if i >> bit & 1:
                    bucket = range(start, start + 2**bit)
                    y = y + weights[i, bit + 1, h] * sum((phi(feature, q[i]) @ phi(feature, k[j])) * v[j] for j in bucket)
                    start += 2**bit
            assert start == i
            outputs.append(y)
        return np.stack(outputs)

    heads.check(head)


@pytest.mark.parametrize(("block", "topk", "kv_heads"), [(1, 1, 4), (4, 2, 2), (5, 1, 1), (4, 50, 4), (23, 1, 4), (40, 3, 2)])
def test_sparse(block: int, topk: int, kv_heads: int) -> None:
    heads = Heads("sparse", {"block": block, "topk": topk, "kv_heads": kv_heads})
    alpha, beta, share = heads.weights["pool_k"], heads.weights["pool_v"], sigmoid(heads.weights["mix"])

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            blocks = [range(m * block, (m + 1) * block) for m in range(i // block)]
            tokens, compressed = list(range(i // block * block, i + 1)), np.zeros(2)
            if blocks:
                scores = np.array([sum(a * k[j] for a, j in zip(alpha, b, strict=True)) @ q[i] for b in blocks])
                compressed = softmax(scores) @ np.array([sum(a * v[j] for a, j in zip(beta, b, strict=True)) for b in blocks])
                for m in np.argsort(-scores)[:topk]:
                    tokens += blocks[m]
            selected = softmax(k[tokens] @ q[i]) @ v[tokens]
            outputs.append(share[h] * compressed + (1 - share[h]) * selected)
        return np.stack(outputs)

    heads.check(head)
