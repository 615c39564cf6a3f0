"""Files whose count was wrong: heads, layers and passes spelled in a way of their own.

Every expected number is derived by hand, beside it, from the model's definition.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.outline import UnknownSizes

T = 100
"""Tokens in the cache."""
BASE = {"dtype": "bfloat16", "vocab_size": 100, "hidden_size": 96, "num_hidden_layers": 6}
HEADS = {"num_attention_heads": 6, "num_key_value_heads": 3}

JETMOE = BASE | {
    "model_type": "jetmoe",
    "num_key_value_heads": 4,
    "num_experts_per_tok": 2,
    "num_local_experts": 8,
    "kv_channels": 20,
}
OURO = BASE | HEADS | {"model_type": "ouro", "head_dim": 16, "total_ut_steps": 4}
HRM = BASE | {
    "model_type": "hrm_text",
    "num_attention_heads": 6,
    "head_dim": 20,
    "H_cycles": 2,
    "L_cycles": 3,
    "L_bp_cycles": [2],
    "prefix_lm": False,
}
LONGCAT = {
    "model_type": "longcat_flash",
    "dtype": "bfloat16",
    "hidden_size": 96,
    "num_layers": 3,
    "num_attention_heads": 6,
    "kv_lora_rank": 40,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 24,
}
GRANITE = BASE | HEADS | {"model_type": "granite_swa", "sliding_window": 11}
MELLUM = BASE | HEADS | {"model_type": "mellum", "head_dim": 20, "sliding_window": 11}
MPT = {"model_type": "mpt", "dtype": "bfloat16", "d_model": 96, "n_heads": 6, "n_layers": 3}
DECI = BASE | {
    "model_type": "deci",
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "num_key_value_heads_per_layer": [3, 3, 1, 2, 1, 6],
}


def numbers(architecture: Architecture) -> int:
    """16-bit numbers after T tokens."""
    bits = architecture.cache_bits(T)
    assert bits % 16 == 0
    return bits // 16


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    return str(caught.value)


def searched(*attention: dict[str, Any]) -> dict[str, Any]:
    """A Nemotron whose layers have these attentions."""
    config = {"model_type": "nemotron-nas", "architectures": ["DeciLMForCausalLM"], **BASE}
    silent = {"no_op": False, "replace_with_linear": False, "window_length": None, "sparsify": None}
    return config | {
        "num_hidden_layers": len(attention),
        "num_attention_heads": 6,
        "num_key_value_heads": None,
        "block_configs": [
            {"attention": silent | {"n_heads_in_group": None} | own, "ffn": {"ffn_mult": 2.6}}
            for own in attention
        ],
    }


def test_weights_of_layers_that_a_search_chose() -> None:
    """Two thirds of 2.6 x 96 are 166 units, rounded up to 256, or of 5 x 96, 320: to 512; an MLP
    and an attention are maps of 96 x 96 instead, an MLP is gone.
    """
    file = searched(GROUP, {"no_op": True}, {"replace_with_linear": True}, GROUP)
    blocks = file["block_configs"]
    blocks[1]["ffn"] = {"ffn_mult": 5}
    blocks[2]["ffn"] = {"replace_with_linear": True}
    blocks[3]["ffn"] = {"no_op": True}
    found = from_config(file | {"hidden_size": 96, "vocab_size": 10}).weights
    assert found is not None
    attention = 2 * 96 * (6 + 2) * 16
    assert found.total == 2 * attention + 3 * 96 * (256 + 512) + 2 * 96 * 96 + 2 * 10 * 96


GROUP = {"n_heads_in_group": 3}
GEMMA_2 = BASE | HEADS | {"model_type": "gemma2", "head_dim": 16, "sliding_window": 11}
QWEN_MOE = BASE | HEADS | {"model_type": "qwen2_moe", "use_sliding_window": False}
COHERE_MOE = BASE | HEADS | {"model_type": "cohere2_moe", "head_dim": 20, "sliding_window": 11}
MODERN = BASE | HEADS | {"model_type": "modernbert-decoder", "local_attention": 22}

OCR = {
    **{"kv_lora_rank": None, "q_lora_rank": None, "v_head_dim": 0, "qk_rope_head_dim": 0},
    **{"use_mla": False, "qk_nope_head_dim": 0},
}

COUNTS = [
    # DeepSeek-OCR: latents are switched off, and what stands in their fields says nothing
    (BASE | HEADS | OCR | {"model_type": "deepseek_v2"}, 6 * 2 * 3 * 16 * T),
    (BASE | HEADS | {"model_type": "deepseek_ocr2_text"}, 6 * 2 * 3 * 16 * T),
    # keys and values of 6 / 3 heads of 96 / 6 numbers, where there is attention
    (searched(GROUP, {"no_op": True}, {"replace_with_linear": True}, GROUP), 2 * 2 * 2 * 16 * T),
    (searched({"n_heads_in_group": 6}, GROUP), 2 * (1 + 2) * 16 * T),
    # every second layer slides; the window is said twice
    (GEMMA_2 | {"sliding_window_size": 11}, 3 * 2 * 3 * 16 * (T + 11)),
    (QWEN_MOE | {"sliding_window": 11, "max_window_layers": 2}, 6 * 2 * 3 * 16 * T),
    # one full layer in four, and the dense one at the beginning, which does not slide
    (COHERE_MOE, 120 * (T + 5 * 11)),
    (COHERE_MOE | {"first_k_dense_replace": 1}, 120 * (2 * T + 4 * 11)),
    (
        COHERE_MOE | {"first_k_dense_replace": 1, "prefix_dense_sliding_window_pattern": 2},
        120 * (T + 5 * 11),
    ),
    # full in layers 0 and 3, 22 / 2 tokens in the others; as many key as query heads
    (MODERN | {"num_key_value_heads": None}, 2 * 96 * (2 * T + 4 * 11)),
    # layers x keys and values x key heads x kv_channels
    (JETMOE, 6 * 2 * 4 * 20 * T),
    (OURO, 4 * 6 * 2 * 3 * 16 * T),
    # passes: H_cycles (L_cycles + 1) = 8
    (HRM, 8 * 6 * 2 * 6 * 20 * T),
    (HRM | {"num_layers_per_stack": 2, "num_hidden_layers": 16}, 8 * 2 * 2 * 6 * 20 * T),
    (HRM | {"num_layers_per_stack": 2, "num_hidden_layers": 2}, 8 * 2 * 2 * 6 * 20 * T),
    # two latent attentions in every layer, of 40 + 8 numbers
    (LONGCAT, 2 * 3 * 48 * T),
    (LONGCAT | {"num_hidden_layers": 3}, 2 * 3 * 48 * T),
    (LONGCAT | {"num_hidden_layers": 6}, 2 * 3 * 48 * T),
    # full in layers 0 and 4; heads of 96 / 6 numbers
    (GRANITE, 2 * 96 * T + 4 * 96 * 11),
    (GRANITE | {"model_type": "granitemoe_swa"}, 2 * 96 * T + 4 * 96 * 11),
    (MELLUM, 6 * 120 * T),
    (MELLUM | {"layer_types": ["full_attention", "sliding_attention"] * 3}, 3 * 120 * (T + 11)),
    (MPT, 3 * 2 * 96 * T),
    (MPT | {"attn_config": {"attn_type": "multiquery_attention"}}, 3 * 2 * 16 * T),
    (
        MPT | {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 2}},
        3 * 2 * 2 * 16 * T,
    ),
    (DECI, 2 * 16 * (3 + 3 + 1 + 2 + 1 + 6) * T),
]


@each("config, expected", COUNTS)
def test_counts_by_hand(config: dict[str, Any], expected: int) -> None:
    assert numbers(from_config(config)) == expected


def test_passes_are_noted() -> None:
    for config, times in ((OURO, 4), (HRM, 8), (LONGCAT, 2)):
        read = from_config(config)
        assert any(f"layer counts {times} times" in note for note in read.notes)


@each(
    "config, field",
    [
        (HRM | {"num_layers_per_stack": 2, "num_hidden_layers": 6}, "num_hidden_layers"),
        (LONGCAT | {"num_hidden_layers": 5}, "num_hidden_layers"),
        (HRM | {"num_key_value_heads": 3}, "num_key_value_heads"),
        (OURO | {"total_ut_steps": None}, "total_ut_steps"),
        (OURO | {"total_ut_steps": 0}, "total_ut_steps"),
        (OURO | {"sliding_window": 8}, "sliding_window"),
        (DECI | {"num_key_value_heads_per_layer": [3, 3, 1, 2, 1]}, "per_layer"),
        (
            DECI | {"num_key_value_heads_per_layer": [3, 3, 1, 4, 1, 1]},
            "layer 3: 'num_key_value_heads' is 4",
        ),
        (DECI | {"num_key_value_heads_per_layer": None}, "per_layer"),
        (MPT | {"attn_config": {"kv_n_heads": 2}}, "kv_n_heads"),
        (MPT | {"attn_config": {"attn_type": "sparse"}}, "attn_type"),
        (MPT | {"attn_config": {"sliding_window_size": 64}}, "sliding_window_size"),
        (MPT | {"attn_config": {"prefix_lm": True}}, "prefix_lm"),
        # other families
        (BASE | HEADS | {"model_type": "x", "attn_config": {"kv_n_heads": 2}}, "attn_config"),
        (BASE | HEADS | {"model_type": "x", "head_dim": 16, "total_ut_steps": 4}, "total_ut"),
    ],
)
def test_fields_that_contradict_each_other_are_named(config: dict[str, Any], field: str) -> None:
    assert field in refusal(config)


def test_sizes_that_are_missing_are_named() -> None:
    for config, name, size in (
        (JETMOE, "kv_channels", "full.head_dim"),
        (JETMOE, "num_experts_per_tok", "full.heads"),
        (LONGCAT, "kv_lora_rank", "mla.latent"),
    ):
        with pytest.raises(UnknownSizes, match=f"'{name}' is missing") as caught:
            from_config({key: value for key, value in config.items() if key != name})
        assert size in caught.value.outline.missing


def test_sparse_layers_that_are_not_read_are_refused_with_the_reason() -> None:
    phi = BASE | HEADS | {"model_type": "phi3small", "dense_attention_every_n_layers": 2}
    assert "'blocksparse_*'" in refusal(phi)
    for name in ("blocksparse_block_size", "dense_attention_every_n_layers"):
        assert f"'{name}'" in refusal(BASE | HEADS | {"model_type": "x", name: 2})
    doge = BASE | HEADS | {"model_type": "doge", "keep_window_size": 2048}
    assert "without the query" in refusal(doge)
    of_bytes = {"model_type": "blt", "encoder_config": {}, "decoder_config": {}}
    assert "patches" in refusal(BASE | of_bytes)
    # the difference of two softmaxes over values of twice the width tells a reader more than one
    for named in ({"model_type": "diffllama"}, {"architectures": ["DiffLlamaForCausalLM"]}):
        assert "'diffllama'" in refusal(BASE | HEADS | named)
    for kind in ("zaya", "inkling_text", "inkling2_text", "qwen4_exp_text", "glm5_next_text"):
        listed = {"model_type": kind, "layer_types": ["hybrid"] * 6}
        assert f"'{kind}'" in refusal(BASE | HEADS | listed)


def test_decoders_that_see_images_or_hear() -> None:
    """Keys and values of every width: 2 x 96 numbers of a token; of Granite 2 x 3 x 16."""
    kosmos = {
        **{"model_type": "kosmos_2_5_text_model", "layers": 6, "embed_dim": 96},
        **{"attention_heads": 6, "ffn_dim": 128, "vocab_size": 99, "dtype": "bfloat16"},
    }
    around = {"model_type": "kosmos-2.5", "latent_query_num": 2048, "text_config": kosmos}
    read = from_config(around)
    assert read.cache_bits(T) == 6 * 2 * 96 * T * 16
    assert {part.sizes()["positions"] for (part,) in read} == {"embedded"}
    assert "attention_heads" in refusal(kosmos | {"attention_heads": 7})
    hears = {
        "model_type": "granite_speech",
        "text_config": BASE | HEADS | {"model_type": "granite"},
        "encoder_config": {"num_heads": 8, "context_size": 200, "conv_kernel_size": 15},
        **{"downsample_rate": 5, "window_size": 15},
    }
    assert from_config(hears) == from_config(hears["text_config"])
    # in the language model itself it is no window that anybody knows
    inner = hears["text_config"] | {"window_size": 15}
    assert "'window_size'" in refusal(hears | {"text_config": inner})


def test_a_base_for_every_layer_says_which_layers_rotate() -> None:
    bases = [10000.0, 0, 500000.0, 0, 10000.0, 0]
    read = from_config(GRANITE | {"layer_rope_theta": bases})
    rotated = [layer[0].sizes() for layer in read]
    assert [(sizes["rope"], sizes["rope_base"] if sizes["rope"] else 0) for sizes in rotated] == [
        (base > 0, base) for base in bases
    ]
    assert "'layer_rope_theta'" in refusal(GRANITE | {"layer_rope_theta": bases[:5]})


def fla(kind: str, **sizes: Any) -> dict[str, Any]:
    return BASE | {"num_hidden_layers": 2, "model_type": kind, "rope_theta": 10000.0} | sizes


FLA = [
    # bits by hand: kept in 16 bits per token, states in 32
    (fla("transformer", num_heads=6, num_kv_heads=3, window_size=None), 2 * 96 * T * 16),
    (fla("transformer", num_heads=6, num_kv_heads=None, window_size=7), 2 * 192 * 7 * 16),
    (
        fla(
            "mla",
            **{"num_heads": 6, "kv_lora_rank": 40, "qk_rope_head_dim": 8, "v_head_dim": 24},
            **{"qk_nope_head_dim": 16, "q_lora_rank": 24, "qk_head_dim": 24, "window_size": None},
        ),
        2 * 48 * T * 16,
    ),
    # and a gate in fp32 for each head of a token
    (
        fla("forgetting_transformer", num_heads=6, num_kv_heads=3, use_output_gate=True),
        2 * (96 * 16 + 6 * 32) * T,
    ),
    # a mean key for each of the six full blocks
    (
        fla("moba", num_heads=6, num_kv_heads=3, moba_chunk_size=16, moba_topk=4),
        2 * (96 * T + 6 * 48) * 16,
    ),
    # a compressed key and value for each of them
    (
        fla(
            "nsa",
            **{"num_heads": 8, "num_kv_heads": 2, "head_dim": 20, "block_size": 16},
            **{"block_counts": 3, "window_size": 32},
        ),
        2 * 80 * (T + 6) * 16,
    ),
    (fla("hgrn", expand_ratio=2, use_short_conv=False, conv_size=4), 2 * 192 * 32),
    # 192 channels of input and as many of gate
    (
        fla("hgrn", expand_ratio=2, use_short_conv=True, conv_size=4),
        2 * (192 * 32 + 384 * 3 * 16),
    ),
    # keys of 24 and values of 12 numbers in 10 slots, two heads of them; convolutions on q, k, v
    (
        fla(
            "gsa",
            **{"num_heads": 4, "num_kv_heads": 2, "num_slots": 10, "expand_k": 1},
            **{"expand_v": 0.5, "use_short_conv": True, "conv_size": 4},
        ),
        2 * (2 * 10 * (24 + 12) * 32 + (96 + 48 + 24) * 3 * 16),
    ),
    (
        fla(
            "comba",
            **{"num_heads": 3, "num_v_heads": 6, "head_dim": 16, "expand_v": 2.0},
            **{"use_short_conv": True, "conv_size": 4, "use_inner_decay": True},
        ),
        2 * (6 * 16 * 32 * 32 + (48 + 48 + 192) * 3 * 16),
    ),
    # expand_ratio wins over num_heads: 96 x 16 numbers, whatever the heads
    (fla("hgrn2", num_heads=3, expand_ratio=16, use_short_conv=False), 2 * 96 * 16 * 32),
    (fla("hgrn2", num_heads=3, expand_ratio=None, use_short_conv=False), 2 * 96 * 32 * 32),
]


@each("config, bits", FLA)
def test_models_of_flash_linear_attention_by_hand(config: dict[str, Any], bits: int) -> None:
    assert from_config(config).cache_bits(T) == bits


def test_a_window_where_none_is_read_stops_the_file() -> None:
    for config, _ in FLA[3:5]:
        assert "'window_size'" in refusal(config | {"window_size": 8})


HYMBA = {
    **{"model_type": "hymba", "architectures": ["HymbaForCausalLM"], "torch_dtype": "bfloat16"},
    **{"hidden_size": 1600, "num_hidden_layers": 32, "num_attention_heads": 25},
    **{"num_key_value_heads": 5, "sliding_window": 1024, "global_attn_idx": [0, 15, 31]},
    **{"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_dt_rank": 100},
    **{"num_memory_tokens": 128, "memory_tokens_interspersed_every": 0, "num_mamba": 1},
    **{"attn_hidden_size": -1, "kq_head_dim": -1, "kq_norm": "none", "v_head_dim": 128},
    **{"kv_reuse_every_i_layer": -1, "kv_weight_reuse": False, "attn_only_wo_proj": True},
    **{"mamba_inner_layernorms": True, "rope": True, "rope_theta": 10000.0, "vocab_size": 32001},
}
"""As released, but for 'kv_reuse_group'."""


def test_hymba_counts_shared_keys_once() -> None:
    # 3 full layers of 5 x (64 + 128) numbers a token; 3,200 channels are 25 heads of 128
    alone = from_config(HYMBA)
    assert alone.cache(T)["kv"].total == 3 * 5 * 192 * T * 16
    assert alone.cache(T)["window"].total == 29 * 5 * 192 * T * 16
    # 14 pairs of sliding layers and one that keeps its own: 15 windows in place of 29
    pairs = [[i, i + 1] for i in (*range(1, 15, 2), *range(17, 31, 2))]
    shared = from_config(HYMBA | {"kv_reuse_group": pairs})
    assert shared.cache(T)["window"].total == 15 * 5 * 192 * T * 16
    assert shared.cache(T)["kv"].total == alone.cache(T)["kv"].total
    assert shared.cache(T)["state"].total == alone.cache(T)["state"].total
    assert [layer[0].symbol for layer in shared][:4] == ["f", "w", "W", "w"]


def test_hymba_without_groups_shares_nothing() -> None:
    assert from_config(HYMBA | {"kv_reuse_group": []}).layers == from_config(HYMBA).layers


def test_a_depth_out_of_bounds_is_named_as_the_file_names_it() -> None:
    xlstm = {"model_type": "xlstm", "hidden_size": 64, "num_heads": 4}
    nemotron = {"model_type": "nemotron_h", "hidden_size": 64}
    for file, name in ((xlstm, "num_blocks"), (nemotron, "num_hidden_layers")):
        assert f"'{name}' is 10001; " in refusal(file | {name: 10_001})
    for none in (7, "", {}):
        assert "'hybrid_override_pattern'" in refusal(nemotron | {"hybrid_override_pattern": none})


def test_hymba_refuses_what_no_released_file_has() -> None:
    for groups in ([[0, 1]], [[1, 2], [2, 3]], [[]], [[1, 40]], 3, [7]):
        assert "'kv_reuse_group" in refusal(HYMBA | {"kv_reuse_group": groups})
    for name, value in (
        *(("kv_reuse_every_i_layer", 2), ("num_mamba", 2), ("v_head_dim", 64)),
        *(("memory_tokens_interspersed_every", 4), ("kq_head_dim", 32)),
    ):
        assert f"'{name}' is {value}" in refusal(HYMBA | {name: value})


@each(
    "config, said",
    [
        (GEMMA_2 | {"sliding_window_size": 12}, "disagree"),
        (searched({"n_heads_in_group": 4}), "is 6 / 4"),
        (searched({}), "'block_configs[0].attention.n_heads_in_group' is missing"),
        (
            searched(GROUP, GROUP | {"window_length": 9}),
            "[1].attention.window_length' is 9",
        ),
        (searched({"no_op": 1}), "'block_configs[0].attention.no_op' is 1"),
        (searched(GROUP) | {"num_hidden_layers": 2}, "'block_configs' has 1"),
        (searched() | {"block_configs": [3], "num_hidden_layers": 1}, "'block_configs[0]' is 3"),
    ],
)
def test_layers_that_are_told_one_by_one_must_be_told_whole(
    config: dict[str, Any], said: str
) -> None:
    assert said in refusal(config)


def test_sizes_that_gemma_3_leaves_to_its_class_are_assumed() -> None:
    """The file of the 4B model: 34 layers, 29 of them slide; 4 key heads of 256 numbers."""
    text = {
        **{"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240},
        **{"num_hidden_layers": 34, "sliding_window": 1024},
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    }
    config = {"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": text}
    read = from_config(config)
    assert numbers(read) == 34 * 2 * 4 * 256 * T
    assert read.cache_bits(10_000) == 16 * 2 * 4 * 256 * (5 * 10_000 + 29 * 1024)
    assert any("'head_dim' = 256" in note and "(assumed)" in note for note in read.notes)
    with pytest.raises(UnknownSizes):
        from_config(config | {"text_config": text | {"head_dim": None}})
    # key heads alone: what is missing is asked for, no number of the class is called wrong
    with pytest.raises(UnknownSizes, match="'num_attention_heads' is missing"):
        from_config(config | {"text_config": text | {"num_key_value_heads": 16}})
