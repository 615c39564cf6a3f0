"""Forgetting attention by hand, and its gates at their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import Array, Heads, sigmoid, softmax

from separatrix.mixers import mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.laws import drawn, inputs, stream
from separatrix.stacks.mechanisms import mechanism

SIZES: dict[str, Any] = {"heads": 4, "kv_heads": 2, "head_dim": 3, "value_dim": 2}


def test_equals_the_definition() -> None:
    """a_ij goes as exp(<q_i, k_j>) times the product of the gates of tokens j + 1 to i."""
    heads = Heads("fox", {"kv_heads": 2})
    gates = sigmoid(heads.project("f.weight") + heads.weights["f.bias"])

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        rows = []
        for i in range(len(q)):
            kept = np.array([np.prod(gates[j + 1 : i + 1, h]) for j in range(i + 1)])
            rows.append(softmax(k[: i + 1] @ q[i] + np.log(kept)) @ v[: i + 1])
        return np.array(rows)

    heads.check(head)


@pytest.mark.parametrize(
    "form", ["bf16", *(pytest.param(form, marks=pytest.mark.slow) for form in ("fp16", "fp32"))]
)
def test_open_gates_make_it_full_attention_bit_for_bit(form: str) -> None:
    """softplus(-200) is less than the smallest number of float32: log gates are 0. This is what
    constructions for full attention rest on when they are claimed for it.
    """
    fox, full = (
        drawn(mixer(mechanism(name, format=form, **SIZES), width=8)).to(DTYPES[form])
        for name in ("fox", "full")
    )
    weights = fox.state_dict()
    weights["f.weight"].zero_()
    weights["f.bias"].fill_(200)
    fox.load_state_dict(weights)
    full.load_state_dict({name: w for name, w in weights.items() if not name.startswith("f.")})
    x = inputs(fox, 2, 60).to(DTYPES[form])
    with torch.no_grad():
        assert torch.equal(fox(x), full(x))
        assert torch.equal(stream(fox, x)[0], stream(full, x)[0])
        assert not stream(fox, x)[1]["gates"].any()


@torch.no_grad()
def test_gates_may_be_wider_than_values() -> None:
    fox = drawn(mixer(mechanism("fox", gate_format="fp64", **SIZES), width=8))
    x = inputs(fox, 2, 9)
    assert torch.allclose(fox(x), stream(fox, x)[0], atol=1e-5)


@torch.no_grad()
def test_shut_gates_leave_the_token_alone() -> None:
    fox: Any = drawn(mixer(mechanism("fox", **SIZES), width=8))
    fox.f.weight.zero_()
    fox.f.bias.fill_(-1e4)
    x = inputs(fox, 1, 300)
    v = fox.v(x).unflatten(-1, (2, 2)).repeat_interleave(2, 2)
    torch.testing.assert_close(fox(x), fox.o(v.flatten(2)))


@torch.no_grad()
def test_far_contexts_cost_near_tokens_no_digits() -> None:
    """Sums from the start would be 2^-13 off at 20,000 tokens of half-open gates in float32; both
    forms agree to 1e-5 with float64.
    """
    fox: Any = drawn(mixer(mechanism("fox", heads=1, head_dim=4), width=4))
    fox.f.bias.fill_(0)
    x = inputs(fox, 1, 20_000)
    wanted = fox.last(x)
    single = fox.float()
    assert (single.last(x.float()) - wanted).abs().max() < 1e-5 * wanted.abs().max()
    parts = single(x[:, :3000].float())[:, -1]
    wanted = single.double().last(x[:, :3000])
    assert (parts - wanted).abs().max() < 1e-5 * wanted.abs().max()


def test_gates_are_stored_as_declared() -> None:
    for declared, stored in ((None, torch.float32), ("bf16", torch.bfloat16)):
        sizes = {"format": "bf16", "gate_format": declared, **SIZES}
        fox = mixer(mechanism("fox", **sizes), width=8)
        fox.reset(torch.Generator().manual_seed(0))
        fox = fox.to(torch.bfloat16)
        x = inputs(fox, 1, 9).bfloat16()
        y, state = stream(fox, x)
        assert state["gates"].dtype == stored
        torch.testing.assert_close(fox(x), y, rtol=0.02, atol=0.02)
    # 9 tokens of 2 (3 + 2) numbers and of 4 gates
    assert mechanism("fox", format="bf16", **SIZES).cache_bits(9) == 9 * (10 * 16 + 4 * 32)
