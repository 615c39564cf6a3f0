"""Softmax attention against flash-linear-attention's naive operator and transformers' layers, on
the same weights.

transformers multiplies scores by 1/sqrt(d), ours has no such factor: our Q is theirs divided by
sqrt(d). Nothing else differs.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.peer_tools import (
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
)
from torch import Tensor

from separatrix.mixers import Mixer

WIDTH = 12
HEADS = 4
KV = 2
DIM = 6
WINDOW = 9
_FLA: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("full", {}),
    "full, sink": ("full", {"sink": True}),
    "window": ("window", {"size": WINDOW}),
    "window, sink": ("window", {"size": 64, "sink": True}),
}
_RELEASED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("full", {}),
    "mistral": ("window", {"size": WINDOW}),
    "gpt_oss": ("window", {"size": WINDOW, "sink": True}),
}


@pytest.mark.parametrize("case", _FLA)
def test_fla(case: str) -> None:
    operator, (name, sizes) = naive("attn").naive_parallel_attn, _FLA[case]
    m: Any = ours(
        name,
        {"heads": HEADS, "kv_heads": KV, "head_dim": DIM, "value_dim": 5, **sizes},
        width=WIDTH,
    )

    def peer(x: Tensor) -> Tensor:
        y, _ = operator(*qkv(m, x), scale=1.0, window_size=sizes.get("size"), sink_bias=m.sink)
        return out(m, y)

    agree(m, peer)


def _released(model: str, *, sliding: bool = True) -> tuple[Mixer, Any, Any]:
    """Our mixer with the weights of a layer of that model, the layer as a function of (x, cache,
    start), and a cache.
    """
    modeling, configuration = released(model)
    class_name = {"llama": "Llama", "mistral": "Mistral", "gpt_oss": "GptOss"}[model]
    config = getattr(configuration, f"{class_name}Config")(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=DIM,
        num_hidden_layers=1,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        **({} if model == "llama" else {"sliding_window": WINDOW}),
        **(
            {
                "attention_bias": False,
                "layer_types": ["sliding_attention" if sliding else "full_attention"],
            }
            if model == "gpt_oss"
            else {}
        ),
    )
    layer: Any = draw(getattr(modeling, f"{class_name}Attention")(config, 0))
    turn = getattr(modeling, f"{class_name}RotaryEmbedding")(config)
    name, sizes = _RELEASED[model] if sliding else ("full", {"sink": True})
    sizes = {
        "heads": HEADS,
        "kv_heads": KV,
        "head_dim": DIM,
        "rope": True,
        "rope_base": 500,
    } | sizes
    m = filled(
        name,
        sizes,
        width=WIDTH,
        q__weight=layer.q_proj.weight * DIM**-0.5,
        k__weight=layer.k_proj.weight,
        v__weight=layer.v_proj.weight,
        o__weight=layer.o_proj.weight,
        **({"sink": layer.sinks} if model == "gpt_oss" else {}),
    )
    mask = (
        modeling.create_causal_mask
        if name == "full"
        else modeling.create_sliding_window_causal_mask
    )

    def peer(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        places = torch.arange(start, start + x.shape[1])[None]
        seen = mask(
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


@pytest.mark.parametrize(
    ("model", "sliding"),
    [("llama", True), ("mistral", True), ("gpt_oss", True), ("gpt_oss", False)],
)
def test_released(model: str, sliding: bool) -> None:
    m, peer, cache = _released(model, sliding=sliding)
    agree(m, peer)
    agree_in_steps(m, peer, cache)


@pytest.mark.parametrize(("model", "sliding"), [("mistral", True), ("gpt_oss", False)])
def test_a_changed_weight_is_seen(model: str, sliding: bool) -> None:
    m, peer, _ = _released(model, sliding=sliding)
    differ_when_perturbed(m, peer)
