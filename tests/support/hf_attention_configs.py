"""Small config.json contents of every family of softmax attention alone, sizes all different so
that a mix-up shows.
"""

from __future__ import annotations

from typing import Any

_BASE: dict[str, Any] = {
    "torch_dtype": "bfloat16",
    "vocab_size": 100,
    "num_hidden_layers": 6,
    "hidden_size": 96,
}
_HEADS = {"num_attention_heads": 6, "num_key_value_heads": 3}
_GROUPED = {**_BASE, **_HEADS, "head_dim": 20}
_LATENT = {
    **_BASE,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "kv_lora_rank": 40,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
}
_LATENT |= {"v_head_dim": 24}
_INDEXER = {"index_head_dim": 14, "index_n_heads": 5, "index_topk": 9}
S = "sliding_attention"
F = "full_attention"

LLAMA = {**_BASE, **_HEADS, "model_type": "llama", "head_dim": None}
MISTRAL = {**_GROUPED, "model_type": "mistral", "sliding_window": 11}
SEED = {**_GROUPED, "model_type": "seed_oss"}
GEMMA_1 = {**_GROUPED, "model_type": "gemma"}
QWEN2 = {
    **_BASE,
    **_HEADS,
    "model_type": "qwen2",
    "use_sliding_window": True,
    "sliding_window": 11,
    "max_window_layers": 4,
}
QWEN3 = {
    **_GROUPED,
    "model_type": "qwen3",
    "use_sliding_window": False,
    "sliding_window": 11,
    "max_window_layers": 4,
}
QWEN3_MOE = {
    **_GROUPED,
    "model_type": "qwen3_moe",
    "use_sliding_window": False,
    "sliding_window": None,
    "max_window_layers": 4,
}
DOTS = {**_GROUPED, "model_type": "dots1", "sliding_window": 11, "max_window_layers": 2}
GPT2 = {
    "torch_dtype": "float32",
    "vocab_size": 100,
    "model_type": "gpt2",
    "n_layer": 3,
    "n_head": 4,
    "n_embd": 48,
}
BIGCODE = {**GPT2, "model_type": "gpt_bigcode", "multi_query": True}
FALCON = {
    **_BASE,
    "model_type": "falcon",
    "num_attention_heads": 6,
    "num_kv_heads": 2,
    "new_decoder_architecture": True,
}
DBRX = {
    "torch_dtype": "bfloat16",
    "model_type": "dbrx",
    "n_layers": 3,
    "n_heads": 6,
    "d_model": 96,
    "attn_config": {"kv_n_heads": 2},
}
GEMMA2 = {**_GROUPED, "model_type": "gemma2", "sliding_window": 11}
GEMMA3 = {
    **_GROUPED,
    "model_type": "gemma3_text",
    "sliding_window": 11,
    "sliding_window_pattern": 4,
}
GEMMA3N = {
    **_GROUPED,
    "model_type": "gemma3n_text",
    "sliding_window": 11,
    "num_kv_shared_layers": 0,
}
GPT_OSS = {
    **_GROUPED,
    "model_type": "gpt_oss",
    "sliding_window": 11,
    "layer_types": [S, F, S, S, F, S],
}
COHERE2 = {
    **_BASE,
    **_HEADS,
    "model_type": "cohere2",
    "sliding_window": 11,
    "sliding_window_pattern": 3,
}
OLMO3 = {**_BASE, **_HEADS, "model_type": "olmo3", "sliding_window": 11}
EXAONE = {
    **_BASE,
    **_HEADS,
    "model_type": "exaone4",
    "sliding_window": 11,
    "sliding_window_pattern": "LLG",
}
AFM = {
    **{**_GROUPED, "model_type": "afmoe", "sliding_window": 11, "global_attn_every_n_layers": 3},
    **{"num_expert_groups": 1, "num_limited_groups": 1},
}
CWM = {**_GROUPED, "model_type": "cwm", "sliding_window": 11}
GEMMA4 = {
    **_GROUPED,
    **{
        "model_type": "gemma4_text",
        "sliding_window": 11,
        "layer_types": [S, F, S, S, S, F],
        "global_head_dim": 28,
    },
    **{
        "num_global_key_value_heads": 2,
        "attention_k_eq_v": True,
        "num_kv_shared_layers": 0,
        "use_bidirectional_attention": "vision",
    },
}
GEMMA4_UNIFIED = {**GEMMA4, "model_type": "gemma4_unified_text", "attention_k_eq_v": None}
LLAMA4 = {
    **_GROUPED,
    "model_type": "llama4_text",
    "attention_chunk_size": 13,
    "no_rope_layers": [1, 0, 1, 1, 0, 1],
}
MIMO = {
    **_GROUPED,
    **{
        "model_type": "mimo_v2_flash",
        "v_head_dim": 12,
        "hybrid_layer_pattern": [0, 1, 1, 0, 1, 1],
        "sliding_window": 11,
    },
    **{
        "swa_num_attention_heads": 8,
        "swa_num_key_value_heads": 4,
        "swa_head_dim": 22,
        "swa_v_head_dim": 14,
        "attention_chunk_size": 7,
    },
}
STEP = {
    **_BASE,
    **{
        "model_type": "step3p7",
        "num_attention_heads": 6,
        "num_attention_groups": 3,
        "head_dim": 20,
        "sliding_window": 11,
    },
    **{
        "layer_types": [F, S, S, S, F, S, S],
        "num_nextn_predict_layers": 1,
        "attention_other_setting": {"num_attention_heads": 9},
    },
}
SMALLTHINKER = {
    **_GROUPED,
    "model_type": "smallthinker",
    "sliding_window_size": 11,
    "sliding_window_layout": [0, 1, 1, 0, 1, 1],
}
MINIMAX_M2 = {**_GROUPED, "model_type": "minimax_m2", "attn_type_list": [1] * 6}
MINIMAX_M3 = {
    **_GROUPED,
    **{"model_type": "minimax_m3", "num_nextn_predict_layers": 1},
    "sparse_attention_config": {
        **{
            "sparse_attention_freq": [0, 0, 1, 1, 0, 1],
            "sparse_disable_index_value": [0, 0, 1, 1, 0, 1],
            "use_sparse_attention": True,
        },
        **{
            "sparse_block_size": 16,
            "sparse_topk_blocks": 7,
            "sparse_index_dim": 14,
            "sparse_num_index_heads": 3,
        },
    },
}
MINIMAX_M3_FLAT = {
    **_GROUPED,
    **{"model_type": "minimax_m3_vl_text", "layer_types": [F, "minimax_m3_sparse"] * 3},
    **{"index_block_size": 16, "index_topk_blocks": 7, "index_head_dim": 14, "index_n_heads": 3},
}
DEEPSEEK = {**_LATENT, "model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
DEEPSEEK_INDEXED = {**_LATENT, **_INDEXER, "model_type": "deepseek_v32", "head_dim": 5}
DEEPSEEK_V4 = {
    **_BASE,
    **_INDEXER,
    **{
        "model_type": "deepseek_v4",
        "num_attention_heads": 6,
        "num_key_value_heads": 1,
        "head_dim": 20,
        "sliding_window": 11,
    },
    **{"compress_ratios": [0, 4, 128, 4, 128, 4, 0], "num_nextn_predict_layers": 1},
}
DEEPSEEK_V4_TYPED = {
    **{key: value for key, value in DEEPSEEK_V4.items() if key != "compress_ratios"},
    "layer_types": [S, "compressed_sparse_attention", "heavily_compressed_attention"] * 2,
    "compress_rates": {"compressed_sparse_attention": 3, "heavily_compressed_attention": 32},
}

ATTENTION: dict[str, dict[str, Any]] = {
    **{
        "llama": LLAMA,
        "mistral": MISTRAL,
        "mixtral": {**_GROUPED, "model_type": "mixtral", "sliding_window": None},
        "seed_oss": SEED,
        "gemma": GEMMA_1,
        "qwen2": QWEN2,
        "qwen3": QWEN3,
        "qwen3_moe": QWEN3_MOE,
    },
    "dots1": DOTS,
    **{
        "gpt2": GPT2,
        "gpt_bigcode": BIGCODE,
        "falcon": FALCON,
        "dbrx": DBRX,
        "gemma2": GEMMA2,
        "gemma3_text": GEMMA3,
    },
    **{
        "gemma3n_text": GEMMA3N,
        "gpt_oss": GPT_OSS,
        "cohere2": COHERE2,
        "olmo3": OLMO3,
        "exaone4": EXAONE,
        "afmoe": AFM,
        "cwm": CWM,
        "granite_swa": {**_BASE, **_HEADS, "model_type": "granite_swa", "sliding_window": 11},
    },
    **{
        "gemma4_text": GEMMA4,
        "gemma4_unified_text": GEMMA4_UNIFIED,
        "llama4_text": LLAMA4,
        "mimo_v2_flash": MIMO,
        "step3p7": STEP,
    },
    **{
        "smallthinker": SMALLTHINKER,
        "minimax_m2": MINIMAX_M2,
        "minimax_m3": MINIMAX_M3,
        "minimax_m3_vl_text": MINIMAX_M3_FLAT,
    },
    **{
        "deepseek_v3": DEEPSEEK,
        "deepseek_v32": DEEPSEEK_INDEXED,
        "deepseek_v4": DEEPSEEK_V4,
        "deepseek_v4 typed": DEEPSEEK_V4_TYPED,
    },
}

UNKNOWN = {
    "plain": {**_GROUPED, "model_type": "brand_new"},
    "untyped": {**_GROUPED, "sliding_window": 11},
    "chunked": {**_GROUPED, "model_type": "brand_new", "attention_chunk_size": 13},
    "typed": {
        **_GROUPED,
        "model_type": "brand_new",
        "sliding_window": 11,
        "layer_types": [S, F, "moe", "mlp", S, F],
    },
    "conv": {
        **_GROUPED,
        "model_type": "brand_new",
        "conv_L_cache": 3,
        "layers_block_type": ["conv", "attention"] * 3,
    },
    "period": {
        **_GROUPED,
        "model_type": "brand_new",
        "sliding_window": 11,
        "sliding_window_pattern": 3,
    },
    "switched": {**QWEN2, "model_type": "brand_new"},
    "latent": {**_LATENT, "model_type": "brand_new"},
    "indexed": {**_LATENT, **_INDEXER, "model_type": "brand_new"},
}
"""Files of model types that nobody reads, which say enough."""
