"""Fuzzing the config reader: a random edit of a model file gives a clear error or the right answer, never a traceback or a wrong count.

The right answer is computed here from the table of hf_configs.md, by a second reader that shares no code with the first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_configs import FAMILIES, RELEASED, SHARED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from separatrix.architecture import Architecture
from separatrix.architecture.hf import from_config, read_config
from separatrix.errors import ConfigError

FILES: dict[str, dict[str, Any]] = dict(FAMILIES)
for _name, _file in RELEASED.items():
    if (SHARED / _file).is_file():
        FILES[_name] = json.loads((SHARED / _file).read_text())

WORDS = [
    "full_attention",
    "linear_attention",
    "recurrent",
    "attention",
    "mamba",
    "M",
    "*",
    "M-M*ME",
    "bfloat16",
    "float32",
    "qwen3_next",
    "nemotron_h",
]
NUMBERS = st.integers(-3, 20) | st.sampled_from([48, 52, 128, 2**31, 10**12, 10**40, -(10**30)])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | st.sampled_from(WORDS) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(st.sampled_from(["layers", "text_config", "dtype"]) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
NEW_KEYS = [
    "layer_types",
    "layers_block_type",
    "block_types",
    "dtype",
    "head_dim",
    "text_config",
    "sliding_window",
    "use_sliding_window",
    "mamba_d_state",
]


@st.composite
def edited(draw: st.DrawFn) -> dict[str, Any]:
    """A model file with up to four fields deleted, replaced or added."""
    config = dict(FILES[draw(st.sampled_from(sorted(FILES)))])
    for _ in range(draw(st.integers(0, 4))):
        key = draw(st.sampled_from(sorted(config) + NEW_KEYS))
        if draw(st.booleans()):
            config.pop(key, None)
        else:
            config[key] = draw(VALUES)
    return config


def nested(config: dict[str, Any]) -> dict[str, Any]:
    """The fields of the language model: the nested ones, and dtype and model_type from around them where they are silent."""
    for _ in range(3):
        inner = next((config[key] for key in ("text_config", "llm_config", "language_config") if config.get(key) is not None), None)
        if inner is None:
            break
        outer = {k: v for k, v in config.items() if k in ("dtype", "torch_dtype", "model_type", "architectures") and v is not None}
        if "dtype" in inner or "torch_dtype" in inner:
            outer = {k: v for k, v in outer.items() if "dtype" not in k}
        config = outer | {k: v for k, v in inner.items() if v is not None}
    return config


def expected(config: dict[str, Any]) -> tuple[str, dict[str, int]]:
    """Pattern, and bits of each kind of memory after 100 tokens, straight from the table of hf_configs.md."""
    c: dict[str, Any] = {k: v for k, v in nested(config).items() if v is not None}
    n, p = c["num_hidden_layers"], {"float32": 32, "float64": 64}.get(c["dtype"] if "dtype" in c else c["torch_dtype"], 16)
    family = c.get("model_type") or {"Q": "qwen3_next", "N": "nemotron_h", "R": "recurrent_gemma"}[c["architectures"][0][0]]
    if family == "qwen3_next":
        interval = c.get("full_attention_interval", 4)
        types = c.get("layer_types", ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(n)])
        pattern = "".join("f" if kind in ("full_attention", "attention") else "g" for kind in types)
        k, v = c["linear_num_key_heads"] * c["linear_key_head_dim"], c["linear_num_value_heads"] * c["linear_value_head_dim"]
        state, channels, kernel = v * c["linear_key_head_dim"], 2 * k + v, c["linear_conv_kernel_dim"]
        head_dim, state_p, seen = c["head_dim"], 32, 100
    elif family == "nemotron_h":
        words = c["hybrid_override_pattern" if "hybrid_override_pattern" in c else "layers_block_type"]
        pattern = "".join({"M": "m", "mamba": "m", "*": "f", "attention": "f"}.get(word, "-") for word in words)
        if "sliding_window" in c and c.get("use_sliding_window") is not False:
            pattern = pattern.replace("f", "w")
        inner = c["mamba_num_heads"] * c["mamba_head_dim"]
        state, channels, kernel = inner * c["ssm_state_size"], inner + 2 * c["n_groups"] * c["ssm_state_size"], c["conv_kernel"]
        state_p = {"bfloat16": 16, "float16": 16, "float64": 64}.get(c.get("mamba_ssm_cache_dtype", ""), 32)
        head_dim, seen = c["attention_head_dim" if "attention_head_dim" in c else "head_dim"], c.get("sliding_window", 100)
    else:
        blocks = c["block_types" if "block_types" in c else "_block_types"]
        pattern = "".join("r" if blocks[i % len(blocks)] == "recurrent" else "w" for i in range(n))
        state, channels, kernel, state_p = c["lru_width"], c["lru_width"], c["conv1d_width"], 32
        head_dim, seen = c["head_dim"], c["attention_window_size"]
    assert len(pattern) == n
    recurrent = sum(pattern.count(symbol) for symbol in "gmr")
    token = 2 * c["num_key_value_heads"] * head_dim * p
    bits = {
        "state": recurrent * state * state_p,
        "convolution": recurrent * channels * min(100, kernel - 1) * p,
        "kv": pattern.count("f") * token * 100,
        "window": pattern.count("w") * token * min(100, seen),
    }
    return pattern, {kind: total for kind, total in bits.items() if total}


def check_message(message: str, where: str) -> None:
    assert message.startswith(where)
    assert "\n" not in message
    assert len(message) < len(where) + 700


def check(config: dict[str, Any]) -> None:
    try:
        read = from_config(config, "file")
    except ConfigError as error:
        check_message(str(error), "file: ")
        return
    pattern, bits = expected(config)
    assert "".join(layer[0].symbol for layer in read) == pattern
    assert {kind: found.total for kind, found in read.cache(100).items() if found.total} == bits
    assert Architecture.parse(read.spec) == read


@pytest.mark.parametrize("name", FILES)
def test_the_second_reader_agrees_on_the_files_themselves(name: str) -> None:
    pattern, bits = expected(FILES[name])
    read = from_config(FILES[name])
    assert "".join(layer[0].symbol for layer in read) == pattern
    assert {kind: found.total for kind, found in read.cache(100).items() if found.total} == bits


@pytest.mark.parametrize("name", FILES)
def test_every_single_deletion(name: str) -> None:
    for key in FILES[name]:
        check({k: v for k, v in FILES[name].items() if k != key})


IRRELEVANT = {
    *("hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "rope_scaling", "rope_theta", "expand", "auto_map"),
    *("architectures", "use_sliding_window", "full_attention_interval"),
}
"""Fields whose absence changes no layer; the interval of the files is the one that transformers takes where they are silent."""


@pytest.mark.parametrize("name", FILES)
def test_deletions_that_do_not_matter_change_no_layer(name: str) -> None:
    for key in IRRELEVANT & set(FILES[name]):
        assert from_config({k: v for k, v in FILES[name].items() if k != key}) == from_config(FILES[name]), key


@pytest.mark.parametrize("name", FILES)
def test_every_other_deletion_is_refused_by_name(name: str) -> None:
    spellings = {"torch_dtype": "dtype", "_block_types": "block_types"}
    for key in set(FILES[name]) - IRRELEVANT - ({"model_type"} if "architectures" in FILES[name] else set()):
        with pytest.raises(ConfigError, match=spellings.get(key, key)):
            from_config({k: v for k, v in FILES[name].items() if k != key})


@pytest.mark.parametrize("name", FAMILIES)
def test_every_single_type_change(name: str) -> None:
    for key in FILES[name]:
        for value in (None, True, 0, -1, 1, 2, 7, 2.0, 10**9, 10**30, "", "8", [], [1], ["attention"] * 6, {}, {"a": 1}):
            check(FILES[name] | {key: value})


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edited())
def test_random_edits(config: dict[str, Any]) -> None:
    check(config)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_anything_at_all(data: Any) -> None:
    with pytest.raises(ConfigError):
        from_config(data)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(FAMILIES)), st.data())
def test_files_cut_or_with_a_changed_byte(tmp_path: Path, name: str, data: st.DataObject) -> None:
    content = bytearray(json.dumps(FAMILIES[name]).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "config.json"
    path.write_bytes(content)
    try:
        read_config(path)
    except ConfigError as error:
        check_message(str(error), f"{path}: ")
        return
    check(json.loads(path.read_text(encoding="utf-8-sig")))
