"""Every mixer against its definition, written out token by token in NumPy from the weights
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from separatrix.laws import drawn, inputs
from separatrix.mechanisms import mechanism
from separatrix.mixers import mixer

Array = NDArray[np.float64]
WIDTH = 6
TOKENS = 23
_SIZES: dict[str, Any] = {"heads": 4, "head_dim": 3, "value_dim": 2}


class Heads:
    """Weights as arrays, and per head the queries, keys and values (t, .) of one sequence."""

    def __init__(self, name: str, sizes: dict[str, Any]) -> None:
        self.mixer = drawn(mixer(mechanism(name, **(_SIZES | sizes)), width=WIDTH))
        self.weights: dict[str, Array] = {
            k: p.detach().numpy() for k, p in self.mixer.named_parameters()
        }
        self.x: Array = inputs(self.mixer, 1, TOKENS)[0].numpy()
        self.dim = sizes.get("head_dim", 3)
        self.k_heads, self.v_heads = (
            self.weights[k].shape[0] // d for k, d in (("k.weight", self.dim), ("v.weight", 2))
        )

    def __iter__(self) -> Iterator[tuple[int, Array, Array, Array]]:
        q_heads = self.weights["q.weight"].shape[0] // self.dim
        for h in range(4):
            parts = (
                ("q", q_heads, self.dim),
                ("k", self.k_heads, self.dim),
                ("v", self.v_heads, 2),
            )
            q, k, v = (
                self.project(f"{part}.weight")[:, (i := h * n // 4) * d : (i + 1) * d]
                for part, n, d in parts
            )
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
    Heads("full", sizes).check(
        lambda h, q, k, v: np.stack(
            [softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(TOKENS)]
        )
    )


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
        state = 0.0
        total = 0.0
        outputs = []
        for i in range(TOKENS):
            state = state + np.outer(v[i], phi(feature, k[i]))
            total = total + phi(feature, k[i])
            y = state @ phi(feature, q[i])
            z = total @ phi(feature, q[i])
            outputs.append(y / z if normaliser and z != 0 else 0 * y if normaliser else y)
        return np.stack(outputs)

    Heads("linear", {"feature": feature, "normaliser": normaliser, "key_heads": 2}).check(head)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_gdn(key_heads: int) -> None:
    heads = Heads("gdn", {"key_heads": key_heads})
    z = heads.project("a.weight") + heads.weights["a.bias"]
    a = np.exp(-np.exp(heads.weights["rate"]) * np.log1p(np.exp(z)))
    b = sigmoid(heads.project("b.weight"))

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        state = np.zeros((2, 3))
        outputs = []
        for i in range(TOKENS):
            key = k[i] / np.linalg.norm(k[i])
            query = q[i] / np.linalg.norm(q[i])
            state = a[i, h] * state @ (np.eye(3) - b[i, h] * np.outer(key, key)) + b[
                i, h
            ] * np.outer(v[i], key)
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
            y = weights[i, 0, h] * (phi(feature, q[i]) @ phi(feature, k[i])) * v[i]
            start = 0
            for bit in reversed(
                range(i.bit_length())
            ):  # the largest bucket holds the earliest tokens
                if i >> bit & 1:
                    bucket = range(start, start + 2**bit)
                    y = y + weights[i, bit + 1, h] * sum(
                        (phi(feature, q[i]) @ phi(feature, k[j])) * v[j] for j in bucket
                    )
                    start += 2**bit
            assert start == i
            outputs.append(y)
        return np.stack(outputs)

    heads.check(head)


@pytest.mark.parametrize(
    ("block", "topk", "kv_heads"),
    [(1, 1, 4), (4, 2, 2), (5, 1, 1), (4, 50, 4), (23, 1, 4), (40, 3, 2)],
)
def test_sparse(block: int, topk: int, kv_heads: int) -> None:
    heads = Heads("sparse", {"block": block, "topk": topk, "kv_heads": kv_heads})
    alpha = heads.weights["pool_k"]
    beta = heads.weights["pool_v"]
    share = sigmoid(heads.weights["mix"])

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            blocks = [range(m * block, (m + 1) * block) for m in range(i // block)]
            tokens = list(range(i // block * block, i + 1))
            compressed = np.zeros(2)
            if blocks:
                scores = np.array(
                    [sum(a * k[j] for a, j in zip(alpha, b, strict=True)) @ q[i] for b in blocks]
                )
                compressed = softmax(scores) @ np.array(
                    [sum(a * v[j] for a, j in zip(beta, b, strict=True)) for b in blocks]
                )
                for m in np.argsort(-scores)[:topk]:
                    tokens += blocks[m]
            selected = softmax(k[tokens] @ q[i]) @ v[tokens]
            outputs.append(share[h] * compressed + (1 - share[h]) * selected)
        return np.stack(outputs)

    heads.check(head)


def chosen_blocks(scores: Array, topk: int) -> list[int]:
    """The blocks with the largest scores, the earlier of equal ones first."""
    return sorted(range(len(scores)), key=lambda m: (-scores[m], m))[:topk]


def turned(x: Array) -> Array:
    """Rotary embedding: dimensions r and r + d/2 of token i are the parts of a complex number
    that turns by i 10000^(-2r/d).
    """
    half = x.shape[1] // 2
    angles = np.arange(len(x))[:, None] * 10000.0 ** (-2 * np.arange(half) / x.shape[1])
    z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], 1)


@pytest.mark.parametrize("rope", [False, True])
@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize("window", [0, 1, 6, 100])
def test_sparse_window_and_gates(window: int, gates: bool, rope: bool) -> None:
    sizes: dict[str, Any] = {
        "block": 4,
        "topk": 2,
        "kv_heads": 2,
        "window": window,
        "gates": gates,
        "rope": rope,
    }
    heads = Heads("sparse", sizes | ({"head_dim": 4} if rope else {}))
    alpha = heads.weights["pool_k"]
    beta = heads.weights["pool_v"]
    branches = 3 if window else 2
    if gates:
        shares = sigmoid(heads.project("g.weight")).reshape(TOKENS, branches, 4)
    else:
        logits = [heads.weights["mix"], np.zeros(4)] + (
            [heads.weights["mix_window"]] if window else []
        )
        shares = np.exp(logits) / np.exp(logits).sum(0) * np.ones((TOKENS, 1, 1))

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        q, k = (turned(q), turned(k)) if rope else (q, k)
        outputs = []
        for i in range(TOKENS):
            blocks = [range(m * 4, (m + 1) * 4) for m in range(i // 4)]
            tokens = list(range(i // 4 * 4, i + 1))
            parts = [np.zeros(2)]
            if blocks:
                scores = np.array([alpha @ k[list(b)] @ q[i] for b in blocks])
                parts = [softmax(scores) @ np.array([beta @ v[list(b)] for b in blocks])]
                for m in chosen_blocks(scores, 2):
                    tokens += blocks[m]
            parts += [softmax(k[tokens] @ q[i]) @ v[tokens]]
            near = slice(max(0, i + 1 - window), i + 1)
            parts += [softmax(k[near] @ q[i]) @ v[near]] if window else []
            outputs.append(
                sum(share * part for share, part in zip(shares[i, :, h], parts, strict=True))
            )
        return np.stack(outputs)

    heads.check(head)


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


@pytest.mark.parametrize(
    ("topk", "index_heads", "kv_heads"), [(1, 1, 4), (2, 3, 2), (7, 2, 1), (23, 2, 4), (100, 1, 2)]
)
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


@pytest.mark.parametrize("size", [1, 2, 7, 23, 100])
def test_chunked(size: int) -> None:
    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        seen = [slice(i // size * size, i + 1) for i in range(TOKENS)]
        return np.stack([softmax(k[s] @ q[i]) @ v[s] for i, s in enumerate(seen)])

    Heads("chunked", {"size": size, "kv_heads": 2}).check(head)


@pytest.mark.parametrize("rope_dim", [0, 2, 4])
def test_mla(rope_dim: int) -> None:
    made = drawn(mixer(mechanism("mla", **_SIZES, latent=5, rope_dim=rope_dim), width=WIDTH))
    w: dict[str, Array] = {name: p.detach().numpy() for name, p in made.named_parameters()}
    x: Array = inputs(made, 1, TOKENS)[0].numpy()
    latent = x @ w["c.weight"].T
    latent = latent / np.sqrt((latent**2).mean(1, keepdims=True) + 1e-6)
    outputs = []
    for h in range(4):
        q = (x @ w["q.weight"].T).reshape(TOKENS, 4, 3 + rope_dim)[:, h]
        k = latent @ w["k.weight"][3 * h : 3 * h + 3].T
        v = latent @ w["v.weight"][2 * h : 2 * h + 2].T
        if rope_dim:
            q = np.concatenate([q[:, :3], turned(q[:, 3:])], 1)
            k = np.concatenate([k, turned(x @ w["r.weight"].T)], 1)
        outputs.append(np.stack([softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(TOKENS)]))
    wanted = np.concatenate(outputs, 1) @ w["o.weight"].T
    with torch.no_grad():
        found = made(torch.from_numpy(x)[None])[0].numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
