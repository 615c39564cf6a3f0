"""RWKV-6: its definition token by token, values by hand, channel mixing, and edge cases."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from support.mixers import (
    ON,
    ONE,
    SCALARS,
    TOKENS,
    WIDTH,
    Array,
    Layer,
    RecurrentHeads,
    made_with,
    outputs_of,
    sigmoid,
    tokens_of,
)

from separatrix.core.errors import SizeError
from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import inputs, stream
from separatrix.stacks.mechanisms import mechanism

SIX: dict[str, Any] = {"version": 6, "width": WIDTH}


def shifted(x: Array) -> Array:
    return np.vstack([np.zeros(x.shape[1]), x[:-1]])


def time_mixed(options: dict[str, Any]) -> tuple[RecurrentHeads, Array]:
    """Section 4 of the paper: ddlerp, d_t, w_t and wkv_t, head by head."""
    layer = RecurrentHeads("rwkv", options, **SIX)
    w = layer.weights
    change = shifted(layer.x) - layer.x
    low = np.tanh(layer.map("down", layer.x + change * w["mu"])).reshape(TOKENS, 4, -1)
    mixed = [layer.x + change * (w["mus"][m] + low[:, m] @ w["up"][m].T) for m in range(4)]
    r, k, v = layer.qkv(mixed=tuple(mixed[:3]))
    d = layer.map("w.up", np.tanh(layer.map("w.down", mixed[3])))
    decay = np.exp(-np.exp(d)).reshape(TOKENS, layer.heads, layer.d)
    y = np.zeros_like(v)
    for h in range(layer.heads):
        wkv = np.zeros((layer.e, layer.d))
        for i in range(TOKENS):
            new = np.outer(v[i, h], k[i, h])
            y[i, h] = (wkv + new * w["bonus"][h]) @ r[i, h]
            wkv = wkv * decay[i, h] + new
    return layer, y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conv": 3, "gate": "silu"},
        {"gate": "norm", "key_heads": 1},
        {"heads": 2, "head_dim": 1, "value_dim": 5},
    ],
)
def test_rwkv6(options: dict[str, Any]) -> None:
    layer, y = time_mixed(options)
    layer.output(y)


def channel_mixed(layer: Layer, y: Array, *, gated: bool) -> Array:
    """y plus channel mixing of x + y, scaled to a root mean square of 1."""
    s = layer.x + y
    s = s / np.sqrt((s**2).mean(1, keepdims=True) + 1e-6)
    mixed = [s + (shifted(s) - s) * mu for mu in layer.weights["mixing.mu"]]
    c = layer.map("mixing.v", np.maximum(layer.map("mixing.k", mixed[0]), 0) ** 2)
    return y + (c * sigmoid(layer.map("mixing.r", mixed[1])) if gated else c)


@pytest.mark.parametrize("version", [6, 7])
def test_channel_mixing(version: int) -> None:
    # the time mixing of the same weights is that of a mixer without channel mixing
    sizes: dict[str, Any] = {"heads": 2, "head_dim": 3, "width": WIDTH, "version": version}
    layer = Layer("rwkv", **sizes, shifts=2)
    plain = mixer(mechanism("rwkv", **sizes), width=WIDTH).double()
    plain.load_state_dict(
        {k: p for k, p in layer.mixer.state_dict().items() if not k.startswith("mixing.")}
    )
    with torch.no_grad():
        y = plain(torch.from_numpy(layer.x)[None])[0].numpy()
    layer.check(channel_mixed(layer, y, gated=version == 6))
    assert layer.weights["mixing.k.weight"].shape[0] == {6: 21, 7: 24}[version]


def six(bonus: float, mu: float = 0.0) -> Mixer:
    """r and k read coordinate 0, v coordinate 1; w = 1/2."""
    return made_with(
        "rwkv",
        2,
        ONE | {"width": 2, "version": 6},
        mus=[[mu, mu]] * 4,
        up={},
        w__up__weight={},
        w__up__bias=[log(log(2))],
        bonus=[[bonus]],
        **SCALARS,
    )


def test_the_token_itself_has_a_weight_of_its_own_and_decays_once_it_is_kept() -> None:
    # S before each token: 0, 2*3, 6/2 + 1*5; read with r = 2, 1, 4; and p k v r
    y = outputs_of(six(10), tokens_of((2, 3), (1, 5), (4, 7)))
    assert y == pytest.approx([10 * 12, 6 + 10 * 5, 4 * 8 + 10 * 4 * 4 * 7], rel=1e-12)


def test_a_whole_shift_reads_the_token_before() -> None:
    # mu = 1: tokens are those before, 0 for the first; S before each: 0, 0, 2*3; read with 0, 2, 1
    assert outputs_of(six(0, mu=1), tokens_of((2, 3), (1, 5), (7, 7))) == pytest.approx(
        [0, 0, 6], rel=1e-12
    )


@torch.no_grad()
def test_a_strong_decay_forgets() -> None:
    # w = exp(-e^40) is 0: of the past only the token before is left
    m = made_with("rwkv", WIDTH, {"heads": 2, "head_dim": 3, "width": WIDTH, "version": 6})
    with torch.no_grad():
        m.get_parameter("w.up.bias").fill_(ON)
    x = inputs(m, 1, 70)
    # the token shift of the token before reaches one further back
    alone = [m(x[:, max(0, i - 2) : i + 1])[:, -1:] for i in range(70)]
    torch.testing.assert_close(m(x), torch.cat(alone, 1), rtol=1e-9, atol=1e-9)
    assert exp(-exp(ON)) == 0


@torch.no_grad()
def test_a_buffer_that_is_used_again_changes_no_state() -> None:
    for shifts in (1, 2):
        m = mixer(mechanism("rwkv", heads=2, head_dim=3, **SIX, shifts=shifts), width=WIDTH)
        m.reset(torch.Generator().manual_seed(0))
        x = torch.randn(1, 9, WIDTH, generator=torch.Generator().manual_seed(1))
        buffer = torch.zeros(1, WIDTH)
        state = m.init_state(1)
        outputs = []
        for t in range(9):
            y, state = m.step(buffer.copy_(x[:, t]), state, t)
            outputs.append(y)
            buffer.fill_(1e6)
        torch.testing.assert_close(torch.stack(outputs, 1), stream(m, x)[0], rtol=0, atol=0)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(SizeError, match="set width=8"):
        mixer(mechanism("rwkv", heads=2, head_dim=3, **SIX), width=8)
    with pytest.raises(SizeError, match="shifts=3: no mixer"):
        mixer(mechanism("rwkv", heads=2, head_dim=3, **SIX, shifts=3), width=WIDTH)
