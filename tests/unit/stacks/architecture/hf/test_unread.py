"""A field that may change attention, and that no reader knows, stops the file.

The fields are those of released models: seen to slip through, and to make a wrong count of it.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import ATTENTION, DEEPSEEK, GEMMA3, GPT2, LLAMA, MINIMAX_M2, QWEN3
from support.hf_configs import QWEN
from support.hf_recurrent_configs import RECURRENT

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config

UNUSUAL: dict[str, Any] = {
    # JetMoE: the dimension of a head, whatever hidden_size is
    "kv_channels": 128,
    # HRM-Text and Ouro: the stack runs several times, with keys and values of each pass
    "H_cycles": 2,
    "total_ut_steps": 4,
    "num_recurrent_passes": 3,
    "loop_count": 2,
    # Phi-3-small
    "blocksparse_block_size": 64,
    "dense_attention_every_n_layers": 2,
    # Hymba, Hunyuan-Large, Gemma 3n: layers without keys of their own
    "kv_reuse_group": [[1, 2]],
    "cla_share_factor": 2,
    "kv_sharing_map": {"3": 2},
    # Doge
    "keep_window_size": 2048,
    # DeciLM
    "num_key_value_heads_per_layer": [1, 2, 3, 1, 2, 3],
    "attention_types": [[["global", "local"], 3]],
    "kv_n_heads": 1,
    "meta_tokens": 64,
    "kv_cache_budget": 512,
    "sink_size": 4,
    "dilated_attention": True,
    "mixture_of_depths": {"capacity": 0.5, "every": 2},
    "early_exit_layer": 3,
    "compress_block_size": 16,
    # whatever the field is called, its text names a mixer
    "kind": "mamba2",
    "flavour": "sliding_window",
    # switches
    "retention": True,
    "multi_query": True,
    "n_iter": 3,
    "k_dim": 5,
    "num_unique_layers": 3,
    # Hyena, Performer, Linformer, Mega, NATTEN
    "hyena_order": 2,
    "performer_nb_features": 64,
    "linformer_k": 128,
    "ema_projection_size": 16,
    "neighborhood_size": 7,
    "feature_map": "favor",
}
PLAIN = LLAMA | {"model_type": "never-heard-of", "head_dim": 16}


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    return str(caught.value)


@each("name", UNUSUAL)
def test_a_field_that_no_reader_knows_stops_every_family_and_the_probe(name: str) -> None:
    for config in (PLAIN, LLAMA, GPT2, QWEN3, GEMMA3, DEEPSEEK, MINIMAX_M2, QWEN):
        message = refusal(config | {name: UNUSUAL[name]})
        assert f"'{name}" in message
        assert "\n" not in message


@each("kind", [*ATTENTION, *RECURRENT])
def test_every_family_stops_at_passes_and_shared_layers(kind: str) -> None:
    config = (ATTENTION | RECURRENT)[kind]
    inner = config.get("text_config")
    for field in ({"total_ut_steps": 4}, {"kv_sharing_groups": [[1, 2]]}, {"num_loops": 2}):
        name = next(iter(field))
        edited = config | field if inner is None else config | {"text_config": inner | field}
        assert f"'{name}'" in refusal(edited)


def test_fields_around_the_language_model_count_too() -> None:
    nested = {"model_type": "some_vl", "dtype": "bfloat16", "text_config": dict(PLAIN)}
    read = from_config(nested)
    assert from_config(nested | {"num_hidden_layers": len(read), "vision_heads": 7}) == read
    for field in ({"num_hidden_layers": 40}, {"num_passes": 2}, {"sliding_window": 8}):
        assert f"'{next(iter(field))}' is" in refusal(nested | field)
    assert "both hold a model" in refusal(nested | {"llm_config": dict(GPT2)})


def test_fields_inside_objects_count_too() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"a": deep}
    for field, name in (
        ({"extra": {"cache_window": 4}}, "extra.cache_window"),
        ({"extra": [{"y": 1}, {"num_loops": 4}]}, "extra[1].num_loops"),
        ({"attention_bias": {"window": 4}}, "attention_bias.window"),
        ({"extra": deep | {"num_loops": 4}}, "extra"),
        ({"extra": deep}, "extra"),
        ({"attention": {"groups": 2}}, "attention"),
    ):
        assert f"'{name}" in refusal(PLAIN | field)


def test_a_class_of_another_family_stops_the_file() -> None:
    assert "a class of jamba" in refusal(LLAMA | {"architectures": ["JambaForCausalLM"]})
    assert from_config(LLAMA | {"architectures": ["MyLlama"]}) == from_config(LLAMA)


@each(
    "field",
    [
        *({"attention_dropout": 0.1}, {"attention_bias": True}, {"use_cache": False}),
        *({"hidden_dropout": 0.0}, {"layer_norm_eps": 1e-6}, {"decoder_sparse_step": 1}),
        *({"num_experts_per_tok": 2}, {"moe_layer_freq": 1}, {"kv_channels": None}),
        *({"use_mamba_layers": False}, {"num_attention_experts_dropout": 0.0}),
        # another spelling of what was read
        *({"n_layer": 6}, {"kv_channels": 16}, {"n_head_kv": 3}),
    ],
)
def test_harmless_fields_change_nothing(field: dict[str, Any]) -> None:
    for config in (PLAIN, LLAMA):
        assert from_config(config | field) == from_config(config)


@pytest.mark.parametrize("field", [{"n_layer": 7}, {"kv_channels": 15}, {"n_head_kv": 6}])
def test_another_spelling_that_disagrees_stops_the_file(field: dict[str, Any]) -> None:
    for config in (PLAIN, LLAMA):
        assert f"'{next(iter(field))}' is" in refusal(config | field)


def test_a_flag_that_means_something_by_being_false() -> None:
    for name in ("use_full_attention", "causal_attention", "use_cache_for_layers"):
        assert f"'{name}'" in refusal(PLAIN | {name: False})


def test_an_inner_dtype_of_null_counts_as_absent() -> None:
    inner = {key: value for key, value in LLAMA.items() if key != "torch_dtype"}
    for spelled in ("dtype", "torch_dtype"):
        nested = {"model_type": "llava", "torch_dtype": "float16"}
        read = from_config(nested | {"text_config": inner | {spelled: None}})
        assert read.layers[0][0].format == "fp16"


def test_numbers_that_nobody_knows_are_noted() -> None:
    for config in (PLAIN, LLAMA):
        read = from_config(config | {"frobnications": 3, "wibble": {"x": 2}, "fudge": 0.5})
        notes = [note for note in read.notes if "that are not known change no layer" in note]
        (note,) = notes
        assert note.endswith("(assumed): 'frobnications', 'wibble'")
        assert not any("change no layer" in note for note in from_config(config).notes)


def test_what_is_harmless_around_a_language_model_is_not_inside_it() -> None:
    nested = {"model_type": "some_vl", "dtype": "bfloat16", "text_config": dict(PLAIN)}
    assert from_config(nested | {"downsample_factor": 4}) == from_config(nested)
    assert "'downsample_factor' is 4" in refusal(PLAIN | {"downsample_factor": 4})


@pytest.mark.parametrize("kind", ["llama", "olmo2", "nemotron_h"])
def test_chunks_of_a_class_that_has_none_stop_the_file(kind: str) -> None:
    config = RECURRENT[kind] if kind in RECURRENT else LLAMA | {"model_type": kind}
    from_config(config | {"attention_chunk_size": None})
    with pytest.raises(ConfigError, match="attention_chunk_size"):
        from_config(config | {"attention_chunk_size": 64})
