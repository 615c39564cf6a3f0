"""Files that cannot be read without guessing: one line that names the file, the field and the
remedy.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import DEEPSEEK_V4
from support.hf_configs import FAMILIES, GEMMA, NEMOTRON, QWEN

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config, read_config


def refusal(config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    message = str(caught.value)
    assert message.startswith("file: ")
    assert "\n" not in message
    return message


def file_refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


NEEDED = {
    "qwen3_next": [
        *(
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "linear_num_key_heads",
            "linear_num_value_heads",
        ),
        *("linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim"),
    ],
    "nemotron_h": [
        *(
            "num_attention_heads",
            "num_key_value_heads",
            "attention_head_dim",
            "mamba_num_heads",
            "mamba_head_dim",
        ),
        *("ssm_state_size", "n_groups", "conv_kernel"),
    ],
    "recurrent_gemma": [
        *(
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "lru_width",
            "attention_window_size",
        ),
        "conv1d_width",
    ],
}
SIZES = [(family, name) for family, names in NEEDED.items() for name in names]


@each("family, name", SIZES)
def test_a_missing_size_is_named_and_not_guessed(family: str, name: str) -> None:
    for config in (without(FAMILIES[family], name), FAMILIES[family] | {name: None}):
        message = refusal(config)
        assert f"'{name}' is missing" in message
        assert "to the file" in message


@each("family, name", SIZES)
@each("value", [0, -1, 10**9 + 1, 10**30, True, False, 2.0, float("inf"), "4", [4], {"a": 1}])
def test_a_size_that_is_none_is_named(family: str, name: str, value: Any) -> None:
    message = refusal(FAMILIES[family] | {name: value})
    assert f"'{name}' is " in message
    assert "integer" in message


@pytest.mark.parametrize("value", [10_001, 10**8])
def test_too_many_layers(value: int) -> None:
    assert "'num_hidden_layers'" in refusal(QWEN | {"num_hidden_layers": value})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_missing_dtype_is_assumed_and_an_unknown_one_named(family: str) -> None:
    silent = from_config(without(FAMILIES[family], "torch_dtype"))
    assert silent == from_config(FAMILIES[family])
    assert any(note.startswith("number format bf16 (assumed)") for note in silent.notes)
    for value in ("auto", "bf16", 16, ["bfloat16"], True):
        assert "'torch_dtype' is" in refusal(FAMILIES[family] | {"torch_dtype": value})
    assert "disagree" in refusal(FAMILIES[family] | {"dtype": "float32"})


@each(
    "config, field",
    [
        (QWEN | {"layer_types": ["full_attention"] * 7}, "layer_types"),
        (QWEN | {"layer_types": ["full_attention"] * 9}, "layer_types"),
        (QWEN | {"layer_types": []}, "layer_types"),
        (NEMOTRON | {"hybrid_override_pattern": "M-M*M"}, "hybrid_override_pattern"),
        (NEMOTRON | {"hybrid_override_pattern": "M-M*ME-"}, "hybrid_override_pattern"),
        (NEMOTRON | {"hybrid_override_pattern": ""}, "hybrid_override_pattern"),
        (GEMMA | {"_block_types": []}, "_block_types"),
    ],
)
def test_lists_of_the_wrong_length(config: dict[str, Any], field: str) -> None:
    message = refusal(config)
    assert f"'{field}' has " in message
    assert "entries" in message


@each(
    "config, field",
    [
        (
            QWEN | {"layer_types": ["full_attention"] * 7 + ["full"]},
            "8 of 'layer_types' is 'full'",
        ),
        (
            QWEN | {"layer_types": ["linear_attention_v2"] * 8},
            "entry 1 of 'layer_types' is 'linear_attention_v2'",
        ),
        (QWEN | {"layer_types": ["sliding_attention"] * 8}, "entry 1 of 'layer_types'"),
        (QWEN | {"layer_types": [1] * 8}, "entry 1 of 'layer_types' is 1"),
        (QWEN | {"layer_types": [["full_attention"]] * 8}, "entry 1 of 'layer_types'"),
        (QWEN | {"layer_types": 8}, "'layer_types' is 8"),
        (QWEN | {"layer_types": {"0": "full_attention"}}, "'layer_types' is"),
        (
            NEMOTRON | {"hybrid_override_pattern": "M-M*Mm"},
            "6 of 'hybrid_override_pattern' is 'm'",
        ),
        (NEMOTRON | {"hybrid_override_pattern": 5}, "'hybrid_override_pattern' is 5"),
        (
            GEMMA | {"_block_types": ["recurrent", "full_attention"]},
            "entry 2 of '_block_types' is 'full_attention'",
        ),
        (GEMMA | {"_block_types": "recurrent"}, "1 of '_block_types' is 'r'"),
    ],
)
def test_words_outside_the_vocabulary(config: dict[str, Any], field: str) -> None:
    assert field in refusal(config)


@each(
    "config, key, looked_for",
    [
        (
            without(NEMOTRON, "hybrid_override_pattern"),
            "mamba_num_heads",
            "hybrid_override_pattern",
        ),
        (without(GEMMA, "_block_types"), "lru_width", "block_types"),
    ],
)
def test_recurrent_keys_without_a_pattern_are_refused(
    config: dict[str, Any], key: str, looked_for: str
) -> None:
    message = refusal(config)
    assert f"'{key}' is there but" in message
    assert looked_for in message


@each("config", [{"mamba_d_state": 16, "num_hidden_layers": 4}, {"rwkv_heads": 16}])
def test_a_file_of_no_model_type_is_told_so(config: dict[str, Any]) -> None:
    assert "'model_type' is missing" in refusal(config)


@each("kind", ["no_such_model", "", 5, True, ["qwen3_next"], {"a": 1}])
def test_unknown_model_types_are_refused_by_name(kind: Any) -> None:
    message = refusal(without(QWEN, "architectures") | {"model_type": kind})
    assert "'model_type' is" in message
    assert "as a spec" in message
    assert len(message) < 450


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("qwen3_nxt", "qwen3_next"),
        ("Nemotron_h", "nemotron_h"),
        ("recurrent_gemma2", "recurrent_gemma"),
    ],
)
def test_a_misspelt_model_type_is_corrected(kind: str, meant: str) -> None:
    assert f"did you mean {meant}?" in refusal(
        without(QWEN, "architectures") | {"model_type": kind}
    )
    assert meant in refusal({"model_type": kind})


@each(
    "config",
    [
        {},
        {"hidden_size": 3},
        {"architectures": []},
        {"architectures": [5]},
        {"architectures": "Qwen3NextForCausalLM"},
    ],
)
def test_no_model_type_at_all(config: dict[str, Any]) -> None:
    assert "'model_type' is missing" in refusal(config)


@each("data", [None, 3, 2.5, "text", True, [], [QWEN]])
def test_json_that_is_no_object(data: Any) -> None:
    assert "no JSON object" in refusal(data)


def test_contradictions_are_refused() -> None:
    assert "'num_key_value_heads' is 3" in refusal(QWEN | {"num_key_value_heads": 3})
    assert "'linear_num_key_heads' is 3" in refusal(QWEN | {"linear_num_key_heads": 3})
    assert "'n_groups' is 3" in refusal(NEMOTRON | {"n_groups": 3})
    heads = refusal(NEMOTRON | {"head_dim": 64})
    assert "'attention_head_dim' is 32 and 'head_dim' is 64" in heads
    assert "'block_types' and '_block_types'" in refusal(GEMMA | {"block_types": ["attention"]})
    assert "'sliding_window' is 32" in refusal(
        QWEN | {"use_sliding_window": True, "sliding_window": 32}
    )
    assert "'use_sliding_window' is 1" in refusal(QWEN | {"use_sliding_window": 1})
    assert "'block_configs'" in refusal(NEMOTRON | {"block_configs": [{}]})
    assert "'full_attention_interval' is 0" in refusal(QWEN | {"full_attention_interval": 0})


LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 64,
    "vocab_size": 100,
    "intermediate_size": 96,
    "rope_theta": 10_000,
    "dtype": "bfloat16",
}
LINEAR = {"rope_type": "linear", "factor": 2.0}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}


@pytest.mark.parametrize(
    ("one", "another", "named"),
    [
        (
            {"rope_scaling": LINEAR | {"type": "linear"}},
            {"rope_scaling": LINEAR | {"type": "yarn"}},
            ("'rope_scaling.rope_type' is 'linear'", "'rope_scaling.type' is 'yarn'"),
        ),
        # vLLM takes these two as one, too
        (
            {"rope_scaling": {"rope_type": "default", "type": "mrope"}},
            {"rope_scaling": {"rope_type": "default", "type": "linear", "factor": 2.0}},
            ("'rope_scaling.rope_type' is 'default'", "'rope_scaling.type' is 'linear'"),
        ),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
            {"rope_parameters": {"rope_type": "default", "rope_theta": 5}},
            ("'rope_parameters.rope_theta' is 5", "'rope_theta' is 10000"),
        ),
        (
            {"rope_parameters": LINEAR, "rope_scaling": LINEAR},
            {"rope_parameters": LINEAR, "rope_scaling": LINEAR | {"factor": 4.0}},
            ("'rope_scaling.factor' is 4.0", "'rope_parameters.factor' is 2.0"),
        ),
    ],
)
def test_a_rotation_stated_twice(one: Any, another: Any, named: tuple[str, str]) -> None:
    assert from_config(LLAMA | one).layers
    said = refusal(LLAMA | another)
    assert all(name in said for name in named)


def test_kinds_of_layers_with_bases_of_their_own_beside_one_for_the_rest() -> None:
    objects = {"full_attention": {"rope_type": "default", "rope_theta": 500}}
    (found,) = from_config(LLAMA | {"rope_parameters": objects}).layers[0]
    assert found.sizes()["rope_base"] == 500


def test_quantised_around_a_model_and_within() -> None:
    outer = {"model_type": "mistral3", "quantization_config": FP8}
    for inner in (None, FP8, FP8 | {"modules_to_not_convert": ["lm_head"]}):
        assert from_config(outer | {"text_config": LLAMA | {"quantization_config": inner}}).weights
    said = refusal(outer | {"text_config": LLAMA | {"quantization_config": {"bits": 4}}})
    assert "'quantization_config' is {'quant_method': 'fp8'" in said
    assert "'text_config.quantization_config' is {'bits': 4}" in said


def test_the_experts_of_deepseek_v4_stated_twice() -> None:
    assert "'moe_intermediate_size' is 96 and 'intermediate_size' is 64" in refusal(
        DEEPSEEK_V4 | {"moe_intermediate_size": 96, "intermediate_size": 64}
    )
    both = {"moe_intermediate_size": 96, "intermediate_size": 96}
    assert from_config(DEEPSEEK_V4 | both).layers == from_config(DEEPSEEK_V4).layers


def test_nested_configurations_that_are_none() -> None:
    assert "'text_config' is 3" in refusal({"model_type": "x", "text_config": 3})
    deep: dict[str, Any] = dict(QWEN)
    for _ in range(9):
        deep = {"text_config": deep}
    assert "more than 3 deep" in refusal(deep)


def test_a_file_and_its_folder_read_alike(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN))
    assert read_config(folder) == read_config(folder / "config.json") == from_config(QWEN)
    assert read_config(folder).name == read_config(folder / "config.json").name == "my-model"
    (tmp_path / "other.json").write_text("\ufeff" + json.dumps(QWEN), encoding="utf-8")
    assert read_config(tmp_path / "other.json").name == "other"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert "no such file" in file_refusal(tmp_path / "config.json")
    assert "holds no config.json" in file_refusal(tmp_path)
    assert "holds no config.json" in file_refusal(tmp_path / ".")
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    assert "not a regular file" in file_refusal(fifo)
    assert "no such file" in file_refusal(tmp_path / "two\nlines.json")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b'{"model_type": "qwen3_next", ', "not JSON"),
        (b"model_type: qwen3_next", "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b"\x80\x04\x95\xff\xfe", "not a text file"),
        (b"[1, 2]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"num_hidden_layers": ' + b"9" * 5000 + b"}", "of more than"),
        (b'{"num_hidden_layers": 4, "num_hidden_layers": 8}', "'num_hidden_layers' is given twice"),
        (b'{"model_type": "llama", "head_dim": 4, "head_dim": 8}', "'head_dim' is given twice"),
    ],
)
def test_contents_that_are_no_configuration(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    message = file_refusal(path)
    assert expected in message
    assert "config.json: " in message


def test_large_files(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN | {"padding": "x" * 10_000_000}))
    assert read_config(path) == from_config(QWEN)
    path.write_text(json.dumps(QWEN | {"layer_types": ["linear_attention"] * 500_000}))
    assert "'layer_types' has 500000 entries" in file_refusal(path)
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    assert "larger than 64 MiB" in file_refusal(path)


def test_messages_stay_short_whatever_the_file_holds() -> None:
    for value in (
        "x" * 10_000,
        ["y" * 10_000] * 100,
        {"k" * 10_000: 1},
        "two\nlines",
        10**4000,
        10**9000,
    ):
        untyped = without(QWEN, "architectures")
        for config in (
            QWEN | {"head_dim": value},
            untyped | {"model_type": value},
            QWEN | {"layer_types": [value] * 8},
        ):
            assert len(refusal(config)) < 700
