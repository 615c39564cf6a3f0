"""Every recurrent mixer, and attention with rotation and sinks, against its paper, token by token
in NumPy from the weights alone.

Sums over all earlier tokens stand where a paper has them, so that the recurrence is tested too.
Every comparison is made of the parallel form in one chunk, in chunks that do not divide the
sequence, in chunks of one token, and of the recurrence.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from separatrix.laws import drawn, inputs, stream
from separatrix.mechanisms import mechanism
from separatrix.mixers import mixer

Array = NDArray[np.float64]
WIDTH = 6
TOKENS = 23
_SIZES: dict[str, Any] = {"heads": 4, "head_dim": 4, "value_dim": 3}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "conv=4,gate=silu": {"conv": 4, "gate": "silu"},
    "conv=1,gate=norm,key_heads=2": {"conv": 1, "gate": "norm", "key_heads": 2},
    "gate=sigmoid,key_heads=1": {"gate": "sigmoid", "key_heads": 1},
    "value_dim=1": {"heads": 1, "head_dim": 2, "value_dim": 1, "gate": "silu"},
    "head_dim=1": {"heads": 2, "head_dim": 1, "value_dim": 2, "conv": 30},
}
EVEN = [name for name in OPTIONS if name != "head_dim=1"]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def softplus(x: Array) -> Array:
    return np.log1p(np.exp(x))


def unit(x: Array) -> Array:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class Layer:
    """A drawn mixer, its weights as arrays, and one sequence x (t, width)."""

    def __init__(self, name: str, **sizes: Any) -> None:
        self.mixer = drawn(mixer(mechanism(name, **sizes), width=WIDTH))
        self.weights: dict[str, Array] = {
            k: p.detach().numpy() for k, p in self.mixer.named_parameters()
        }
        self.x: Array = inputs(self.mixer, 1, TOKENS)[0].numpy()

    def map(self, name: str, x: Array | None = None) -> Array:
        """W x + bias of every token."""
        y = (self.x if x is None else x) @ self.weights[f"{name}.weight"].T
        return y + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else y

    def convolved(self, x: Array, *, activated: bool) -> Array:
        """sum_r c_r x_{i-r}, then SiLU, where the mixer has a convolution; the newest token's
        weight is the last.
        """
        if "conv.weight" not in self.weights:
            return x
        kernel = self.weights["conv.weight"]
        y = np.zeros_like(x)
        for i, r in product(range(len(x)), range(kernel.shape[1])):
            if i - r >= 0:
                y[i] += kernel[:, -1 - r] * x[i - r]
        return silu(y) if activated else y

    def check(self, y: Array) -> None:
        """Compares with the outputs (t, width) in every form."""
        x = torch.from_numpy(self.x)[None]
        with torch.no_grad():
            found = {"steps": stream(self.mixer, x)[0][0], "last": self.mixer.last(x)[0]}
            for chunk in (1, 5, 64):
                self.mixer.chunk = chunk
                found[f"chunk {chunk}"] = self.mixer(x)[0]
        for form, z in found.items():
            wanted = y[-1] if form == "last" else y
            np.testing.assert_allclose(
                z.numpy(), wanted, rtol=1e-10, atol=1e-10 * np.abs(y).max(), err_msg=form
            )


class Heads(Layer):
    """Queries and keys (t, h, d) and values (t, h, e), key heads copied to the heads that share
    them.
    """

    def __init__(
        self,
        name: str,
        options: dict[str, Any],
        *,
        activated: bool = True,
        unit_queries: bool = False,
        **sizes: Any,
    ) -> None:
        sizes = _SIZES | options | sizes
        super().__init__(name, **{k: v for k, v in sizes.items() if v is not None})
        self.heads = sizes["heads"]
        self.d = sizes["head_dim"]
        self.e = sizes["value_dim"]
        self.activated = activated
        self.unit_queries = unit_queries

    def qkv(
        self, *, d: int | None = None, e: int | None = None, mixed: tuple[Array, ...] = ()
    ) -> tuple[Array, Array, Array]:
        parts = [self.map(name, z) for name, z in zip("qkv", mixed or (self.x,) * 3, strict=True)]
        y = self.convolved(np.concatenate(parts, 1), activated=self.activated)
        q, k, v = np.split(y, np.cumsum([p.shape[1] for p in parts[:2]]), 1)
        return self.apart(q, d or self.d), self.apart(k, d or self.d), self.apart(v, e or self.e)

    def apart(self, x: Array, size: int) -> Array:
        """(t, channels) -> (t, h, size): head h reads group floor(h groups / heads)."""
        groups = x.reshape(len(x), -1, size)
        return groups[:, [h * groups.shape[1] // self.heads for h in range(self.heads)]]

    def output(self, y: Array, beside: Array | None = None) -> None:
        """Checks the heads' outputs (t, h, e) after the RMS norm and the gate, as options say.
        Released layers with queries of unit length divide these by sqrt(d); their norm, of epsilon
        1e-6, then sees the scaled outputs.
        """
        if "norm" in self.weights:
            y = y / np.sqrt(self.d) if self.unit_queries else y
            y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) * self.weights["norm"]
        y = (y if beside is None else y + beside).reshape(TOKENS, -1)
        match self.mixer.mechanism.sizes().get("gate"):
            case "silu":
                y = y * silu(self.map("gate"))
            case "sigmoid":
                y = y * sigmoid(self.map("gate"))
        self.check(self.map("o", y))


options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
even = pytest.mark.parametrize("options", [OPTIONS[name] for name in EVEN], ids=EVEN)


@options
@pytest.mark.parametrize("negative", [False, True])
def test_deltanet(options: dict[str, Any], negative: bool) -> None:
    # fast weight programmers, eqs. 23-24: what the key now finds is replaced by a mix of it and of
    # the new value
    layer = Heads("deltanet", options, negative=negative, unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b")) * (2 if negative else 1)
    q = unit(q)
    k = unit(k)
    y = np.zeros_like(v)
    for h in range(layer.heads):
        fast = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            found = fast @ k[i, h]
            mix = b[i, h] * v[i, h] + (1 - b[i, h]) * found
            fast = fast + np.outer(mix, k[i, h]) - np.outer(found, k[i, h])
            y[i, h] = fast @ q[i, h]
    layer.output(y)


@options
@pytest.mark.parametrize("negative", [False, True])
def test_gdn(options: dict[str, Any], negative: bool) -> None:
    # alpha in the form of Mamba-2, exp(-e^A softplus(. + dt_bias)); S_n is the sum of b_j v_j k_j^T
    # times all later transitions
    layer = Heads("gdn", options, negative=negative, unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b")) * (2 if negative else 1)
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros_like(v)
    for h, i in product(range(layer.heads), range(TOKENS)):
        later = np.eye(layer.d)
        for j in reversed(range(i + 1)):
            y[i, h] += b[j, h] * v[j, h] * (k[j, h] @ later @ q[i, h])
            later = a[j, h] * (np.eye(layer.d) - b[j, h] * np.outer(k[j, h], k[j, h])) @ later
    layer.output(y)


@options
@pytest.mark.parametrize(("householders", "negative"), [(1, True), (2, True), (3, False)])
def test_deltaproduct(options: dict[str, Any], householders: int, negative: bool) -> None:
    # S_i = S_{i-1} A_i + B_i, A_i = a_i H_1 ... H_n and B_i = sum_j b_j v_j k_j^T H_{j+1} ... H_n,
    # H_j = I - b_j k_j k_j^T
    layer = Heads(
        "deltaproduct", options, householders=householders, negative=negative, unit_queries=True
    )
    n = householders
    heads = layer.heads
    parts = [layer.map(name) for name in "qkv"]
    mixed = layer.convolved(np.concatenate(parts, 1), activated=True)
    q, k, v = np.split(mixed, np.cumsum([p.shape[1] for p in parts[:2]]), 1)
    q = unit(layer.apart(q, layer.d))
    keys = [unit(layer.apart(x, layer.d)) for x in np.split(k, n, 1)]
    values = [layer.apart(x, layer.e) for x in np.split(v, n, 1)]
    b = [sigmoid(x) * (2 if negative else 1) for x in np.split(layer.map("b"), n, 1)]
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros((TOKENS, heads, layer.e))
    for h in range(heads):
        state = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            reflections = [
                np.eye(layer.d) - b[j][i, h] * np.outer(keys[j][i, h], keys[j][i, h])
                for j in range(n)
            ]
            added = np.zeros_like(state)
            for j in range(n):
                new = b[j][i, h] * np.outer(values[j][i, h], keys[j][i, h])
                added = added + np.linalg.multi_dot([new, *reflections[j + 1 :], np.eye(layer.d)])
            state = state @ np.linalg.multi_dot([a[i, h] * np.eye(layer.d), *reflections]) + added
            y[i, h] = state @ q[i, h]
    layer.output(y)


@options
def test_kda(options: dict[str, Any]) -> None:
    # S_i = (I - b k k^T) Diag(a) S_{i-1} + b k v^T, read as S^T q, with S (d, e) as in the paper
    layer = Heads("kda", options, unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b"))
    z = layer.map("a.up", layer.map("a.down")).reshape(TOKENS, layer.heads, layer.d)
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"])[:, None] * softplus(z))
    y = np.zeros_like(v)
    for h in range(layer.heads):
        state = np.zeros((layer.d, layer.e))
        for i in range(TOKENS):
            erase = np.eye(layer.d) - b[i, h] * np.outer(k[i, h], k[i, h])
            state = erase @ np.diag(a[i, h]) @ state + b[i, h] * np.outer(k[i, h], v[i, h])
            y[i, h] = state.T @ q[i, h]
    layer.output(y)


@options
def test_gla(options: dict[str, Any]) -> None:
    # the paper's parallel form, (Q * B) (K / B)^T below the diagonal, B the cumulative products of
    # the gates
    layer = Heads("gla", options)
    q, k, v = layer.qkv()
    assert layer.weights["a.down.weight"].shape[0] == 16
    alpha = sigmoid(layer.map("a.up", layer.map("a.down"))).reshape(
        TOKENS, layer.heads, layer.d
    ) ** (1 / 16)
    b = np.cumprod(alpha, 0)
    layer.output(np.einsum("ihd,jhd,ij,jhe->ihe", q * b, k / b, np.tri(TOKENS), v))


@options
def test_hgrn2(options: dict[str, Any]) -> None:
    # h_t = Diag(f_t) h_{t-1} + (1 - f_t) i_t^T, read by the output gate SiLU(.); f_t = sigmoid(.),
    # the lower bound 0 of a first layer
    layer = Heads("hgrn2", options, activated=False)
    o, f, i = layer.qkv()
    o = silu(o)
    f = sigmoid(f)
    y = np.zeros_like(i)
    for h in range(layer.heads):
        state = np.zeros((layer.d, layer.e))
        for t in range(TOKENS):
            state = f[t, h][:, None] * state + np.outer(1 - f[t, h], i[t, h])
            y[t, h] = o[t, h] @ state
    layer.output(y)


def turned(x: Array, base: float = 10_000.0) -> NDArray[np.complex128]:
    """x_n e^{i n theta}, theta_r = base^(-2r/d), dimension r + d/2 the imaginary part of
    dimension r.
    """
    half = x.shape[-1] // 2
    theta = base ** (-2 * np.arange(half) / x.shape[-1])
    return (x[..., :half] + 1j * x[..., half:]) * np.exp(
        1j * np.arange(len(x))[:, None, None] * theta
    )


@even
def test_retnet(options: dict[str, Any]) -> None:
    # o_n = sum_{m<=n} gamma^{n-m} (Q_n e^{i n theta}) (K_m e^{i m theta})^dagger v_m, gamma = 1 -
    # 2^{-5-h}
    layer = Heads("retnet", options)
    q, k, v = layer.qkv()
    scores = np.einsum("nhd,mhd->hnm", turned(q), turned(k).conj()).real
    ago = np.arange(TOKENS)[:, None] - np.arange(TOKENS)
    decay = np.array(
        [np.where(ago >= 0, (1 - 2.0 ** (-5 - h)) ** np.abs(ago), 0) for h in range(layer.heads)]
    )
    layer.output(np.einsum("hnm,mhe->nhe", scores * decay, v))


@options
def test_lightning(options: dict[str, Any]) -> None:
    # O = ((Q K^T) * M) V, M_ij = lambda^{i-j}, lambda = e^{-slope}, slopes of ALiBi: 2^{-8/H}, and
    # each that times the one before
    layer = Heads("lightning", options)
    q, k, v = layer.qkv()
    slope = 1.0
    y = np.zeros_like(v)
    for h in range(layer.heads):
        slope *= 2 ** (-8 / layer.heads)
        for i, j in product(range(TOKENS), range(TOKENS)):
            if j <= i:
                y[i, h] += np.exp(-slope) ** (i - j) * (q[i, h] @ k[j, h]) * v[j, h]
    layer.output(y)


@pytest.mark.parametrize("conv", [0, 4])
@pytest.mark.parametrize(("groups", "size", "state"), [(1, 3, 5), (2, 1, 4), (4, 2, 1)])
def test_mamba2(groups: int, size: int, state: int, conv: int) -> None:
    # the paper's semiseparable matrix, M_ij = C_i^T (A_{j+1} ... A_i) B_j D_j, and the skip
    layer = Heads(
        "mamba2", {}, heads=4, head_dim=size, state=state, groups=groups, conv=conv, value_dim=None
    )
    c, b, x = layer.qkv(d=state, e=size)
    delta = softplus(layer.map("dt"))
    a = np.exp(-np.exp(layer.weights["rate"]) * delta)
    y = layer.weights["skip"][:, None] * x
    for h, i, j in product(range(4), range(TOKENS), range(TOKENS)):
        if j <= i:
            y[i, h] += (c[i, h] @ b[j, h]) * a[j + 1 : i + 1, h].prod() * delta[j, h] * x[j, h]
    layer.output(y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conv": 3, "gate": "silu"},
        {"gate": "norm", "key_heads": 1},
        {"heads": 2, "head_dim": 1, "value_dim": 5},
    ],
)
def test_rwkv(options: dict[str, Any]) -> None:
    # section 4 of the RWKV-7 paper: lerp(x_t, x_{t-1}, mu), d_t, w_t, a_t, kappa, removal key,
    # replacement key, wkv_t, bonus
    layer = Heads("rwkv", options, width=WIDTH)
    shape = (TOKENS, layer.heads, layer.d)
    w = layer.weights
    previous = np.vstack([np.zeros(WIDTH), layer.x[:-1]])
    z_r, z_k, z_v, z_w, z_a = (layer.x + (previous - layer.x) * mu for mu in w["mu"])
    r, k, v = layer.qkv(mixed=(z_r, z_k, z_v))
    d = layer.map("w.up", np.tanh(layer.map("w.down", z_w))).reshape(shape)
    decay = np.exp(-np.exp(-0.5) * sigmoid(d))
    rate = sigmoid(layer.map("a.up", layer.map("a.down", z_a))).reshape(shape)
    removal = unit(k * w["erased"])
    replacement = k * (1 + (rate - 1) * w["written"])
    y = np.zeros_like(v)
    for h in range(layer.heads):
        wkv = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            change = np.diag(decay[i, h]) - np.outer(removal[i, h], rate[i, h] * removal[i, h])
            wkv = wkv @ change + np.outer(v[i, h], replacement[i, h])
            y[i, h] = wkv @ r[i, h]
    layer.output(y, beside=np.einsum("thd,hd,thd->th", r, w["bonus"], replacement)[..., None] * v)


@options
def test_mlstm(options: dict[str, Any]) -> None:
    # eqs. 19-27 of the xLSTM paper as they stand, with exponential input gates and nothing that
    # keeps numbers small
    layer = Heads("mlstm", options)
    (q, k, v), i, f = layer.qkv(), np.exp(layer.map("i")), sigmoid(layer.map("f"))
    y = np.zeros_like(v)
    for h in range(layer.heads):
        c = np.zeros((layer.e, layer.d))
        n = np.zeros(layer.d)
        for t in range(TOKENS):
            c = f[t, h] * c + i[t, h] * np.outer(v[t, h], k[t, h])
            n = f[t, h] * n + i[t, h] * k[t, h]
            y[t, h] = c @ q[t, h] / max(abs(n @ q[t, h]), 1)
    layer.output(y)


@pytest.mark.parametrize("conv", [0, 1, 4])
@pytest.mark.parametrize("width", [1, 5])
def test_rglru(width: int, conv: int) -> None:
    # eqs. 1-4 of Griffin: a = sigmoid(Lambda), here with Lambda = -rate; a_t = a^{c r_t} with c = 8
    layer = Layer("rglru", width=width, conv=conv)
    u = layer.convolved(layer.map("v"), activated=False)
    a = sigmoid(-layer.weights["rate"]) ** (8 * sigmoid(layer.map("r", u)))
    gated = sigmoid(layer.map("g", u)) * u
    h = np.zeros(width)
    states = []
    for t in range(TOKENS):
        h = a[t] * h + np.sqrt(1 - a[t] ** 2) * gated[t]
        states.append(h)
    layer.check(layer.map("o", np.stack(states)))


@pytest.mark.parametrize("conv", [1, 3, 30])
@pytest.mark.parametrize("width", [1, 5])
def test_shortconv(width: int, conv: int) -> None:
    # LFM2: B, C, u = maps of x; y = B * u; z = conv(y); o = W (C * z)
    layer = Layer("shortconv", width=width, conv=conv)
    z = layer.convolved(layer.map("b") * layer.map("v"), activated=False)
    layer.check(layer.map("o", layer.map("c") * z))


def buckets(i: int) -> list[tuple[int, range]]:
    """(level, tokens) of the Fenwick tree at token i, as in the paper: take off the least
    significant bit until 0 is left.
    """
    found = [(0, range(i, i + 1))]
    end = i
    while end:
        lowest = end & -end
        found.append((lowest.bit_length(), range(end - lowest, end)))
        end -= lowest
    return found


def test_buckets_by_hand() -> None:
    assert buckets(0) == [(0, range(1))]
    assert buckets(6) == [(0, range(6, 7)), (2, range(4, 6)), (3, range(4))]
    assert buckets(13) == [(0, range(13, 14)), (1, range(12, 13)), (3, range(8, 12)), (4, range(8))]


@options
def test_loglinear_gdn(options: dict[str, Any]) -> None:
    # every token's value through the product of all later transitions, bucket by bucket, weighed by
    # its level
    layer = Heads("loglinear", options, base="gdn", unit_queries=True)
    (q, k, v), b = layer.qkv(), sigmoid(layer.map("b"))
    q = unit(q)
    k = unit(k)
    a = np.exp(-np.exp(layer.weights["rate"]) * softplus(layer.map("a")))
    y = np.zeros_like(v)
    weights = softplus(layer.map("level")).reshape(TOKENS, -1, layer.heads)
    for h in range(layer.heads):
        change = [
            a[i, h] * (np.eye(layer.d) - b[i, h] * np.outer(k[i, h], k[i, h]))
            for i in range(TOKENS)
        ]
        for i in range(TOKENS):
            for level, bucket in buckets(i):
                state = np.zeros((layer.e, layer.d))
                for j in bucket:
                    later = np.linalg.multi_dot(
                        [np.eye(layer.d), np.eye(layer.d), *change[j + 1 : i + 1]]
                    )
                    state += b[j, h] * np.outer(v[j, h], k[j, h]) @ later
                y[i, h] += weights[i, level, h] * (state @ q[i, h])
    layer.output(y)


@pytest.mark.parametrize("size", [None, 1, 7, 100])
@pytest.mark.parametrize(
    ("kv_heads", "conv", "base"), [(4, 0, 10_000), (2, 3, 100), (1, 1, 500_000)]
)
@pytest.mark.parametrize("sink", [True, False])
def test_softmax_with_rope(
    size: int | None, kv_heads: int, conv: int, base: int, sink: bool
) -> None:
    # scores Re <q e^{i n theta}, k e^{i m theta}>; a sink is one score more, of no value (gpt-oss)
    sizes = {"kv_heads": kv_heads, "conv": conv, "rope": True, "rope_base": base, "sink": sink}
    layer = Heads(
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
