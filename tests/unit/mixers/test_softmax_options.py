"""QK-norm, softcap and output gate of full and windowed attention, by hand; and what theory says of
QK-norm, in weights.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from support.each import each
from support.mixers import Array, Heads, sigmoid, softmax

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.laws import drawn, inputs
from separatrix.stacks.mechanisms import mechanism


def normed(x: Array, weight: Array) -> Array:
    return weight * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize("size", [None, 6])
def test_capped_scores(size: int | None) -> None:
    more = {} if size is None else {"size": size}
    heads = Heads("full" if size is None else "window", {"kv_heads": 2, "softcap": 2} | more)

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        rows = []
        for i in range(len(q)):
            start = 0 if size is None else max(0, i + 1 - size)
            scores = 2 * np.tanh(k[start : i + 1] @ q[i] / 2)
            rows.append(softmax(scores) @ v[start : i + 1])
        return np.array(rows)

    heads.check(head)


@pytest.mark.parametrize("kind", ["head", "each", "all"])
def test_norms_of_queries_and_keys(kind: str) -> None:
    heads = Heads("full", {"kv_heads": 2, "qk_norm": kind})
    q_all = heads.project("q.weight").reshape(-1, 4, 3)
    k_all = heads.project("k.weight").reshape(-1, 2, 3)
    q_norm, k_norm = heads.weights["q_norm.weight"], heads.weights["k_norm.weight"]
    if kind == "all":
        q_all, k_all = (
            normed(x.reshape(len(x), -1), w.ravel()).reshape(x.shape)
            for x, w in ((q_all, q_norm), (k_all, k_norm))
        )
    else:
        q_all, k_all = normed(q_all, q_norm), normed(k_all, k_norm)

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        q, k = q_all[:, h], k_all[:, h // 2]
        return np.array([softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(len(q))])

    heads.check(head)


@pytest.mark.parametrize("kind", ["sigmoid", "head"])
def test_output_gates(kind: str) -> None:
    heads = Heads("full", {"gate": kind})
    gates = sigmoid(heads.project("gate.weight")).reshape(len(heads.x), 4, -1)

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        y = np.array([softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(len(q))])
        return gates[:, h] * y

    heads.check(head)


@pytest.mark.parametrize("name", ["full", "window", "fox"])
@torch.no_grad()
def test_long_sequences_are_capped_in_parts(name: str) -> None:
    """Beyond one part, the last output is that of one softmax."""
    sizes: dict[str, Any] = {"heads": 2, "kv_heads": 1, "head_dim": 3, "softcap": 2}
    m = drawn(mixer(mechanism(name, **sizes), width=6))
    x = inputs(m, 2, 700)
    torch.testing.assert_close(m(x)[:, -1], m.last(x))


@each("name", ["sparse", "moba", "indexed", "chunked"])
def test_others_do_not_cap(name: str) -> None:
    with pytest.raises(SizeError, match=f"{name}: softcap=5"):
        mixer(mechanism(name, softcap=5), width=8)


@pytest.mark.parametrize("form", ["bf16", "fp16", "fp32"])
@torch.no_grad()
def test_a_normed_head_retrieves_by_addresses(form: str) -> None:
    """2^6 tokens whose keys are their addresses as +-1: whichever the query names, the head hands
    on its payload, whatever the norm makes of the length. Theory claims it in every format.
    """
    bits, n = 6, 64
    m: Any = mixer(
        mechanism("full", heads=1, head_dim=bits, value_dim=1, qk_norm="head", format=form),
        width=2 * bits + 1,
    ).to(DTYPES[form])
    for parameter in m.parameters():
        parameter.zero_()
    codes = torch.tensor(list(product((-1.0, 1.0), repeat=bits)))
    # a token: its address, the address that it asks for, its payload
    m.k.weight[:, :bits] = torch.eye(bits)
    m.q.weight[:, bits : 2 * bits] = torch.eye(bits)
    m.v.weight[0, -1] = 1
    m.o.weight[-1, 0] = 1
    m.q_norm.weight.fill_(4)
    m.k_norm.weight.fill_(4)
    payload = torch.randint(2, (n, 1), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
    x = torch.zeros(n, n + 1, 2 * bits + 1)
    x[:, :n, :bits] = codes
    x[:, :n, -1:] = payload
    x[:, n, bits : 2 * bits] = codes
    y = m.last(x.to(DTYPES[form]))[:, -1].float()
    assert ((y - payload[:, 0]).abs() < 0.01).all()
