"""Mixers by hand: their weights as arrays, their functions in NumPy, and weights that are set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import close, drawn, inputs, stream
from separatrix.stacks.mechanisms import mechanism
from separatrix.tasks import TwoSum

Array = NDArray[np.float64]


WIDTH = 6


TOKENS = 23


SIZES: dict[str, Any] = {"heads": 4, "head_dim": 3, "value_dim": 2}


class Heads:
    """Weights as arrays, and per head the queries, keys and values (t, .) of one sequence."""

    def __init__(self, name: str, sizes: dict[str, Any]) -> None:
        self.mixer = drawn(mixer(mechanism(name, **(SIZES | sizes)), width=WIDTH))
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


def chosen_blocks(scores: Array, topk: int) -> list[int]:
    """The blocks with the largest scores, the earlier of equal ones first."""
    return sorted(range(len(scores)), key=lambda m: (-scores[m], m))[:topk]


def rotated(x: Array) -> Array:
    """Rotary embedding: dimensions r and r + d/2 of token i are the parts of a complex number
    that turns by i 10000^(-2r/d).
    """
    half = x.shape[1] // 2
    angles = np.arange(len(x))[:, None] * 10000.0 ** (-2 * np.arange(half) / x.shape[1])
    z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], 1)


RECURRENT_SIZES: dict[str, Any] = {"heads": 4, "head_dim": 4, "value_dim": 3}


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "conv=4,gate=silu": {"conv": 4, "gate": "silu"},
    "conv=1,gate=norm,key_heads=2": {"conv": 1, "gate": "norm", "key_heads": 2},
    "gate=sigmoid,key_heads=1": {"gate": "sigmoid", "key_heads": 1},
    "value_dim=1": {"heads": 1, "head_dim": 2, "value_dim": 1, "gate": "silu"},
    "head_dim=1": {"heads": 2, "head_dim": 1, "value_dim": 2, "conv": 30},
}


EVEN = [name for name in OPTIONS if name != "head_dim=1"]


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


class RecurrentHeads(Layer):
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
        sizes = RECURRENT_SIZES | options | sizes
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


def turned(x: Array, base: float = 10_000.0) -> NDArray[np.complex128]:
    """x_n e^{i n theta}, theta_r = base^(-2r/d), dimension r + d/2 the imaginary part of
    dimension r.
    """
    half = x.shape[-1] // 2
    theta = base ** (-2 * np.arange(half) / x.shape[-1])
    return (x[..., :half] + 1j * x[..., half:]) * np.exp(
        1j * np.arange(len(x))[:, None, None] * theta
    )


def one_head(name: str, **sizes: Any) -> Mixer:
    """Width 2, one head of dimension 1: q and k read the first coordinate, v the second, which
    is written back.
    """
    m = mixer(mechanism(name, heads=1, head_dim=1, **sizes), width=2)
    return with_weights(
        drawn(m), q__weight=[[1, 0]], k__weight=[[1, 0]], v__weight=[[0, 1]], o__weight=[[0], [1]]
    )


@torch.no_grad()
def both_forms(m: Mixer, x: Tensor) -> list[float]:
    """The second coordinate of every output, the same by both forms."""
    y, (steps, _) = m(x), stream(m, x)
    close(steps, y, "forms")
    return y[0, :, 1].tolist()


ON = 40.0
"""A logit whose sigmoid is 1 to within e^-40; of its negative it is e^-40."""


def with_weights(m: Mixer, **weights: Any) -> Mixer:
    """The mixer in float64 with some parameters (dots written as __) set: by value, or a matrix
    by {(row, column): value} and 0 elsewhere.
    """
    m = m.double()
    parameters = dict(m.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            parameter = parameters[name.replace("__", ".")]
            if isinstance(value, dict):
                parameter.zero_()
                for place, number in value.items():
                    parameter[place] = number
            else:
                parameter.copy_(torch.tensor(value, dtype=torch.float64))
    return m


def made_with(name: str, width: int, sizes: dict[str, Any], **weights: Any) -> Mixer:
    return with_weights(drawn(mixer(mechanism(name, **sizes), width=width)), **weights)


def tokens_of(*tokens: tuple[float, ...]) -> Tensor:
    return torch.tensor([tokens], dtype=torch.float64)


@torch.no_grad()
def outputs_of(m: Mixer, x: Tensor, channel: int = 0) -> list[float]:
    """One coordinate of every output, the same in chunks of 1, 3 and 64 tokens and by the
    recurrence.
    """
    y = stream(m, x)[0]
    for chunk in (1, 3, 64):
        m.chunk = chunk
        torch.testing.assert_close(m(x), y, rtol=1e-9, atol=1e-9 * y.abs().max().item())
    return y[0, :, channel].tolist()


ONE = {"heads": 1, "head_dim": 1, "value_dim": 1}


# width 2, one head of dimension 1: q and k read the first coordinate, v the second; the output is
# the first coordinate
SCALARS: dict[str, Any] = {
    "q__weight": [[1, 0]],
    "k__weight": [[1, 0]],
    "v__weight": [[0, 1]],
    "o__weight": [[1], [0]],
}


# width 6, one head of dimension 2 and values of 1: b reads coordinate 0, k 1 and 2, q 3 and 4, v 5
PLANE = {"heads": 1, "head_dim": 2, "value_dim": 1}


PLANAR: dict[str, Any] = {
    "b__weight": {(0, 0): 1},
    "k__weight": {(0, 1): 1, (1, 2): 1},
    "q__weight": {(0, 3): 1, (1, 4): 1},
    "v__weight": {(0, 5): 1},
    "o__weight": {(0, 0): 1},
}


SMALL: dict[str, Any] = {"heads": 2, "head_dim": 3, "value_dim": 5}


def made(name: str, **sizes: Any) -> Mixer:
    return drawn(mixer(mechanism(name, **(SMALL | sizes)), width=6))


TWO_SUM = TwoSum(n=64, M=128)
"""64 tokens, and the query."""
