"""The format of keys and values that a file states is used; one that is not read is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import DEEPSEEK, LLAMA
from support.hf_configs import QWEN

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.settings import Settings

FLOAT = {"num_bits": 8, "type": "float", "dynamic": False, "strategy": "tensor"}


def quark(dtype: Any) -> dict[str, Any]:
    """As AMD's Quark writes a release whose keys and values are quantised."""
    group = ["*k_proj", "*v_proj"]
    outputs = {"output_tensors": {"dtype": dtype, "qscheme": "per_tensor", "is_dynamic": False}}
    return {
        "quant_method": "quark",
        "export": {"kv_cache_group": group, "pack_method": "reorder"},
        "layer_quant_config": dict.fromkeys(group, outputs),
    }


STATED: list[tuple[dict[str, Any], str]] = [
    ({"kv_cache_scheme": FLOAT}, "fp8"),
    ({"kv_cache_scheme": FLOAT | {"type": "int"}}, "int8"),
    ({"kv_cache_quant_algo": "FP8"}, "fp8"),
    ({"quantization": {"kv_cache_quant_algo": "INT8"}}, "int8"),
    ({"kv_cache_dtype": "fp8_e4m3"}, "fp8"),
    ({"kv_cache_scheme": FLOAT, "kv_cache_quant_algo": "FP8"}, "fp8"),
    ({"kv_cache_scheme": None, "kv_cache_quant_algo": None, "quant_method": "fp8"}, "bf16"),
    ({"kv_cache_dtype": "auto"}, "bf16"),
    # AutoFP8, as of Meta-Llama-3-8B-Instruct-FP8-KV
    ({"quant_method": "fp8", "activation_scheme": "static", "kv_cache_scheme": "static"}, "fp8"),
    (quark("fp8_e4m3"), "fp8"),
    (quark("int8"), "int8"),
    ({"quant_method": "quark", "export": {"kv_cache_group": []}}, "bf16"),
]


@pytest.mark.parametrize(("quantised", "format_"), STATED)
def test_a_stated_format_is_used(quantised: dict[str, Any], format_: str) -> None:
    for config in (LLAMA, DEEPSEEK):
        plain = from_config(config)
        for edited in (
            config | {"quantization_config": quantised},
            *([] if "export" in quantised else [config | quantised]),
            {"model_type": "x", "text_config": config, "quantization_config": quantised},
        ):
            read = from_config(edited)
            assert {part.format for layer in read for part in layer} == {format_}
            halved = 1 if format_ == "bf16" else 2
            assert read.cache_bits(100) * halved == plain.cache_bits(100)
            stated = any(note.startswith(f"keys and values {format_}, as") for note in read.notes)
            assert stated == (format_ != "bf16")


def test_states_keep_their_format() -> None:
    quantised = {"quantization_config": {"kv_cache_quant_algo": "FP8"}}
    read, plain = from_config(QWEN | quantised), from_config(QWEN)
    for layer, before in zip(read, plain, strict=True):
        if layer[0].group == "recurrent":
            assert layer == before
        else:
            assert layer[0].format == "fp8"


@each(
    "quantised",
    [
        {"kv_cache_scheme": FLOAT | {"num_bits": 4}},
        {"kv_cache_scheme": FLOAT | {"dynamic": True}},
        {"kv_cache_scheme": FLOAT | {"strategy": "group", "group_size": 16}},
        # scales of every token, or of groups, are kept beside the numbers
        {"kv_cache_scheme": FLOAT | {"strategy": "token"}},
        {"kv_cache_scheme": FLOAT | {"strategy": "group"}},
        {"kv_cache_scheme": FLOAT | {"group_size": 16}},
        {"kv_cache_quant_algo": "NVFP4"},
        {"kv_cache_quant_algo": ["FP8"]},
        {"kv_cache_group": ["*k_proj", "*v_proj"]},
        {"kv_cache_dtype": 8},
        quark("int4"),
        quark(None),
        {"export": {"kv_cache_group": ["*k_proj"]}},
        {"export": {"kv_cache_group": [7]}, "layer_quant_config": [1]},
    ],
)
def test_a_format_that_is_not_read_is_unknown_until_it_is_set(quantised: dict[str, Any]) -> None:
    config = LLAMA | {"quantization_config": quantised}
    with pytest.raises(UnknownSizes, match="that is not read"):
        from_config(config)
    read = from_config(config, settings=Settings.parse(["full.format=p4"]))
    assert read.layers[0][0].format == "p4"
    # what the error asks for sets keys and values alone
    with pytest.raises(UnknownSizes, match=r"pass --set kv=\.\.\."):
        from_config(config)
    assert from_config(config, settings=Settings.parse(["kv=fp8"])).layers[0][0].format == "fp8"


def test_two_formats_that_disagree() -> None:
    both = {"kv_cache_scheme": FLOAT, "kv_cache_quant_algo": "INT8"}
    with pytest.raises(ConfigError, match="disagree"):
        from_config(LLAMA | {"quantization_config": both})
