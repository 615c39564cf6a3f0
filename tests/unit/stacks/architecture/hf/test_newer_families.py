"""Families that are newer than the transformers of these tests: what their files say against the
numbers in the caches of its release 5.24, where tiny models of random weights read 96 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config

T = 96
SIZES: dict[str, Any] = {
    **{"num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 64},
    **{"num_key_value_heads": 2, "head_dim": 24, "sliding_window": 32, "dtype": "float32"},
}
LATENT = {
    **{"kv_lora_rank": 20, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 14},
    **{"num_key_value_heads": 4, "head_dim": 8, "q_lora_rank": 24, "sliding_window": None},
}
INDEXER = {"index_head_dim": 16, "index_n_heads": 2, "index_topk": 8}
GATED_DELTA = {
    **{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4},
    **{"linear_key_head_dim": 12, "linear_value_head_dim": 10},
}


def kinds(letters: str) -> list[str]:
    words = {"f": "full", "s": "sliding", "i": "indexed", "l": "linear"}
    return [f"{words[letter]}_attention" if letter in words else "conv" for letter in letters]


LAGUNA = {
    **{"model_type": "laguna", "layer_types": kinds("sssfsssf"), "gating": True},
    "num_attention_heads_per_layer": [6, 6, 6, 4, 6, 6, 6, 4],
    "rope_parameters": {
        "full_attention": {"rope_theta": 500_000.0, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
    },
}
LFM3 = {
    **{"model_type": "lfm3", "layer_types": kinds("ccfcscfc"), "conv_L_cache": 7},
    **{"use_attention_gate": True, "intermediate_size": 48},
}
LARA = {"model_type": "lara_mini", "layer_types": kinds("lslfslsl"), **GATED_DELTA}
BAILING = {
    **{"model_type": "bailing_hybrid", "layer_group_size": 6, "short_conv_kernel_size": 4},
    **LATENT,
    **{"q_lora_rank": None, "head_dim": 12, "kda_safe_gate": True, "kda_lower_bound": -5.0},
}
MISTRAL = {
    **{"model_type": "mistral_large4_text", "layer_types": kinds("iiiiiiii")},
    **{"no_rope_layers": [1, 1, 1, 0] * 2, "kv_source_layers": [*range(8)]},
    **{"indexer_types": ["full"] * 8, **LATENT, **INDEXER},
}
HY_V4 = {
    **{"model_type": "hy_v4", "layer_types": kinds("iiiiiiii"), "learnable_sink_init": 0.0},
    **{"indexer_types": ["full"] * 8, **LATENT, **INDEXER},
}
MOLMO2 = {"model_type": "molmo2_text", "qk_norm_type": "qwen3", "rope_theta": 1_000_000.0}
# convolutions keep K - 1 columns; transformers holds K, of which one is never read again
GDN, KDA, CONV = 832 - (2 * 2 * 12 + 4 * 10), 1152 - 3 * 4 * 12, 448 - 64
CACHED: list[tuple[dict[str, Any], list[int]]] = [
    (LAGUNA, [2976, 2976, 2976, 9216] * 2),
    (LFM3, [CONV, CONV, 9216, CONV, 2976, CONV, 9216, CONV]),
    (LARA, [GDN, 2976, GDN, 9216, 2976, GDN, 2976, GDN]),
    (BAILING, [KDA] * 5 + [2688] + [KDA] * 2),
    (MISTRAL, [4224, 4224, 4224, 3456] * 2),
    # of its layers with an indexer of their own
    (HY_V4, [4224] * 8),
]


def _kept(part: Any) -> int:
    """A window drops the token that the next query no longer sees."""
    full = sum(item.bits.numbers for item in part.cache(T))
    return full // 32 * 31 if part.name == "window" else full


@each("config, cached", CACHED)
def test_what_is_counted_is_what_is_cached(config: dict[str, Any], cached: list[int]) -> None:
    read = from_config(SIZES | config)
    assert [_kept(part) for (part,) in read] == cached
    # inside a file that sees or hears, nothing changes
    around = {"model_type": "some_vl", "text_config": SIZES | config, "vision_config": {}}
    assert from_config(around).layers == read.layers


def test_what_stands_around_their_attention() -> None:
    laguna = [part.sizes() for (part,) in from_config(SIZES | LAGUNA)]
    assert [own["heads"] for own in laguna] == [6, 6, 6, 4] * 2
    assert [own["rope_dim"] for own in laguna] == [None, None, None, 12] * 2
    lara = {part.name: part.sizes() for (part,) in from_config(SIZES | LARA)}
    assert (lara["window"]["rope"], lara["full"]["rope"]) == (True, False)
    lfm = {part.name: part.sizes() for (part,) in from_config(SIZES | LFM3)}
    assert (lfm["full"]["gate"], lfm["full"]["rope_dim"]) == ("head", 12)
    assert lfm["window"]["rope_base"] == 10_000
    off = from_config(SIZES | LFM3 | {"use_attention_gate": False})
    assert {part.sizes().get("gate", "none") for (part,) in off} == {"none"}
    # the whole of a query and key, of which nothing is rotated
    mistral = [part.sizes() for (part,) in from_config(SIZES | MISTRAL)]
    assert [(own["head_dim"], own["rope_dim"]) for own in mistral[2:4]] == [(12, 8), (20, 0)]
    (molmo, *_) = [part.sizes() for (part,) in from_config(SIZES | MOLMO2)]
    assert (molmo["qk_norm"], molmo["rope_base"]) == ("head", 1_000_000)


@each(
    "config, word",
    [
        (LAGUNA | {"num_attention_heads_per_layer": [6] * 7}, "'num_attention_heads_per_layer'"),
        (LAGUNA | {"num_attention_heads_per_layer": 6}, "'num_attention_heads_per_layer'"),
        (LAGUNA | {"num_attention_heads_per_layer": [6, 5] * 4}, "layer 1: 'num_key_value_heads'"),
        (LAGUNA | {"num_attention_heads_per_layer": ["6"] * 8}, "entry 1 of"),
        (LAGUNA | {"num_attention_heads_per_layer": [6, None] * 4}, "entry 2 of"),
        (LFM3 | {"layer_types": None}, "layer_types"),
        (LFM3 | {"use_attention_gate": "yes"}, "'use_attention_gate'"),
        (LARA | {"layer_types": kinds("lslf")}, "'layer_types'"),
        (BAILING | {"layer_group_size": 0}, "'layer_group_size'"),
        # Lightning attention, as another release of the same type has it
        (BAILING | {"linear_silu": True, "group_norm_size": 4}, "'linear_silu'"),
        (MISTRAL | {"kv_source_layers": [0, 0, *range(2, 8)]}, "'kv_source_layers'"),
        (MISTRAL | {"indexer_types": ["full", "shared"] * 4}, "'indexer_types'"),
        (MISTRAL | {"layer_types": kinds("iiiiiiif")}, "'layer_types'"),
        (MISTRAL | {"no_rope_layers": None}, "'no_rope_layers'"),
        (HY_V4 | {"indexer_types": ["shared", "full"] * 4}, "'indexer_types'"),
        (HY_V4 | {"indexer_types": ["full", "half"] * 4}, "entry 2 of 'indexer_types'"),
        (HY_V4 | {"indexer_types": ["full", "shared"] * 3}, "has 6 entries"),
        (HY_V4 | {"layer_types": kinds("iiiiiiif")}, "'layer_types'"),
        (MOLMO2 | {"qk_norm_type": "olmo"}, "'qk_norm_type'"),
        (MOLMO2 | {"rope_scaling_layers": [0, 1]}, "'rope_scaling_layers'"),
        ({"model_type": "dots3_note_text", **LATENT}, "slide over latents"),
        ({"model_type": "unlimited_ocr_text"}, "whole prompt"),
        ({"model_type": "inkling2_loop_text"}, "'inkling2_loop_text'"),
    ],
)
def test_what_is_not_read_of_them(config: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_config(SIZES | config)
    assert word in str(caught.value)


def indexers(config: dict[str, Any]) -> str:
    own = {"dsa": "F", "dsa_shared": "S"}
    return "".join(own[part.name] for (part,) in from_config(SIZES | config))


def test_layers_that_share_an_indexer() -> None:
    """By list, letters or period, as transformers' classes of GLM-5.2 and Hunyuan 4 make them."""
    silent = {key: value for key, value in HY_V4.items() if key != "indexer_types"}
    glm = {**silent, "model_type": "glm_moe_dsa"}
    assert indexers(glm) == "FFFFFFFF"
    assert indexers(glm | {"index_topk_pattern": "FSSFFSFS"}) == "FSSFFSFS"
    assert indexers(glm | {"indexer_types": ["full", "shared"] * 4}) == "FSFSFSFS"
    assert indexers(glm | {"index_topk_freq": 4}) == "FFSSSFSS"
    assert indexers(glm | {"index_topk_freq": 2, "index_skip_topk_offset": 1}) == "FSFSFSFS"
    assert indexers(silent) == "FFSSSFSS"
    with pytest.raises(ConfigError, match="'index_topk_pattern'"):
        from_config(SIZES | glm | {"index_topk_freq": 2, "index_skip_topk_offset": 0})
    found = from_config(SIZES | silent)
    assert any("every 4 layers" in note for note in found.notes)
    # 20 + 8 numbers of a latent a token in every layer, 16 of an indexer's key in three of them
    assert sum(part.cache(10)[0].bits.numbers for (part,) in found) == 10 * (8 * 28 + 3 * 16)


EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
ROUTED = {**EXPERTS, "n_shared_experts": 1, "intermediate_size": 48, "first_k_dense_replace": 1}


@each(
    "config, numbers",
    [
        (LARA | EXPERTS | {"shared_expert_intermediate_size": 16}, 249_216),
        (BAILING | ROUTED | {"num_attention_heads": 4}, 274_400),
        (MISTRAL | ROUTED | {"q_lora_rank": None, "tie_word_embeddings": True}, 249_088),
    ],
)
def test_weights_of_release_5_24(config: dict[str, Any], numbers: int) -> None:
    """Of its modules with these sizes, but for norms, biases and single numbers of a head."""
    found = from_config(SIZES | config).weights
    assert found is not None
    assert found.total == numbers
    dense = {key: value for key, value in config.items() if key != "first_k_dense_replace"}
    # transformers has a number of dense layers of its own, which no such file leaves out
    assert from_config(SIZES | dense).weights is None or "first_k_dense_replace" not in config


SCOUT = {
    **{"model_type": "llama4_text", "num_local_experts": 4, "num_experts_per_tok": 1},
    **{"intermediate_size": 16, "intermediate_size_mlp": 48, "rope_theta": 10_000.0},
    **{"attention_chunk_size": 32, "no_rope_layers": [1, 1, 1, 0] * 2},
}


@each(
    "said, sparse",
    [
        ({}, 8),
        ({"moe_layers": [1, 3, 5, 7]}, 4),
        ({"moe_layers": []}, 0),
        ({"interleave_moe_layer_step": 2}, 4),
        ({"interleave_moe_layer_step": 2, "moe_layers": [0]}, 1),
    ],
)
def test_dense_layers_of_llama_4_have_a_width_of_their_own(
    said: dict[str, Any], sparse: int
) -> None:
    """Three maps of 64 x 48 in them; in the others a router of 4 x 64, an expert for all tokens and
    4 of which one is chosen, each three maps of 64 x 16.
    """
    found = from_config(SIZES | SCOUT | said).weights
    assert found is not None
    assert found.mlps == sparse * (4 * 64 + 3 * 64 * 16) + (8 - sparse) * 3 * 64 * 48
    assert sum(own.layers * own.every * own.size for own in found.experts) == sparse * 4 * 3 * 1024


@each(
    "config, word",
    [
        (SCOUT | {"moe_layers": 3}, "'moe_layers' is 3"),
        (HY_V4 | ROUTED | {"mlp_layer_types": ["dense"] * 3}, "'mlp_layer_types' has 3 entries"),
        (HY_V4 | ROUTED | {"first_k_dense_replace": 2}, "'first_k_dense_replace' is 2"),
        (HY_V4 | ROUTED | {"first_k_dense_replace": None}, "'mlp_layer_types' is missing"),
    ],
)
def test_where_experts_stand_is_told_or_weights_are_not(config: dict[str, Any], word: str) -> None:
    found = from_config(SIZES | config)
    assert found.weights is None
    assert word in str(found.uncounted)
    # ROUTED says that one layer is dense, as transformers' class has it
    assert from_config(SIZES | HY_V4 | ROUTED).weights is not None


def test_gates_of_laguna_are_one_a_head_or_one_a_number() -> None:
    """The difference: 64 x (24 - 1) weights for each of 44 heads in eight layers."""
    sizes = EXPERTS | {"shared_expert_intermediate_size": 16, "intermediate_size": 48}
    config = SIZES | LAGUNA | sizes | {"mlp_layer_types": ["dense", *["sparse"] * 7]}
    heads, numbers = (
        from_config(config | {"gating": own}).weights for own in (True, "per-element")
    )
    # its class reads no other word than "per-head" as one a head
    assert from_config(config | {"gating": False}).weights == numbers
    assert heads is not None
    assert numbers is not None
    assert (heads.total, numbers.total) == (313_856, 313_856 + 64 * 23 * 44)


def test_fields_that_classes_do_not_ask_for() -> None:
    """Found by changing fields of tiny models of transformers (tests/peers/test_mutated_files)."""
    for kind in ("mistral", "moshi"):
        config = SIZES | {"model_type": kind, "rope_theta": 10_000.0}
        assert {part.name for (part,) in from_config(config)} == {"window"}
        with pytest.raises(ConfigError, match="'use_sliding_window' is False"):
            from_config(config | {"use_sliding_window": False})
        null = config | {"use_sliding_window": False, "sliding_window": None}
        assert {part.name for (part,) in from_config(null)} == {"full"}
    unlisted = SIZES | {"model_type": "cohere_compass_text"}
    assert {part.name for (part,) in from_config(unlisted)} == {"full"}
    with pytest.raises(ConfigError, match="'sliding_window_pattern'"):
        from_config(unlisted | {"sliding_window_pattern": 3})
    griffin = SIZES | {
        **{"model_type": "recurrent_gemma", "block_types": ["recurrent", "attention"]},
        **{"lru_width": 64, "conv1d_width": 4, "attention_window_size": 24},
    }
    with pytest.raises(ConfigError, match="'sliding_window'"):
        from_config(griffin)
    assert len(from_config(griffin | {"sliding_window": 24})) == 8


def test_what_stands_beside_the_language_model() -> None:
    """Rotations of sound and the maps from images are none of the language model's."""
    llama = SIZES | {"model_type": "llama"}
    hears = {"model_type": "musicflamingo", "head_dim": 1280, "text_config": llama}
    sees = {"model_type": "molmo2", "adapter_config": {"head_dim": 72}, "text_config": llama}
    for config in (hears, sees):
        assert from_config(config).layers == from_config(llama).layers
    with pytest.raises(ConfigError, match="'head_dim'"):
        from_config(hears | {"model_type": "llava"})
