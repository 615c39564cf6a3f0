"""Layers of transformers through `adapt`: their cache measured, their forms compared, against
mechanisms declared here where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

import separatrix as sx
from separatrix.mixers import MIXERS, mixer
from separatrix.mixers.laws import LAWS, asking, drawn
from separatrix.stacks.mechanisms import MECHANISMS, mechanism

transformers = pytest.importorskip("transformers")
WIDTH = 8


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """The three layers, registered for one test."""
    before = dict(MECHANISMS), dict(MIXERS)
    for maker in (qwen_gdn, hf_mamba):
        sx.register_mechanism(maker)
    sx.register_mechanism(cache_numbers=lambda t, *, heads: 2 * heads * 4 * t)(mistral)
    yield
    for registered, kept in zip((MECHANISMS, MIXERS), before, strict=True):
        registered.clear()
        registered.update(kept)  # type: ignore[arg-type]


def qwen_gdn(width: int, *, heads: int = 2) -> nn.Module:
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

    config = transformers.Qwen3NextConfig(
        hidden_size=width,
        linear_num_value_heads=heads,
        linear_num_key_heads=1,
        linear_key_head_dim=4,
        linear_value_head_dim=4,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
    )
    return sx.adapt(
        Qwen3NextGatedDeltaNet(config, 0), cache=lambda: transformers.DynamicCache(config=config)
    )


def hf_mamba(width: int, *, state: int = 4) -> nn.Module:
    from transformers.models.mamba.modeling_mamba import MambaMixer

    return sx.adapt(
        MambaMixer(
            transformers.MambaConfig(hidden_size=width, state_size=state, num_hidden_layers=1), 0
        )
    )


def mistral(width: int, *, heads: int = 2) -> nn.Module:
    from transformers.models.mistral.modeling_mistral import (
        MistralAttention,
        MistralRotaryEmbedding,
    )

    config = transformers.MistralConfig(
        hidden_size=width,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=4,
        num_hidden_layers=1,
        sliding_window=None,
    )
    config._attn_implementation = "sdpa"
    rotary = MistralRotaryEmbedding(config)

    def inputs(x: Tensor, t: int) -> dict[str, object]:
        return {
            "position_embeddings": rotary(x, torch.arange(t, t + x.shape[1], device=x.device)[None])
        }

    return sx.adapt(MistralAttention(config, 0), inputs=inputs)


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of steps, in which a user has no shapes checked either."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def _keeps(name: str, law: str) -> None:
    made = drawn(mixer(mechanism(name, width=WIDTH), width=WIDTH))
    with asking(tolerance=1e-4):  # both recurrences compute in float32 inside
        LAWS[law](made)


@pytest.mark.parametrize(
    ("name", "law"), [("qwen_gdn", "alone"), ("hf_mamba", "alone"), ("mistral", "alone")]
)
def test_adapted_layers_keep_the_laws(name: str, law: str) -> None:
    _keeps(name, law)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "law"),
    [
        *(
            (name, law)
            for name in ("qwen_gdn", "hf_mamba", "mistral")
            for law in ("step=forward", "cache", "NaN")
        ),
        *(
            (name, law)
            for name in ("qwen_gdn", "hf_mamba", "mistral")
            for law in ("causal", "refuses", "saved")
        ),
        ("qwen_gdn", "stacks"),
        ("hf_mamba", "stacks"),
    ],
)
def test_adapted_layers_keep_the_long_laws(name: str, law: str) -> None:
    """Gradients through caches written in place, a thousand tokens, and vmap over models that do
    so.
    """
    _keeps(name, law)


def test_measured_caches_by_hand() -> None:
    """Qwen3-Next keeps K inputs of its convolution, one more than it needs; Mamba d_inner (N +
    K) numbers; attention two vectors per token.
    """
    assert mechanism("qwen_gdn", width=WIDTH).cache_bits(50) == 32 * (2 * 4 * 4 + 4 * (4 + 4 + 8))
    assert mechanism("hf_mamba", width=WIDTH, state=5).cache_bits(50) == 32 * 2 * WIDTH * (5 + 4)
    assert mechanism("mistral", width=WIDTH).cache_bits(50) == 32 * 50 * 2 * 2 * 4
