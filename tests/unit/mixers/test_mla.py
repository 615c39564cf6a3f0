"""Multi-head latent attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.mixers import SIZES, TOKENS, WIDTH, Array, rotated, softmax

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.laws import drawn, inputs, stream
from separatrix.stacks.mechanisms import mechanism


@pytest.mark.parametrize("rope_dim", [0, 2, 4])
def test_mla(rope_dim: int) -> None:
    made = drawn(mixer(mechanism("mla", **SIZES, latent=5, rope_dim=rope_dim), width=WIDTH))
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
            q = np.concatenate([q[:, :3], rotated(q[:, 3:])], 1)
            k = np.concatenate([k, rotated(x @ w["r.weight"].T)], 1)
        outputs.append(np.stack([softmax(k[: i + 1] @ q[i]) @ v[: i + 1] for i in range(TOKENS)]))
    wanted = np.concatenate(outputs, 1) @ w["o.weight"].T
    with torch.no_grad():
        found = made(torch.from_numpy(x)[None])[0].numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


@torch.no_grad()
def test_mla_step_does_not_need_the_keys() -> None:
    m = drawn(
        mixer(mechanism("mla", heads=2, head_dim=3, value_dim=5, latent=4, rope_dim=2), width=6)
    )
    _, state = stream(m, inputs(m, 1, 7))
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "latents": (1, 7, 4),
        "rotated": (1, 7, 2),
    }
    assert (
        state["latents"].square().mean(-1).sub(1).abs().max() < 1e-4
    )  # the latent is kept after its norm


def test_odd_rotated_part_is_refused() -> None:
    with pytest.raises(SizeError, match="3 rotated"):
        mechanism("mla", rope_dim=3)
