"""Chunked attention against transformers' Llama 4, without its norms of queries and keys.

Llama 4 turns neighbouring dimensions (2r, 2r + 1) where we turn halves (r, r + d/2): rows of Q and
K are put in our order. Q is divided by sqrt(d) as in test_softmax_peers.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.peer_tools import (
    PREFILL,
    agree,
    agree_in_steps,
    differ_when_perturbed,
    draw,
    filled,
    released,
)
from torch import Tensor

from separatrix.mixers import Mixer

WIDTH = 12
HEADS = 4
KV = 2
DIM = 6
LONGER = 1000
"""A chunk longer than every sequence: full attention."""


def halves(weight: Tensor, heads: int) -> Tensor:
    """Rows of every head with the even dimensions first."""
    rows = weight.unflatten(0, (heads, DIM))
    return torch.cat([rows[:, ::2], rows[:, 1::2]], 1).flatten(0, 1)


def llama4(size: int) -> tuple[Mixer, Any, Any]:
    """Our mixer with a layer's weights, the layer as a function of (x, cache, start), and a
    cache.
    """
    modeling, configuration = released("llama4")
    config = configuration.Llama4TextConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=DIM,
        num_hidden_layers=1,
        use_qk_norm=False,
        layer_types=["chunked_attention"],
        no_rope_layers=[1],
        attention_chunk_size=size,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    layer: Any = draw(modeling.Llama4TextAttention(config, 0))
    turn = modeling.Llama4TextRotaryEmbedding(config)
    sizes = {"heads": HEADS, "kv_heads": KV, "head_dim": DIM, "rope": True, "rope_base": 500}
    m = filled(
        *(("full", sizes) if size == LONGER else ("chunked", sizes | {"size": size})),
        width=WIDTH,
        q__weight=halves(layer.q_proj.weight, HEADS) * DIM**-0.5,
        k__weight=halves(layer.k_proj.weight, KV),
        v__weight=layer.v_proj.weight,
        o__weight=layer.o_proj.weight,
    )

    def peer(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        places = torch.arange(start, start + x.shape[1])[None]
        seen = modeling.create_chunked_causal_mask(
            config=config,
            inputs_embeds=x,
            attention_mask=None,
            past_key_values=cache,
            position_ids=places,
        )
        return layer(
            x, position_embeddings=turn(x, places), attention_mask=seen, past_key_values=cache
        )[0]

    return m, peer, modeling.DynamicCache(config=config)


_SIZES = [LONGER, 7, PREFILL + 2]


@pytest.mark.parametrize("size", _SIZES)
def test_chunked(size: int) -> None:
    m, peer, cache = llama4(size)
    agree(m, peer)
    agree_in_steps(m, peer, cache)


@pytest.mark.parametrize("size", _SIZES)
def test_a_changed_weight_is_seen(size: int) -> None:
    m, peer, _ = llama4(size)
    differ_when_perturbed(m, peer)
