"""Softmax attention against flash-linear-attention's naive operator and transformers' layers, on
the same weights.

transformers multiplies scores by 1/sqrt(d), ours has no such factor: our Q is theirs divided by
sqrt(d). Nothing else differs.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
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


@pytest.mark.parametrize("norm", ["none", "each"])
def test_forgetting(norm: str) -> None:
    """Gates are a map of x as in its layer; QK-norm and output gate are written as the layer has
    them, with the same weights."""
    sizes = {"heads": HEADS, "kv_heads": KV, "head_dim": DIM, "value_dim": DIM, "qk_norm": norm}
    sizes |= {"gate": "none" if norm == "none" else "sigmoid"}
    m: Any = ours("fox", sizes, width=WIDTH)
    unchanged: Any = ours("fox", sizes, width=WIDTH)

    def peer(x: Tensor, m: Any = m) -> Tensor:
        q, k, v = qkv(m, x)
        if norm == "each":
            q, k = (
                F.rms_norm(y, (DIM,), eps=1e-6) * w.weight
                for y, w in ((q, m.q_norm), (k, m.k_norm))
            )
        log_f = F.logsigmoid(F.linear(x, m.f.weight, m.f.bias))
        y = naive("forgetting_attn").naive_forgetting_attn(q, k, v, log_f, scale=1.0)
        if m.gate is not None:
            y = y * torch.sigmoid(x @ m.gate.weight.T).unflatten(-1, (HEADS, -1))
        return out(m, y)

    agree(m, peer)
    differ_when_perturbed(m, lambda x: peer(x, unchanged))


def _norms(layer: Any, *, plus: float = 0.0) -> dict[str, Tensor]:
    """Weights of QK-norm; the factor 1/sqrt(d) is theirs where queries are normed."""
    return {
        "q_norm__weight": (layer.q_norm.weight + plus) * DIM**-0.5,
        "k_norm__weight": layer.k_norm.weight + plus,
    }


def _option(model: str, *, sliding: bool) -> tuple[Mixer, Any, Any]:
    """As `_released`, for layers with QK-norm, softcap or output gate."""
    modeling, configuration = released(model)
    class_name = {"qwen3": "Qwen3", "olmo2": "Olmo2", "gemma2": "Gemma2"}.get(model, "Qwen3Next")
    more: dict[str, Any] = {
        "gemma2": {"query_pre_attn_scalar": 9, "attn_logit_softcapping": 3.0, "layer_types": []},
        "qwen3_next": {"partial_rotary_factor": 1.0, "layer_types": ["full_attention"]},
    }.get(model, {})
    if model == "gemma2":
        more["layer_types"] = ["sliding_attention" if sliding else "full_attention"]
        more["sliding_window"] = WINDOW
    config = getattr(configuration, f"{class_name}Config")(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=DIM,
        num_hidden_layers=1,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        **({"rms_norm_eps": 1e-6} if model != "gemma2" else {}),
        **more,
    )
    layer: Any = draw(getattr(modeling, f"{class_name}Attention")(config, 0))
    turn = getattr(modeling, f"{class_name}RotaryEmbedding")(config)
    sizes = {"heads": HEADS, "kv_heads": KV, "head_dim": DIM, "rope": True, "rope_base": 500}
    q = layer.q_proj.weight
    weights: dict[str, Tensor] = {}
    match model:
        case "qwen3":
            sizes["qk_norm"] = "head"
            weights = _norms(layer)
        case "olmo2":
            sizes["qk_norm"] = "all"
            weights = {
                "q_norm__weight": layer.q_norm.weight.view(HEADS, DIM) * DIM**-0.5,
                "k_norm__weight": layer.k_norm.weight.view(KV, DIM),
            }
        case "gemma2":
            sizes["softcap"] = 3
            sizes |= {"size": WINDOW} if sliding else {}
            q = q / 3
        case _:
            # queries and gates of a head stand side by side in one map; its norms add 1
            q, gate = (y.flatten(0, 1) for y in q.unflatten(0, (HEADS, 2, DIM)).unbind(1))
            sizes |= {"qk_norm": "head", "gate": "sigmoid"}
            weights = _norms(layer, plus=1.0) | {"gate__weight": gate}
    m = filled(
        "window" if sliding else "full",
        sizes,
        width=WIDTH,
        q__weight=q,
        k__weight=layer.k_proj.weight,
        v__weight=layer.v_proj.weight,
        o__weight=layer.o_proj.weight,
        **weights,
    )
    mask = modeling.create_sliding_window_causal_mask if sliding else modeling.create_causal_mask

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
    [
        ("qwen3", False),
        ("olmo2", False),
        ("gemma2", False),
        ("gemma2", True),
        ("qwen3_next", False),
    ],
)
def test_options(model: str, sliding: bool) -> None:
    m, peer, cache = _option(model, sliding=sliding)
    agree(m, peer)
    agree_in_steps(m, peer, cache)
    differ_when_perturbed(m, peer)


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
