"""Fields that released files have beside their sizes, and that change nothing: a file is not
stopped by them.

The fields and values are those of the releases named; sizes are those of small files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import ATTENTION, COHERE2, FALCON, LLAMA, MISTRAL, QWEN2
from support.hf_recurrent_configs import (
    DELTA_NET,
    HYMBA,
    LFM2,
    MAMBA,
    RWKV6,
    RWKV7,
    SAMBA,
    XLSTM,
)

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config, read_config
from separatrix.stacks.architecture.outline import UnknownSizes

OLDER = {"torch_dtype": "float16", "vocab_size": 100, "n_layer": 3, "n_head": 4, "n_embd": 48}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 96}
CHATGLM = {
    "model_type": "chatglm",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_layers": 3,
    "kv_channels": 24,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
}
GSA = {
    "model_type": "gsa",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_heads": 4,
    "expand_k": 1,
    "expand_v": 1,
    "num_slots": 8,
    "use_short_conv": False,
}
LONGCAT = {
    "model_type": "longcat_flash",
    "torch_dtype": "bfloat16",
    "hidden_size": 96,
    "num_layers": 3,
    "num_attention_heads": 6,
    "kv_lora_rank": 40,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 24,
}
HUNYUAN_V1 = {
    **HEADS,
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 4,
    "head_dim": 24,
    "model_type": "hunyuan_v1_moe",
}
PLAIN = LLAMA | {"model_type": "never-heard-of", "head_dim": 16}
DECORATED = (
    # unsloth's copies of any model
    (LLAMA, {"unsloth_version": "2024.9", "unsloth_fixed": True}),
    # opt-350m, bloom-560m, starcoder, gpt-j-6b
    (OLDER | {"model_type": "opt"}, {"prefix": "</s>"}),
    (
        OLDER | {"model_type": "bloom"},
        {"masked_softmax_fusion": True, "skip_bias_add_qkv": False, "offset_alibi": 100},
    ),
    (
        OLDER | {"model_type": "gpt_bigcode", "multi_query": True},
        {"pad_key_length": True, "pre_allocate_kv_cache": False},
    ),
    (OLDER | {"model_type": "gptj", "rotary_dim": 8}, {"rotary": True}),
    # falcon-11B
    (FALCON, {"multi_query": True, "num_ln_in_parallel_attn": 1}),
    # chatglm2-6b, glm-4-9b-chat
    (CHATGLM, {"add_qkv_bias": True, "add_bias_linear": False, "rope_ratio": 500}),
    # command-r7b
    (
        COHERE2,
        {"order_of_interleaved_layers": "local_attn_first", "use_parallel_block": True},
    ),
    # LFM2-1.2B
    (LFM2, {"conv_dim": 64, "conv_dim_out": 64, "num_heads": 32}),
    # mamba-2.8b-hf, where 'intermediate_size' is 'd_inner'
    (MAMBA | {"intermediate_size": 64}, {"d_inner": 64, "ssm_cfg": {}}),
    # flame's delta_net_1B, samba_1B and gsa_1B
    (DELTA_NET, {"fuse_cross_entropy": True, "fuse_swiglu": True}),
    (SAMBA | {"intermediate_size": 128}, {"expand": 2}),
    (GSA, {"use_rope": False, "fuse_cross_entropy": True, "feature_map": "swish"}),
    # Hunyuan-A13B
    (
        HUNYUAN_V1,
        {
            "use_cla": False,
            "use_mla": False,
            "cla_share_factor": 2,
            "attention_head_dim": 24,
            "anyres_pooling_size": 2,
            "mask_init_id": 12,
            "pool_type": "last",
            "use_rotary_pos_emb": True,
            "enable_lm_head_fp32": True,
        },
    ),
    # MiMo-7B, Qwen2.5 of mlx, SmolVLM, Kimi-K2.5
    (QWEN2, {"use_mrope": False, "rope_traditional": False}),
    (LLAMA, {"rope_interleaved": False, "transformers.js_config": {"kv_cache_dtype": "fp16"}}),
    (LLAMA, {"use_unified_vision_chunk": True, "num_reward_heads": 0}),
    # Ling-mini-2.0, MobileLLM-125M: model types that nobody reads
    (PLAIN, {"norm_head": False, "max_window_layers": 20}),
    (PLAIN, {"layer_sharing": False, "share_embedding": True}),
    # ERNIE-4.5-0.3B, stablelm-2-1_6b, Phi-3.5-vision, MiniCPM-V-2_6, Ovis2
    (PLAIN, {"compression_ratio": 1.0, "ignored_index": -100, "rotary_scaling_factor": 1.0}),
    (PLAIN, {"embd_layer": {"hd_transform_order": "sub_glb"}, "query_num": 64}),
    (PLAIN, {"llm_attn_implementation": "x", "conversation_formatter_class": "QwenFormatter"}),
    # every file of RWKV-6 and 7 that flash-linear-attention writes, and its Mamba's
    (RWKV6, {"proj_low_rank_dim": 32, "gate_low_rank_dim": 64}),
    (RWKV7, {"decay_low_rank_dim": 64, "a_low_rank_dim": 64, "v_low_rank_dim": 32}),
    (MAMBA, {"dt_rank": 2}),
    # LongCat-Flash, xLSTM-7b
    (LONGCAT, {"attention_method": "MLA", "mla_scale_q_lora": True, "mla_scale_kv_lora": True}),
    (XLSTM, {"add_post_blocks_norm": True, "forward_backend_name": "chunkwise--triton"}),
)


@each("config, field", DECORATED)
def test_released_fields_change_nothing(config: dict[str, Any], field: dict[str, Any]) -> None:
    assert from_config(config | field).layers == from_config(config).layers


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    return str(caught.value)


@each(
    "config, field",
    [
        (COHERE2, {"order_of_interleaved_layers": "global_attn_first"}),
        (COHERE2, {"layer_switch": 5}),
        (MAMBA | {"intermediate_size": 64}, {"d_inner": 63}),
        (HUNYUAN_V1, {"use_cla": True}),
        (PLAIN, {"layer_sharing": True}),
        (PLAIN, {"compression_ratio": 0.5}),
        (LONGCAT, {"attention_method": "GQA"}),
        (PLAIN, {"max_window_layers": 20, "use_sliding_window": True}),
        # switches that say something by being false
        (PLAIN, {"separate_kv_projections": False}),
        (PLAIN, {"autoregressive_blocks": False}),
    ],
)
def test_the_same_fields_stop_a_file_where_they_say_something(
    config: dict[str, Any], field: dict[str, Any]
) -> None:
    assert f"'{next(iter(field))}'" in refusal(config | field)


def test_a_window_that_mistral_does_not_state_is_an_unknown_size() -> None:
    unstated = {key: value for key, value in MISTRAL.items() if key != "sliding_window"}
    nested = {"model_type": "llava", "torch_dtype": "bfloat16"}
    # the class slides over 4,096 tokens then
    for config in (unstated, nested | {"text_config": unstated}):
        with pytest.raises(UnknownSizes, match="'sliding_window'"):
            from_config(config)
    # null is not absence, inside another object neither
    full = from_config(unstated | {"sliding_window": None})
    assert {part.name for layer in full for part in layer} == {"full"}
    assert from_config(nested | {"text_config": unstated | {"sliding_window": None}}) == full


def test_hymba_as_released_turns_in_a_way_that_is_not_read() -> None:
    plain = from_config(HYMBA | {"rope": True})
    read = from_config(HYMBA | {"rope": True, "rope_type": "ntk"})
    assert read.cache_bits(100) == plain.cache_bits(100)
    assert any("'rope_type' is 'ntk'" in note for note in read.notes)


def test_mellum_slides_where_its_layers_say_so() -> None:
    types = ["sliding_attention", "full_attention"] * 3
    config = ATTENTION["gemma"] | {"model_type": "mellum", "layer_types": types}
    with pytest.raises(UnknownSizes, match="'sliding_window'"):
        from_config(config)
    read = from_config(config | {"sliding_window": 11})
    assert [layer[0].name for layer in read] == ["window", "full"] * 3


def test_the_format_of_keys_beside_a_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    plain = read_config(tmp_path)
    beside = tmp_path / "hf_quant_config.json"
    for said, format_ in (("FP8", "fp8"), ("INT8", "int8"), (None, "bf16")):
        section = {"quant_algo": "FP8", "kv_cache_quant_algo": said}
        beside.write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": section}))
        for path in (tmp_path, tmp_path / "config.json"):
            read = read_config(path)
            assert {part.format for layer in read for part in layer} == {format_}
            assert len(read) == len(plain)
    beside.write_text("{")
    with pytest.raises(ConfigError, match="hf_quant_config"):
        read_config(tmp_path)
