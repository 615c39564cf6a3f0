"""Families of softmax attention alone on small files: layers, keys and values, windows and notes
worked out by hand; what is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import (
    ATTENTION,
    DEEPSEEK,
    DEEPSEEK_INDEXED,
    DEEPSEEK_V4,
    DEEPSEEK_V4_TYPED,
    EXAONE,
    FALCON,
    GEMMA3,
    GEMMA3N,
    GEMMA4,
    GPT2,
    LLAMA,
    LLAMA4,
    MIMO,
    MINIMAX_M2,
    MINIMAX_M3,
    MINIMAX_M3_FLAT,
    MISTRAL,
    QWEN2,
    QWEN3_MOE,
    SMALLTHINKER,
    STEP,
    UNKNOWN,
)
from support.unplaced import sizes_of

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import DSA, Compressed, Full, Indexed, Latent, Window

BF16: dict[str, Any] = {"format": "bf16", "accumulator": "fp32", "running_max": True}

BY_HAND = {
    # pattern; numbers of keys and values per token; numbers of windows after 100 tokens
    "llama": ("ffffff", 6 * 2 * 3 * 16, 0),
    "mistral": ("wwwwww", 0, 6 * 11 * 2 * 3 * 20),
    "mixtral": ("ffffff", 720, 0),
    "seed_oss": ("ffffff", 720, 0),
    "gemma": ("ffffff", 720, 0),
    "qwen2": ("ffffww", 4 * 96, 2 * 11 * 96),
    "qwen3": ("ffffff", 720, 0),
    "qwen3_moe": ("ffffff", 720, 0),
    "dots1": ("ffwwww", 2 * 120, 4 * 11 * 120),
    "gpt2": ("fff", 3 * 2 * 4 * 12, 0),
    "gpt_bigcode": ("fff", 3 * 2 * 12, 0),
    "falcon": ("ffffff", 6 * 2 * 2 * 16, 0),
    "dbrx": ("fff", 3 * 2 * 2 * 16, 0),
    "gemma2": ("wfwfwf", 3 * 120, 3 * 11 * 120),
    "gemma3_text": ("wwwfww", 120, 5 * 11 * 120),
    "gemma3n_text": ("wwwwfw", 120, 5 * 11 * 120),
    "gpt_oss": ("wfwwfw", 2 * 120, 4 * 11 * 120),
    "cohere2": ("wwfwwf", 2 * 96, 4 * 11 * 96),
    "olmo3": ("wwwfww", 96, 5 * 11 * 96),
    "exaone4": ("wwfwwf", 2 * 96, 4 * 11 * 96),
    "afmoe": ("wwfwwf", 2 * 120, 4 * 11 * 120),
    "cwm": ("fwwwfw", 2 * 120, 4 * 11 * 120),
    "granite_swa": ("fwwwfw", 2 * 96, 4 * 11 * 96),
    "gemma4_text": ("wfwwwf", 2 * 2 * 2 * 28, 4 * 11 * 120),
    "gemma4_unified_text": ("wfwwwf", 2 * 2 * 2 * 28, 4 * 11 * 120),
    "llama4_text": ("cfccfc", 2 * 120, 4 * 13 * 120),
    "mimo_v2_flash": ("fwwfww", 2 * 3 * (20 + 12), 4 * 11 * 4 * (22 + 14)),
    "step3p7": ("fwwwfw", 2 * 120, 4 * 11 * 120),
    "smallthinker": ("fwwfww", 2 * 120, 4 * 11 * 120),
    "minimax_m2": ("ffffff", 720, 0),
    "minimax_m3": ("ffiifi", 3 * 120 + 3 * (120 + 14), 0),
    "minimax_m3_vl_text": ("fififi", 3 * 120 + 3 * (120 + 14), 0),
    "deepseek_v3": ("aaaaaa", 6 * (40 + 8), 0),
    "deepseek_v32": ("DDDDDD", 6 * (40 + 8 + 14), 0),
}


@each("name", BY_HAND)
def test_layers_keys_and_windows(name: str) -> None:
    read = from_config(ATTENTION[name])
    pattern, per_token, windows = BY_HAND[name]
    assert "".join(part.symbol for layer in read for part in layer) == pattern
    cache = read.cache(100)
    assert (cache["kv"].numbers if "kv" in cache else 0) == 100 * per_token
    assert (cache["window"].numbers if "window" in cache else 0) == windows


def test_every_small_file_is_counted() -> None:
    assert set(BY_HAND) | {"deepseek_v4", "deepseek_v4 typed"} == set(ATTENTION)


def test_compressed_attention_by_hand() -> None:
    """100 tokens. Ratio 4: 25 entries of 20 + 14, 11 raw vectors of 20, 7 tokens waiting with
    content and gate of two entries; ratio 128: no entry yet, all 100 tokens waiting with content
    and gate; windows alone: 11 vectors, key and value in one.
    """
    read = from_config(DEEPSEEK_V4)
    assert "".join(layer[0].symbol for layer in read) == "wzzzzz"
    assert read.cache(100)["kv"].numbers == 3 * 25 * 34
    assert read.cache(100)["window"].numbers == 220 + 3 * (220 + 7 * 2 * 2 * 34) + 2 * (
        220 + 100 * 2 * 20
    )
    typed = from_config(DEEPSEEK_V4_TYPED)
    assert "".join(layer[0].symbol for layer in typed) == "wzzwzz"
    assert typed.cache(100)["kv"].numbers == 2 * 33 * 34 + 2 * 3 * 20
    assert typed.cache(100)["window"].numbers == 2 * 220 + 2 * (220 + 5 * 2 * 2 * 34) + 2 * (
        220 + 31 * 2 * 20
    )


def test_sizes_of_single_layers() -> None:
    assert sizes_of(DEEPSEEK).layers[0] == (
        Latent(heads=6, head_dim=16, value_dim=24, latent=40, rope_dim=8, **BF16),
    )
    indexed = DSA(
        heads=6,
        head_dim=16,
        value_dim=24,
        latent=40,
        rope_dim=8,
        index_heads=5,
        index_dim=14,
        topk=9,
        **BF16,
    )
    assert sizes_of(DEEPSEEK_INDEXED).layers[0] == (indexed,)
    blocks = Indexed(
        heads=6, kv_heads=3, head_dim=20, index_heads=3, index_dim=14, topk=7, block=16, **BF16
    )
    assert sizes_of(MINIMAX_M3).layers[2] == sizes_of(MINIMAX_M3_FLAT).layers[1] == (blocks,)
    window, sparse, heavy = (layer[0] for layer in sizes_of(DEEPSEEK_V4).layers[:3])
    only = {"kv_heads": 1, "size": 11, "shared": True, "sink": True}
    assert window == Window(heads=6, head_dim=20, **only, **BF16)
    assert sparse == Compressed(
        heads=6,
        head_dim=20,
        ratio=4,
        topk=9,
        index_heads=5,
        index_dim=14,
        size=11,
        overlap=True,
        **BF16,
    )
    assert heavy == Compressed(heads=6, head_dim=20, ratio=128, size=11, **BF16)
    full, own = (layer[0] for layer in sizes_of(MIMO).layers[:2])
    assert full == Full(heads=6, kv_heads=3, head_dim=20, value_dim=12, **BF16)
    wide = {"head_dim": 22, "value_dim": 14, "sink": True}
    assert own == Window(heads=8, kv_heads=4, size=11, **wide, **BF16)
    assert sizes_of(STEP).layers[1] == (Window(heads=9, kv_heads=3, head_dim=20, size=11, **BF16),)
    assert sizes_of(GEMMA4).layers[1] == (Full(heads=6, kv_heads=2, head_dim=28, **BF16),)
    assert sizes_of(GPT2).layers[0] == (
        Full(heads=4, kv_heads=4, head_dim=12, **{**BF16, "format": "fp32"}),
    )


def symbols(config: dict[str, Any]) -> str:
    return "".join(layer[0].symbol for layer in from_config(config))


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def test_defaults_of_a_model_class_are_noted() -> None:
    for config, pattern, said in [
        (without(GEMMA3, "sliding_window_pattern"), "wwwwwf", "every 6 layers (assumed)"),
        (without(LLAMA4, "no_rope_layers"), "cccfcc", "every 4 layers (assumed)"),
        (
            without(LLAMA4, "no_rope_layers") | {"no_rope_layers": []},
            "cccfcc",
            "every 4 layers (assumed)",
        ),
        (without(MIMO, "hybrid_layer_pattern"), "fwwwwf", "every 6 layers (assumed)"),
        (without(STEP, "layer_types"), "ffffff", "everywhere (assumed)"),
        (without(GEMMA4, "layer_types"), "wwwwwf", "every 6 layers (assumed)"),
    ]:
        assert symbols(config) == pattern
        assert any(said in note for note in from_config(config).notes), said
    assert not any("every" in note for note in from_config(GEMMA3).notes)
    assert symbols(without(LLAMA4, "no_rope_layers") | {"no_rope_layer_interval": 2}) == "cfcfcf"


def test_what_a_nested_file_leaves_to_the_class() -> None:
    """LLaVA 1.5 has Vicuna's 6.7, LLaVA 1.6 Mistral's 7.2 thousand millions of weights."""
    llava = {"model_type": "llama", "torch_dtype": "float16", "vocab_size": 32_064}
    mistral = {**llava, "model_type": "mistral", "num_key_value_heads": 8, "sliding_window": None}
    heads = {"heads": 32, "head_dim": 128, "format": "fp16", "accumulator": "fp32", "rope": True}
    for inner, kv, millions in ((llava, 32, 6_739), (mistral, 8, 7_242)):
        read = from_config({"model_type": "llava", "text_config": inner})
        assert len(read) == 32
        sizes = read.layers[0][0].sizes()
        assert sizes.items() >= {**heads, "kv_heads": kv}.items()
        assert read.weights is not None
        assert round(read.weights.total / 1e6) == millions
        assert any("'num_hidden_layers' = 32" in note for note in read.notes)
        # a file that stands alone is asked for them
        with pytest.raises(ConfigError, match="'num_hidden_layers' is missing"):
            from_config(inner)
    pixtral = {**mistral, "hidden_size": 5120, "head_dim": 128, "num_hidden_layers": 40}
    assert from_config({"text_config": pixtral}).layers[0][0].sizes()["heads"] == 32
    paligemma = {
        **{"model_type": "gemma", "hidden_size": 2048, "num_attention_heads": 8},
        **{"num_hidden_layers": 18, "num_key_value_heads": 1},
    }
    assert from_config({"text_config": paligemma}).cache(1)["kv"].numbers == 18 * 2 * 256
    audio = {"model_type": "qwen2", "intermediate_size": 11_008, "vocab_size": 156_032}
    assert from_config({"text_config": audio}).cache(1)["kv"].numbers == 32 * 2 * 4096


def test_the_last_layer_of_gemma_4_is_full() -> None:
    read = from_config(GEMMA4 | {"layer_types": ["sliding_attention"] * 6})
    assert "".join(layer[0].symbol for layer in read) == "wwwwwf"
    assert any("layer is full" in note for note in read.notes)


def test_key_heads_of_gemma_4_are_gated() -> None:
    """Without attention_k_eq_v the full layers have the key heads of all layers: 3 of 28
    numbers, keys and values.
    """
    assert (
        from_config(GEMMA4 | {"attention_k_eq_v": False}).cache(1)["kv"].numbers == 2 * 2 * 3 * 28
    )


def test_layer_lists_win_over_periods_and_switches() -> None:
    types = ["sliding_attention", "full_attention"] * 3
    for config in (GEMMA3, LLAMA, MISTRAL, EXAONE, QWEN2, LLAMA4 | {"sliding_window": 11}):
        assert symbols(config | {"layer_types": types, "sliding_window": 11}) == "wfwfwf"
    assert symbols(EXAONE | {"sliding_window": None}) == "ffffff"


def test_windows_are_off_unless_switched_on_in_qwen() -> None:
    assert symbols(without(QWEN2, "use_sliding_window")) == "ffffff"
    assert symbols(QWEN2 | {"sliding_window": None}) == "ffffff"
    assert symbols(QWEN2 | {"max_window_layers": 0}) == "wwwwww"


def test_sparse_attention_switched_off() -> None:
    inner = MINIMAX_M3["sparse_attention_config"] | {"use_sparse_attention": False}
    assert symbols(MINIMAX_M3 | {"sparse_attention_config": inner}) == "ffffff"


def test_layers_for_multi_token_prediction_are_left_out_and_noted() -> None:
    for config in (DEEPSEEK, DEEPSEEK_V4, STEP, MINIMAX_M3):
        assert any("('num_nextn_predict_layers' = 1)" in n for n in from_config(config).notes)
    assert not any("prediction" in note for note in from_config(LLAMA).notes)


UNKNOWN_BY_HAND = {
    "plain": ("ffffff", 720, 0),
    "untyped": ("wwwwww", 0, 6 * 11 * 120),
    "chunked": ("cccccc", 0, 6 * 13 * 120),
    "typed": ("wf--wf", 240, 2 * 11 * 120),
    "conv": ("ufufuf", 360, 0),
    "period": ("wwfwwf", 240, 4 * 11 * 120),
    "switched": ("ffffww", 4 * 96, 2 * 11 * 96),
    "latent": ("aaaaaa", 6 * 48, 0),
    "indexed": ("DDDDDD", 6 * 62, 0),
}


@each("name", UNKNOWN_BY_HAND)
def test_unknown_model_types_by_their_usual_fields(name: str) -> None:
    read = from_config(UNKNOWN[name])
    pattern, per_token, windows = UNKNOWN_BY_HAND[name]
    assert "".join(layer[0].symbol for layer in read) == pattern
    cache = read.cache(100)
    assert (cache["kv"].numbers if "kv" in cache else 0) == 100 * per_token
    assert (cache["window"].numbers if "window" in cache else 0) == windows
    said = "'model_type' is missing" if name == "untyped" else "'brand_new', which is not known"
    assert any(said in note and "usual fields (assumed)" in note for note in read.notes)


@each("config", [DEEPSEEK_V4, MINIMAX_M3, MIMO])
def test_lists_of_layers_of_another_type_are_read_as_its_own_where_told(
    config: dict[str, Any],
) -> None:
    new = config | {"model_type": "brand_new"}
    assert "--set like=" in refusal(new)
    assert from_config(new, settings=Settings(like=config["model_type"])) == from_config(config)


def test_short_convolutions_of_unknown_model_types() -> None:
    assert from_config(UNKNOWN["conv"]).cache(100)["convolution"].numbers == 3 * 2 * 96


def test_a_known_class_reads_a_file_of_an_unknown_model_type() -> None:
    read = from_config(QWEN2 | {"model_type": "brand_new", "architectures": ["Qwen2ForCausalLM"]})
    assert read == from_config(QWEN2)
    assert any("read as Qwen2ForCausalLM" in note for note in read.notes)


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    assert str(caught.value).startswith("file: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


NEW = UNKNOWN["plain"]
TYPED = UNKNOWN["typed"]


@each(
    "config, said",
    [
        (
            NEW | {"layer_types": ["linear_attention"] * 5 + ["full_attention"]},
            "makes 5 of 6",
        ),
        (NEW | {"layers_block_type": ["mamba", "attention"] * 3}, "makes 3 of 6"),
        (NEW | {"layer_types": ["hybrid"] * 6}, "makes 6 of 6"),
        (
            NEW | {"layer_types": ["hybrid_sliding", "full_attention"] * 3},
            "attention and recurrence",
        ),
        (NEW | {"attn_type_list": [0, 1] * 3}, "makes 3 of 6"),
        (NEW | {"hybrid_override_pattern": "M*M*M*"}, "makes 3 of 6"),
        (
            NEW | {"layer_types": ["linear_attention_v2"] * 6},
            "entry 1 of 'layer_types' is 'linear_attention_v2'",
        ),
        (
            NEW | {"layer_types": ["window_attention"] * 6},
            "entry 1 of 'layer_types' is 'window_attention'",
        ),
        (NEW | {"layer_types": ["full_attention"] * 5}, "has 5 entries"),
        (
            NEW | {"layer_types": ["full_attention"] * 6, "mamba_d_state": 4},
            "'mamba_d_state' is",
        ),
        (TYPED | {"layers_block_type": ["attention"] * 6}, "disagree"),
        (NEW | {"ssm_state_size": 4}, "'ssm_state_size' is"),
        (NEW | {"lightning_heads": 4}, "'lightning_heads' is"),
        (NEW | {"attn_layer_period": 2, "attn_layer_offset": 1}, "'attn_layer_period' is"),
        (NEW | {"full_attention_interval": 4}, "'full_attention_interval' is"),
        (NEW | {"attn_layer_indices": [1]}, "'attn_layer_indices' is"),
        (NEW | {"state_size": 16}, "'state_size' is"),
        (NEW | {"attn": {"layers": [1]}}, "'attn' is"),
        (NEW | {"global_head_dim": 64}, "'global_head_dim' is"),
        (NEW | {"v_head_dim": 64}, "'v_head_dim' is 64"),
        (NEW | {"num_kv_shared_layers": 2}, "'num_kv_shared_layers' is 2"),
        (NEW | {"is_encoder_decoder": True}, "left to right"),
        (NEW | {"per_layer_config": {"1": {"head_dim": 4}}}, "'per_layer_config'"),
        (without(NEW, "num_attention_heads"), "'model_type' is 'brand_new'"),
        (
            UNKNOWN["latent"] | {"layer_types": ["sliding_attention"] * 6, "sliding_window": 4},
            "'kv_lora_rank' is",
        ),
        (UNKNOWN["indexed"] | {"index_topk_freq": 4}, "'index_topk_freq' is 4"),
    ],
)
def test_what_only_the_models_code_knows_is_not_guessed(config: dict[str, Any], said: str) -> None:
    assert said in refusal(config)


@each(
    "config, said",
    [
        (
            LLAMA | {"mamba_d_state": 16},
            "'mamba_d_state'",
        ),
        # its class keeps keys of all heads there
        (
            FALCON | {"new_decoder_architecture": False, "multi_query": False},
            "'num_kv_heads' is 2, but num_attention_heads is 6",
        ),
        (LLAMA | {"hidden_size": 97}, "hidden_size / num_attention_heads is 97 / 6"),
        (LLAMA | {"num_key_value_heads": 4}, "does not divide"),
        (LLAMA | {"layer_types": ["linear_attention"] * 6}, "entry 1 of 'layer_types'"),
        (LLAMA | {"use_bidirectional_attention": True}, "left to right"),
        (
            QWEN2 | {"use_sliding_window": False, "layer_types": ["sliding_attention"] * 6},
            "'use_sliding_window' is false",
        ),
        (without(QWEN2, "max_window_layers"), "'max_window_layers' is missing"),
        (QWEN3_MOE | {"use_sliding_window": True, "sliding_window": 11}, "'layer_types'"),
        (GEMMA3 | {"sliding_window_pattern": 0}, "'sliding_window_pattern' is 0"),
        (GEMMA3 | {"layer_types": ["full_attention"] * 7}, "has 7 entries"),
        (GEMMA3N | {"num_kv_shared_layers": 2}, "'num_kv_shared_layers' is 2"),
        (without(GEMMA3N, "num_kv_shared_layers"), "'num_kv_shared_layers' is missing"),
        (EXAONE | {"sliding_window_pattern": "LLX"}, "3 of 'sliding_window_pattern' is 'X'"),
        (LLAMA4 | {"no_rope_layers": [1] * 5}, "'no_rope_layers' has 5 entries"),
        (LLAMA4 | {"no_rope_layers": [2] * 6}, "entry 1 of 'no_rope_layers' is 2"),
        (LLAMA4 | {"no_rope_layers": [True] * 6}, "entry 1 of 'no_rope_layers'"),
        (MIMO | {"hybrid_layer_pattern": [0, 1]}, "'hybrid_layer_pattern' has 2 entries"),
        (MIMO | {"layer_types": ["full_attention"] * 6}, "disagree"),
        (
            MIMO | {"sliding_window_size": 7},
            "'sliding_window' is 11 and 'sliding_window_size' is 7",
        ),
        (SMALLTHINKER | {"layer_types": ["full_attention"] * 6}, "disagree"),
        (STEP | {"num_nextn_predict_layers": 2}, "'layer_types' has 7 entries"),
        (
            STEP | {"attention_other_setting": {"num_attention_heads": 8}},
            "is 3",
        ),
        (MINIMAX_M2 | {"attn_type_list": [1, 1, 0, 1, 1, 1]}, "entry 3 of 'attn_type_list' is 0"),
        (MINIMAX_M3 | {"layer_types": ["full_attention"] * 6}, "disagree"),
        (without(MINIMAX_M3, "sparse_attention_config"), "sparse_attention_freq"),
        (
            MINIMAX_M3
            | {
                "sparse_attention_config": (
                    MINIMAX_M3["sparse_attention_config"] | {"sparse_disable_index_value": [0] * 6}
                )
            },
            "disagree",
        ),
        (DEEPSEEK | {"use_mla": False}, "'use_mla' is False"),
        (DEEPSEEK | {"index_topk": 8}, "'index_topk' is 8, but"),
        (DEEPSEEK_INDEXED | {"indexer_types": ["full", "shared"] * 3}, "'indexer_types' is"),
        (DEEPSEEK_INDEXED | {"index_topk_pattern": "FSFSFS"}, "'index_topk_pattern' is"),
        (DEEPSEEK_V4 | {"num_nextn_predict_layers": 0}, "'compress_ratios' has 7 entries"),
        (DEEPSEEK_V4 | {"num_nextn_predict_layers": 2}, "'compress_ratios' has 7 entries"),
        (
            DEEPSEEK_V4 | {"compress_ratios": [0, 4, 8, 4, 128, 4]},
            "entry 3 of 'compress_ratios' is 8",
        ),
        (DEEPSEEK_V4 | {"num_key_value_heads": 2}, "this model type 1"),
        (
            without(DEEPSEEK_V4, "compress_ratios"),
            "of which kind",
        ),
        (DEEPSEEK_V4 | {"layer_types": ["sliding_attention"] * 6}, "disagree"),
    ],
)
def test_contradictions_and_what_is_not_read(config: dict[str, Any], said: str) -> None:
    assert said in refusal(config)


@each(
    "config, missing",
    [
        (without(MISTRAL, "num_key_value_heads"), "window.kv_heads"),
        (without(NEW, "num_key_value_heads"), "full.kv_heads"),
        (GEMMA3 | {"head_dim": None}, "window.head_dim"),
        (without(GEMMA3, "sliding_window"), "window.size"),
        (without(LLAMA4, "attention_chunk_size"), "chunked.size"),
        (without(MIMO, "swa_v_head_dim"), "window.value_dim"),
        (without(GEMMA4, "global_head_dim"), "full.head_dim"),
        (without(DEEPSEEK_INDEXED, "index_topk"), "dsa.topk"),
        (without(DEEPSEEK_V4_TYPED, "compress_rates"), "compressed.ratio"),
        (without(UNKNOWN["conv"], "conv_L_cache"), "shortconv.conv"),
    ],
)
def test_missing_sizes_are_named_and_not_guessed(config: dict[str, Any], missing: str) -> None:
    with pytest.raises(UnknownSizes, match=f"--set {missing}=") as caught:
        from_config(config)
    assert missing in caught.value.outline.missing


def test_sizes_that_a_model_class_defines_by_others() -> None:
    assert sizes_of(without(LLAMA, "num_key_value_heads")).layers[0] == (
        Full(heads=6, kv_heads=6, head_dim=16, **BF16),
    )


def test_a_decoy_changes_nothing() -> None:
    assert from_config(DEEPSEEK_INDEXED | {"head_dim": 999}) == from_config(DEEPSEEK_INDEXED)
    assert from_config(MIMO | {"attention_chunk_size": 999}) == from_config(MIMO)


@each("kind, taken", [("mistral", "4,096"), ("ministral", "4,096"), ("moshi", "3,000")])
def test_a_window_that_is_left_out_is_no_null_window(kind: str, taken: str) -> None:
    """`sliding_window` of transformers' MistralConfig is 4,096 where the field is absent, and of
    MoshiConfig 3,000; null sees every token (tests/peers/test_mutated_files.py runs both).
    """
    file = without(MISTRAL, "sliding_window") | {"model_type": kind}
    assert taken in refusal(file)
    assert "null" in refusal(file)
    assert symbols(file | {"sliding_window": None}) == "ffffff"
