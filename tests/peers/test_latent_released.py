"""Multi-head latent attention against transformers' DeepSeek-V3 without a latent of the queries,
which ours has not (q_lora_rank=None).

What differs, and how it is matched:
- the weights of the latent's norm stand there beside W^K and W^V, here in them: columns of both are
  multiplied by them.
- W^K and W^V are one map there, rows of every head (key, value); the latent's map and the rotated
  key's are one map there.
- the rotated part turns neighbouring dimensions there if `rope_interleave`, halves here: its rows
  of Q and R are put in our order.
- Q is divided by sqrt(d), d = head_dim + rope_dim, as in test_softmax_peers.py.
- rope_dim = 0 does not run there: the rotated part's rows of Q and R are zero instead. sqrt(d)
  still counts them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.peer_tools import agree, agree_in_steps, differ_when_perturbed, draw, filled, released
from torch import Tensor

from separatrix.mixers import Mixer

WIDTH = 12
HEADS = 3
DIM = 4
ROPE = 6
LATENT = 7
VALUE = 5


def ordered(rows: Tensor, *, interleaved: bool) -> Tensor:
    """(..., rope_dim, w) with pairs in halves."""
    return torch.cat([rows[..., ::2, :], rows[..., 1::2, :]], -2) if interleaved else rows


def deepseek(*, interleaved: bool = True, rope: bool = True) -> tuple[Mixer, Any, Any]:
    """Our mixer with a layer's weights, the layer as a function of (x, cache, start), and a
    cache.
    """
    modeling, configuration = released("deepseek_v3")
    config = configuration.DeepseekV3Config(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_hidden_layers=1,
        q_lora_rank=None,
        kv_lora_rank=LATENT,
        qk_nope_head_dim=DIM,
        qk_rope_head_dim=ROPE,
        v_head_dim=VALUE,
        rope_interleave=interleaved,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    layer: Any = draw(modeling.DeepseekV3Attention(config, 0))
    turn = modeling.DeepseekV3RotaryEmbedding(config)
    if not rope:
        with torch.no_grad():
            layer.q_proj.weight.unflatten(0, (HEADS, -1))[:, DIM:] = 0
            layer.kv_a_proj_with_mqa.weight[LATENT:] = 0
    q = layer.q_proj.weight.unflatten(0, (HEADS, -1)) * (DIM + ROPE) ** -0.5
    q, turned = q.split([DIM, ROPE], 1)
    latent, rotated = layer.kv_a_proj_with_mqa.weight.split([LATENT, ROPE])
    up = (layer.kv_b_proj.weight * layer.kv_a_layernorm.weight).unflatten(0, (HEADS, -1))
    parts = [q] + ([ordered(turned, interleaved=interleaved)] if rope else [])
    sizes = {
        "heads": HEADS,
        "head_dim": DIM,
        "value_dim": VALUE,
        "latent": LATENT,
        "rope_dim": ROPE if rope else 0,
        "rope_base": 500,
    }
    m = filled(
        "mla",
        sizes,
        width=WIDTH,
        q__weight=torch.cat(parts, 1).flatten(0, 1),
        c__weight=latent,
        k__weight=up[:, :DIM].flatten(0, 1),
        v__weight=up[:, DIM:].flatten(0, 1),
        o__weight=layer.o_proj.weight,
        **({"r__weight": ordered(rotated, interleaved=interleaved)} if rope else {}),
    )

    def peer(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        places = torch.arange(start, start + x.shape[1])[None]
        seen = modeling.create_causal_mask(
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


@pytest.mark.parametrize(("interleaved", "rope"), [(True, True), (False, True), (True, False)])
def test_mla(interleaved: bool, rope: bool) -> None:
    m, peer, cache = deepseek(interleaved=interleaved, rope=rope)
    agree(m, peer)
    agree_in_steps(m, peer, cache)


@pytest.mark.parametrize("rope", [True, False])
def test_a_changed_weight_is_seen(rope: bool) -> None:
    m, peer, _ = deepseek(rope=rope)
    differ_when_perturbed(m, peer)
