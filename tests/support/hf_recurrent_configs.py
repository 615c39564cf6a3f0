"""Small config.json contents of every family with recurrence or short convolutions, sizes all
different so that a mix-up shows.
"""

from __future__ import annotations

from typing import Any

from support.hf_configs import GEMMA, NEMOTRON, QWEN

_BASE: dict[str, Any] = {"torch_dtype": "bfloat16", "vocab_size": 100}
_ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2}

KIMI = {
    **_BASE,
    "model_type": "kimi_linear",
    "num_hidden_layers": 5,
    "hidden_size": 48,
    "head_dim": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 40,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "linear_attn_config": {
        "full_attn_layers": [3, 5],
        "kda_layers": [1, 2, 4],
        "head_dim": 24,
        "num_heads": 3,
        "short_conv_kernel_size": 4,
    },
}
OLMO = {
    **_BASE,
    **_ATTENTION,
    "model_type": "olmo_hybrid",
    "num_hidden_layers": 5,
    "hidden_size": 64,
    "layer_types": [
        "linear_attention",
        "full_attention",
        "linear_attention",
        "linear_attention",
        "full_attention",
    ],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 20,
    "linear_conv_kernel_dim": 4,
}
MINIMAX = {
    **_BASE,
    **_ATTENTION,
    "model_type": "minimax_text_01",
    "num_hidden_layers": 5,
    "hidden_size": 64,
    "head_dim": 24,
    "attn_type_list": [0, 1, 0, 0, 1],
}
PORTED = {
    **{key: value for key, value in MINIMAX.items() if key != "attn_type_list"},
    "model_type": "minimax",
    "layer_types": [
        "linear_attention",
        "linear_attention",
        "full_attention",
        "linear_attention",
        "full_attention",
    ],
}
JAMBA = {
    **_BASE,
    **_ATTENTION,
    "model_type": "jamba",
    "num_hidden_layers": 7,
    "hidden_size": 64,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 3,
}
_MAMBA2 = {
    "mamba_n_heads": 6,
    "mamba_d_head": 32,
    "mamba_d_state": 24,
    "mamba_n_groups": 2,
    "mamba_d_conv": 4,
}
BAMBA = {
    **_BASE,
    **_ATTENTION,
    **_MAMBA2,
    "model_type": "bamba",
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "attn_layer_indices": [1, 4],
    "mamba_expand": 3,
}
GRANITE = {
    **_BASE,
    **_ATTENTION,
    **_MAMBA2,
    "model_type": "granitemoehybrid",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "mamba_expand": 3,
    "layer_types": ["mamba", "mamba", "attention", "mamba"],
}
FALCON_H1 = {
    **_BASE,
    **_ATTENTION,
    **_MAMBA2,
    "model_type": "falcon_h1",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "head_dim": 24,
    "mamba_d_ssm": 192,
    "mamba_expand": 2,
}
MAMBA = {
    **_BASE,
    "model_type": "mamba",
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "expand": 2,
    "state_size": 8,
    "conv_kernel": 4,
}
FALCON_MAMBA = {**MAMBA, "model_type": "falcon_mamba", "expand": 16, "intermediate_size": 64}
MAMBA2 = {
    **_BASE,
    "model_type": "mamba2",
    "num_hidden_layers": 3,
    "hidden_size": 48,
    "expand": 2,
    "num_heads": 6,
    "head_dim": 16,
    "state_size": 24,
    "n_groups": 2,
    "conv_kernel": 4,
}
ZAMBA = {
    **_BASE,
    "model_type": "zamba",
    "num_hidden_layers": 8,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "n_mamba_heads": 2,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
}
ZAMBA2 = {
    **_BASE,
    "model_type": "zamba2",
    "num_hidden_layers": 4,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
    "state_size": 24,
    "mamba_headdim": 16,
    "mamba_ngroups": 2,
    "expansion_factor": 2,
    "conv_dimension": 4,
}
LFM2 = {
    **_BASE,
    **_ATTENTION,
    "model_type": "lfm2",
    "num_hidden_layers": 5,
    "hidden_size": 64,
    "conv_L_cache": 3,
    "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"],
}
HYMBA = {
    **_BASE,
    **_ATTENTION,
    "model_type": "hymba",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "global_attn_idx": [0, 3],
    "sliding_window": 10,
    "mamba_expand": 2,
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "layer_type": ["h", "h", "h", "h"],
}
RWKV = {
    **_BASE,
    "model_type": "rwkv",
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "attention_hidden_size": 48,
}
XLSTM = {
    **_BASE,
    "model_type": "xlstm",
    "num_blocks": 3,
    "hidden_size": 128,
    "num_heads": 2,
    "qk_dim_factor": 0.5,
    "v_dim_factor": 1.0,
}
_FLA = {**_BASE, "num_hidden_layers": 4, "hidden_size": 64}
GLA = {
    **_FLA,
    "model_type": "gla",
    "num_heads": 4,
    "expand_k": 0.5,
    "expand_v": 1.0,
    "use_short_conv": False,
    "conv_size": 4,
    "attn": None,
}
RETNET = {
    **GLA,
    "model_type": "retnet",
    "expand_k": 1.0,
    "expand_v": 2.0,
    "attn": {"layers": [1, 3], "num_heads": 4, "num_kv_heads": 2},
}
DELTA_NET = {
    **GLA,
    "model_type": "delta_net",
    "num_heads": 2,
    "use_short_conv": True,
    "expand_k": 0.75,
}
GATED_DELTANET = {
    **_FLA,
    "model_type": "gated_deltanet",
    "num_heads": 2,
    "num_v_heads": 4,
    "head_dim": 12,
    "expand_v": 2.0,
    "use_short_conv": True,
    "conv_size": 4,
    "attn": [
        {"layers": [0], "num_heads": 4, "num_kv_heads": None},
        {"layers": [2], "num_heads": 8, "num_kv_heads": 2, "window_size": 10},
    ],
}
DELTAPRODUCT = {
    **GATED_DELTANET,
    "model_type": "gated_deltaproduct",
    "num_householder": 3,
    "allow_neg_eigval": False,
    "attn": None,
}
FLA_KDA = {
    **GATED_DELTANET,
    "model_type": "kda",
    "num_v_heads": None,
    "expand_v": 1.0,
    "attn": None,
}
HGRN2 = {
    **_FLA,
    "model_type": "hgrn2",
    "num_heads": None,
    "expand_ratio": 16,
    "use_short_conv": False,
    "conv_size": 4,
    "attn": None,
}
LINEAR = {
    **_FLA,
    "model_type": "linear_attn",
    "num_heads": 4,
    "expand_k": 0.5,
    "expand_v": 1.0,
    "feature_map": "elementwise_product",
    "norm_feature_map": True,
    "attn": None,
}
RWKV6 = {
    **_FLA,
    "model_type": "rwkv6",
    "num_heads": 4,
    "expand_k": 0.5,
    "expand_v": 1.0,
    "attn": None,
}
RWKV7 = {
    **_FLA,
    "model_type": "rwkv7",
    "head_dim": 16,
    "num_heads": None,
    "value_dim": [64, 64, 128, 64],
    "attn": None,
}
SAMBA = {
    **_FLA,
    "model_type": "samba",
    "expand": 2,
    "state_size": 8,
    "conv_kernel": 4,
    "attn": {"layers": [1, 3], "num_heads": 4, "num_kv_heads": 2, "window_size": 10},
}
LOG_LINEAR = {**MAMBA2, "model_type": "log_linear_mamba2"}
NATIVE = {
    "dtype": "bfloat16",
    "d_model": 48,
    "n_layer": 4,
    "vocab_size": 100,
    "ssm_cfg": {
        "layer": "Mamba2",
        "d_state": 24,
        "headdim": 16,
        "expand": 2,
        "ngroups": 2,
        "d_conv": 4,
    },
    "attn_layer_idx": [2],
    "attn_cfg": {"num_heads": 4, "num_heads_kv": 2, "head_dim": 20, "d_conv": 3},
}

RECURRENT: dict[str, dict[str, Any]] = {
    "qwen3_next": QWEN,
    "qwen3_5": {"model_type": "qwen3_5", "text_config": {**QWEN, "model_type": "qwen3_5_text"}},
    "nemotron_h": NEMOTRON,
    "recurrent_gemma": GEMMA,
    "kimi_linear": KIMI,
    "kimi_k3": {"model_type": "kimi_k3", "text_config": KIMI},
    "olmo_hybrid": OLMO,
    "minimax_text_01": MINIMAX,
    "minimax_m1": {**MINIMAX, "model_type": "minimax_m1"},
    "minimax": PORTED,
    "jamba": JAMBA,
    "bamba": BAMBA,
    "granitemoehybrid": GRANITE,
    "falcon_h1": FALCON_H1,
    "mamba": MAMBA,
    "falcon_mamba": FALCON_MAMBA,
    "mamba2": MAMBA2,
    "zamba": ZAMBA,
    "zamba2": ZAMBA2,
    "lfm2": LFM2,
    "lfm2_moe": {**LFM2, "model_type": "lfm2_moe"},
    "hymba": HYMBA,
    "rwkv": RWKV,
    "xlstm": XLSTM,
    "gla": GLA,
    "retnet": RETNET,
    "delta_net": DELTA_NET,
    "gated_deltanet": GATED_DELTANET,
    "gated_deltaproduct": DELTAPRODUCT,
    "kda": FLA_KDA,
    "hgrn2": HGRN2,
    "linear_attn": LINEAR,
    "rwkv6": RWKV6,
    "rwkv7": RWKV7,
    "samba": SAMBA,
    "log_linear_mamba2": LOG_LINEAR,
    "mamba_ssm": NATIVE,
}
"""By `model_type`; "mamba_ssm" has none."""
