"""Tiny configurations of every family of transformers: each size field of a class's own defaults
is made small by its name, and a short table says what single families need beside that.

Layers are few but of every kind the family has; lists per layer are left to the class, which
derives them from the number of layers.
"""

from __future__ import annotations

from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedConfig

WINDOW = 32
"""Tokens of every window, block and chunk."""
VOCABULARY = 64

SIZES: dict[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_dim", "emb_dim"), 64),
    **dict.fromkeys(("embed_dim", "embedding_size", "word_embed_proj_dim", "projection_dim"), 64),
    **dict.fromkeys(("input_embedding_size", "output_embedding_size", "backbone_hidden_size"), 64),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_ff", "dff", "dim_ff"), 48),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "ffn_hidden_size"), 48),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("shared_intermediate_size", "expert_ffn_hidden_size", "d_inner"), 48),
    **dict.fromkeys(("intermediate_size_mlp", "dense_intermediate_size", "feed_forward_size"), 48),
    **dict.fromkeys(("moe_shared_expert_intermediate_size", "share_expert_dim"), 16),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers"), 8),
    **dict.fromkeys(("decoder_layers", "encoder_layers", "num_decoder_layers"), 4),
    **dict.fromkeys(("num_encoder_layers", "num_blocks", "depth"), 4),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("attention_heads", "decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("num_decoder_attention_heads", "num_encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "num_query_groups"), 2),
    # not hidden_size / num_attention_heads, so that who reads the wrong one is seen
    **dict.fromkeys(("head_dim", "dim_head", "d_head", "d_kv", "kv_channels"), 24),
    "swa_num_attention_heads": 2,
    "swa_num_key_value_heads": 1,
    "swa_head_dim": 24,
    "num_global_key_value_heads": 1,
    "global_head_dim": 32,
    # latent attention and its indexer
    "q_lora_rank": 24,
    "kv_lora_rank": 20,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 12,
    "qk_head_dim": 20,
    "v_head_dim": 14,
    "index_topk": 8,
    "index_topk_blocks": 2,
    "index_block_size": 16,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "o_groups": 2,
    "o_lora_rank": 8,
    # windows
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "window_size"), WINDOW),
    **dict.fromkeys(("attention_window_size", "local_attention", "sliding_window_size"), WINDOW),
    # recurrences
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_num_heads": 4,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 10,
    "linear_head_dim": 12,
    **dict.fromkeys(("mamba_d_state", "state_size", "ssm_state_size"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "n_mamba_heads"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim", "mamba_headdim"), 16),
    **dict.fromkeys(("mamba_n_groups", "n_groups", "mamba_ngroups"), 2),
    **dict.fromkeys(("mamba_dt_rank", "time_step_rank"), 4),
    **dict.fromkeys(("mamba_chunk_size", "chunk_size", "block_size"), 16),
    "mamba_d_ssm": 128,
    "lru_width": 64,
    # experts
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token"), 2),
    **dict.fromkeys(("n_group", "topk_group", "num_expert_group"), 1),
    "zero_expert_num": 2,
    "first_k_dense_replace": 1,
    # positions and words
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 512),
    **dict.fromkeys(("max_target_positions", "context_length", "model_max_length"), 512),
    "hidden_size_per_layer_input": 16,
    "rotary_dim": 8,
    "encoder_hash_byte_group_vocab": VOCABULARY,
}
"""Field -> its tiny value, wherever a class has it."""

TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
"""Ids that must lie in the tiny vocabulary; any other `..._token_id` is 3."""


_SLIDING = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 2


def _rope(*sections: int, **more: float) -> dict[str, Any]:
    """Rotations by time, height and width, each with that many pairs of a head."""
    return {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": list(sections),
        **more,
    }


_DECODER = {"is_decoder": True}
_SWITCHED = {"use_sliding_window": True, "max_window_layers": 5, "sliding_window": WINDOW}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}

OWN: dict[str, dict[str, Any]] = {
    # encoders that become decoders
    **dict.fromkeys(
        ("bert", "bert-generation", "big_bird", "camembert", "data2vec-text"), _DECODER
    ),
    **dict.fromkeys(("electra", "ernie", "megatron-bert", "rembert", "roberta"), _DECODER),
    **dict.fromkeys(("roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta"), _DECODER),
    "xlm-roberta-xl": _DECODER,
    "xmod": {"is_decoder": True, "default_language": "en_XX"},
    "reformer": {"is_decoder": True, "axial_pos_embds": False, "attention_head_size": 16},
    # layers of every kind
    "bamba": {"attn_layer_indices": [2, 5]},
    "granitemoehybrid": {"layer_types": ["mamba", "mamba", "attention", "mamba"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 2},
    **dict.fromkeys(("qwen2", "qwen3"), _SWITCHED),
    **{kind: {"layer_types": _SLIDING, "sliding_window": WINDOW} for kind in ("mellum", "step3p5")},
    "laguna": {"layer_types": _SLIDING, "num_attention_heads_per_layer": [6, 6, 6, 4] * 2},
    "zaya": {
        "layer_types": ["hybrid", "hybrid_sliding"] * 4,
        "sliding_window": WINDOW,
        "num_experts_per_tok": 1,
        "num_attention_heads": 4,
    },
    "zamba2": {
        "layers_block_type": ["mamba", "mamba", "hybrid", "mamba"] * 2,
        "kv_channels": 16,
    },
    # by default its tokens see those after them
    "hrm_text": {"prefix_lm": False},
    "gpt_neo": {"attention_types": [[["global", "local"], 4]]},
    "gemma3n_text": {
        "num_hidden_layers": 10,
        "num_kv_shared_layers": 4,
        "intermediate_size": 48,
        "activation_sparsity_pattern": [0.0] * 10,
    },
    "gemma4_text": {"num_kv_shared_layers": 2, "num_hidden_layers": 14},
    "mllama_text_model": {"cross_attention_layers": [3, 6]},
    "hunyuan_v1_moe": {"head_dim": 24, **_EXPERTS, "moe_topk": 2},
    # sizes that are null in the defaults, or that must go together
    **{kind: {"head_dim": 24} for kind in ("hunyuan_v1_dense", "ministral")},
    "dots1": {**_EXPERTS, "n_routed_experts": 4, "n_shared_experts": 1, "max_window_layers": 5},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "deepseek_v4": {"num_key_value_heads": 1},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10_000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 16, "hidden_size": 64},
    },
    "helium": {"head_dim": 16},
    "mamba": {"intermediate_size": 128},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "mistral": {"sliding_window": WINDOW},
    "mistral4": {"head_dim": 20},
    "nemotron": {"num_key_value_heads": 2},
    "xlnet": {"d_head": 16},
    # the class mixes up the dimensions of keys and values where they differ
    "xlstm": {"qk_dim_factor": 1.0, "num_blocks": 8},
    "deepseek_ocr2_text": {
        **_EXPERTS,
        "mlp_layer_types": ["dense", *["sparse"] * 7],
        "n_group": 1,
        "topk_group": 1,
    },
    "diffusion_gemma_text": {**_EXPERTS, "top_k_experts": 2},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [16, 16], "rope_parameters": _rope(3, 3, 2)},
    "glm5_next_text": {"index_kpool": 4, "num_key_value_heads": 4},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 24,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "hunyuan_vl_text": {"head_dim": 24, "rope_parameters": _rope(4, 4, 4)},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _rope(4, 4, 4)}},
    "cosmos3_edge_text": {"rope_parameters": _rope(4, 4, 4)},
    "paddleocr_vl_text": {"rope_parameters": _rope(4, 4, 4)},
    **{
        kind: {"rope_parameters": _rope(2, 3, 3)}
        for kind in (
            *("glm4v_text", "glm46v_text", "glm_ocr_text", "glmga_text"),
            *("qwen2_vl_text", "qwen2_5_vl_text"),
        )
    },
    "qwen2_5_omni_text": {"rope_parameters": _rope(2, 3, 3)},
    "glm4v_moe_text": {"rope_parameters": _rope(2, 1, 1, partial_rotary_factor=0.5)},
    "chameleon": {"vocabulary_map": {"<image>": 3}},
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": 16}},
    "granite4_vision": {"text_config": {"model_type": "granite"}},
}
"""What single families need beside the rules."""


def shrunk(own: dict[str, Any]) -> dict[str, Any]:
    """Tiny values for those fields of a configuration that have a rule."""
    made: dict[str, Any] = {}
    for name, value in own.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and name in SIZES:
            made[name] = SIZES[name] if value else 0
        elif name.endswith("token_id") and value is not None:
            made[name] = TOKENS.get(name, 3)
    if "kv_lora_rank" in made:
        # latents: every head has a key, and head_dim is another name of the rotated part
        made |= {"num_key_value_heads": SIZES["num_attention_heads"]}
        made |= {"head_dim": made["qk_rope_head_dim"]} if "head_dim" in made else {}
    return made


def tiny(kind: str, own: dict[str, Any] | None = None) -> PreTrainedConfig:
    """A tiny configuration of a model type; `own` are fields that this family needs so."""
    cls = CONFIG_MAPPING[kind]
    own = OWN.get(kind, {}) if own is None else own
    whole = cls()
    fields = shrunk(whole.to_dict())
    for name in cls.sub_configs:
        part = getattr(whole, name, None)
        if isinstance(part, PreTrainedConfig):
            fields[name] = _part(part, own.get(name) or {})
    top = {key: value for key, value in own.items() if key not in cls.sub_configs}
    return cls(**{**fields, **top, "dtype": "float32"})


def _part(whole: PreTrainedConfig, own: dict[str, Any]) -> dict[str, Any]:
    """The tiny fields of one part of a configuration, its own parts included."""
    fields: dict[str, Any] = shrunk(whole.to_dict())
    for name in type(whole).sub_configs:
        part = getattr(whole, name, None)
        if isinstance(part, PreTrainedConfig):
            fields[name] = _part(part, own.get(name) or {})
    own = OWN.get(whole.model_type, {}) | own
    top = {key: value for key, value in own.items() if key not in type(whole).sub_configs}
    return {**fields, **top, "model_type": whole.model_type, "dtype": "float32"}
