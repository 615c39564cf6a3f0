"""Indexed attention against flash-linear-attention's naive DSA and transformers' DeepSeek-V3.2, on
the same weights.

flash-linear-attention's function is ours as it is. transformers' layer is matched so:
- its norms (of both latents and of the index key) are taken out, as ours has none: the maps before
  and after a latent become one. Its maps of keys and values then are ours at kv_heads = heads.
- its rotation gets the angle 0: nothing is turned, in the indexer neither, as ours has a rotation
  of all of q and k only.
- its keys are (nope, rope) per head, the second part the same for all heads: rows of its map are
  copied to every head.
- Q is divided by sqrt(d) as in test_softmax_peers.py; factors of the index scores do not change the
  choice.
`dsa` is compared with transformers' layer as it is: its norms, its rotations, its latents. Weights
of the norms of both latents become a part of the maps after them. That layer turns neighbouring
numbers of queries and keys, ours halves (ops/maps.py): rows of the maps are sorted so. Its indexer
turns halves.
Of equal scores ours takes the earlier token, torch.topk any. All scores are 0 where no index head
is positive, so there are enough heads that this is rare, and `decided` asserts that no choice rests
on it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.peer_tools import (
    LENGTHS,
    agree,
    agree_in_steps,
    differ_when_perturbed,
    draw,
    filled,
    naive,
    ours,
    out,
    qkv,
    released,
    split,
    tokens,
)
from torch import Tensor, nn

from separatrix.mixers import Mixer

WIDTH = 12
HEADS = 4
KV = 2
DIM = 4
ROPE = 2
LATENT = 7
VALUE = 5
INDEX: dict[str, Any] = {"index_heads": 16, "index_dim": 6}
CHOSEN = [3, 20]
"""At 3 the longer sequences gather the chosen tokens, at 20 all of them are under a mask."""


def index(m: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (
        split(x @ m.index_q.weight.T, m.index_heads),
        x @ m.index_k.weight.T,
        x @ m.index_w.weight.T,
    )


@torch.no_grad()
def decided(m: Any) -> None:
    """The scores between which a choice is cut differ by more than rounding, for every token."""
    q, k, w = index(m, tokens(WIDTH))
    scores = torch.einsum("bihj,bih->bij", torch.einsum("bihd,bjd->bihj", q, k).relu(), w)
    earlier = torch.ones(max(LENGTHS), max(LENGTHS), dtype=torch.bool).tril()
    best = scores.masked_fill(~earlier, float("-inf")).sort(descending=True).values[:, m.topk :]
    assert (best[..., m.topk - 1] - best[..., m.topk]).min() > 1e-6 * scores.abs().max()


def dsa(m: Any, x: Tensor) -> Tensor:
    y, chosen = naive("dsa").naive_dsa(
        *qkv(m, x), *index(m, x), topk=m.topk, scale=1.0, return_indices=True
    )
    assert torch.equal(
        chosen, naive("dsa").naive_dsa_indexer(*index(m, x), topk=m.topk, activation="relu")
    )
    return out(m, y)


def from_fla(topk: int) -> Any:
    return ours(
        "indexed",
        {
            "heads": HEADS,
            "kv_heads": KV,
            "head_dim": DIM,
            "value_dim": VALUE,
            "topk": topk,
            **INDEX,
        },
        width=WIDTH,
    )


@pytest.mark.parametrize("topk", CHOSEN)
def test_fla(topk: int) -> None:
    m = from_fla(topk)
    decided(m)
    agree(m, lambda x: dsa(m, x))


def test_a_changed_weight_is_seen_by_fla() -> None:
    m = from_fla(20)
    unchanged = from_fla(20)
    differ_when_perturbed(m, lambda x: dsa(unchanged, x), length=max(LENGTHS))


def deepseek(topk: int) -> tuple[Mixer, Any, Any]:
    """Our mixer with a layer's weights, the layer as a function of (x, cache, start), and a
    cache.
    """
    modeling, configuration = released("deepseek_v32")
    config = configuration.DeepseekV32Config(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_hidden_layers=1,
        q_lora_rank=WIDTH,
        kv_lora_rank=LATENT,
        qk_nope_head_dim=DIM,
        qk_rope_head_dim=ROPE,
        v_head_dim=VALUE,
        index_n_heads=INDEX["index_heads"],
        index_head_dim=INDEX["index_dim"],
        index_topk=topk,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    layer: Any = draw(modeling.DeepseekV32Attention(config, 0))
    layer.q_a_layernorm = nn.Identity()
    layer.kv_a_layernorm = nn.Identity()
    layer.indexer.k_norm = nn.Identity()
    latent, shared = layer.kv_a_proj_with_mqa.weight.split([LATENT, ROPE])
    up = (layer.kv_b_proj.weight @ latent).unflatten(0, (HEADS, -1))
    sizes = {"heads": HEADS, "head_dim": DIM + ROPE, "value_dim": VALUE, "topk": topk, **INDEX}
    m = filled(
        "indexed",
        sizes,
        width=WIDTH,
        q__weight=layer.q_b_proj.weight @ layer.q_a_proj.weight * (DIM + ROPE) ** -0.5,
        k__weight=torch.cat([up[:, :DIM], shared.expand(HEADS, -1, -1)], 1).flatten(0, 1),
        v__weight=up[:, DIM:].flatten(0, 1),
        o__weight=layer.o_proj.weight,
        index_q__weight=layer.indexer.wq_b.weight @ layer.q_a_proj.weight,
        index_k__weight=layer.indexer.wk.weight,
        index_w__weight=layer.indexer.weights_proj.weight,
    )

    def peer(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        places = torch.arange(start, start + x.shape[1])[None]
        seen = modeling.create_causal_mask(
            config=config,
            inputs_embeds=x,
            attention_mask=None,
            past_key_values=cache,
            position_ids=places,
            allow_is_causal_skip=False,
        )
        unturned = torch.ones(1, x.shape[1], ROPE), torch.zeros(1, x.shape[1], ROPE)
        return layer(
            x,
            position_embeddings=unturned,
            attention_mask=seen,
            past_key_values=cache,
            position_ids=places,
        )[0]

    return m, peer, modeling.DynamicCache(config=config)


def with_latents(topk: int) -> tuple[Mixer, Any, Any]:
    """As `deepseek`, of `dsa` and nothing taken out of the layer."""
    modeling, configuration = released("deepseek_v32")
    turned = 4
    config = configuration.DeepseekV32Config(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_hidden_layers=1,
        q_lora_rank=9,
        kv_lora_rank=LATENT,
        qk_nope_head_dim=DIM,
        qk_rope_head_dim=turned,
        v_head_dim=VALUE,
        index_n_heads=INDEX["index_heads"],
        index_head_dim=INDEX["index_dim"],
        index_topk=topk,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    layer: Any = draw(modeling.DeepseekV32Attention(config, 0))
    turn = modeling.DeepseekV32RotaryEmbedding(config)
    halves = torch.tensor([0, 2, 1, 3])
    asking = layer.q_a_layernorm.weight
    q = layer.q_b_proj.weight.unflatten(0, (HEADS, -1)) * asking * (DIM + turned) ** -0.5
    q = torch.cat([q[:, :DIM], q[:, DIM:][:, halves]], 1).flatten(0, 1)
    latent, shared = layer.kv_a_proj_with_mqa.weight.split([LATENT, turned])
    up = (layer.kv_b_proj.weight * layer.kv_a_layernorm.weight).unflatten(0, (HEADS, -1))
    m = filled(
        "dsa",
        {
            "heads": HEADS,
            "head_dim": DIM,
            "value_dim": VALUE,
            "latent": LATENT,
            "rope_dim": turned,
            "rope_base": 500,
            "query_latent": 9,
            "topk": topk,
            **INDEX,
        },
        width=WIDTH,
        a__weight=layer.q_a_proj.weight,
        q__weight=q,
        c__weight=latent,
        r__weight=shared[halves],
        k__weight=up[:, :DIM].flatten(0, 1),
        v__weight=up[:, DIM:].flatten(0, 1),
        o__weight=layer.o_proj.weight,
        index_q__weight=layer.indexer.wq_b.weight * asking,
        index_k__weight=layer.indexer.wk.weight,
        index_w__weight=layer.indexer.weights_proj.weight,
        index_norm__weight=layer.indexer.k_norm.weight,
        index_norm__bias=layer.indexer.k_norm.bias,
    )

    def peer(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        places = torch.arange(start, start + x.shape[1])[None]
        seen = modeling.create_causal_mask(
            config=config,
            inputs_embeds=x,
            attention_mask=None,
            past_key_values=cache,
            position_ids=places,
            allow_is_causal_skip=False,
        )
        return layer(
            x,
            position_embeddings=turn(x, places),
            attention_mask=seen,
            past_key_values=cache,
            position_ids=places,
        )[0]

    return m, peer, modeling.DynamicCache(config=config)


@pytest.mark.parametrize("topk", CHOSEN)
def test_released_as_it_is(topk: int) -> None:
    m, peer, cache = with_latents(topk)
    agree(m, peer)
    agree_in_steps(m, peer, cache)
    # the cache as the layer keeps it: latents and rotated keys, or keys and values written out
    differ_when_perturbed(m, peer, length=max(LENGTHS))


@pytest.mark.parametrize("topk", CHOSEN)
def test_released(topk: int) -> None:
    m, peer, cache = deepseek(topk)
    decided(m)
    agree(m, peer)
    agree_in_steps(m, peer, cache)


def test_a_changed_weight_is_seen() -> None:
    m, peer, _ = deepseek(20)
    differ_when_perturbed(m, peer, length=max(LENGTHS))
