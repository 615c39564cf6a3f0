"""Fuzzing the config reader: a random edit of a model file gives a clear error or a stack, never a
traceback.

What a stack then counts is compared with real caches in `peers/test_mutated_files.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.hf_attention_configs import ATTENTION, UNKNOWN
from support.hf_configs import SHARED
from support.hf_recurrent_configs import RECURRENT
from support.unplaced import unplaced

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config, read_config

pytestmark = pytest.mark.slow

RELEASED = [
    *(
        "MiniMaxAI--MiniMax-Text-01",
        "Qwen--Qwen3-Next-80B-A3B-Thinking",
        "Qwen--Qwen3.5-27B",
        "Zyphra--Zamba2-7B",
        "ai21labs--Jamba-v0.1",
    ),
    *(
        "google--recurrentgemma-2b",
        "ibm-granite--granite-4.0-h-tiny",
        "moonshotai--Kimi-K3",
        "moonshotai--Kimi-Linear-48B-A3B",
    ),
    *(
        "MiniMaxAI--MiniMax-M3",
        "XiaomiMiMo--MiMo-V2-Flash",
        "deepseek-ai--DeepSeek-V3.2",
        "deepseek-ai--DeepSeek-V4-Flash",
        "zai-org--GLM-5",
    ),
    *(
        "google--gemma-4-26B-A4B",
        "meta-llama--Llama-4-Scout-17B-16E-Instruct",
        "meta-llama--Meta-Llama-3.1-8B",
        "openai--gpt-oss-20b",
    ),
    *(
        "stepfun-ai--Step-3.7-Flash",
        "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "nvidia--Nemotron-H-8B-Base-8K",
        "state-spaces--mamba2-2.7b",
        "tiiuae--Falcon-H1-7B",
    ),
]
SMALL: dict[str, dict[str, Any]] = {
    **RECURRENT,
    **ATTENTION,
    **{f"unknown {name}": config for name, config in UNKNOWN.items()},
}
FILES: dict[str, dict[str, Any]] = dict(SMALL)
for _name in RELEASED:
    if (SHARED / f"{_name}.json").is_file():
        FILES[_name] = json.loads((SHARED / f"{_name}.json").read_text())
SECTIONS = (
    "text_config",
    "linear_attn_config",
    "ssm_cfg",
    "attn_cfg",
    "attn",
    "sparse_attention_config",
)
SECTIONS += ("compress_rates", "attention_other_setting", "attn_config")

WORDS = [
    *(
        "full_attention",
        "linear_attention",
        "sliding_attention",
        "recurrent",
        "attention",
        "mamba",
        "hybrid",
        "conv",
        "M",
        "*",
        "M-M*ME",
    ),
    *(
        "bfloat16",
        "float32",
        "auto",
        "Mamba2",
        "qwen3_next",
        "nemotron_h",
        "kimi_linear",
        "jamba",
        "zamba2",
        "falcon_h1",
        "lfm2",
        "gla",
    ),
    *(
        "chunked_attention",
        "indexed_attention",
        "minimax_m3_sparse",
        "compressed_sparse_attention",
        "moe",
        "GLLL",
        "LlamaForCausalLM",
    ),
    *(
        "llama",
        "qwen2",
        "gemma3_text",
        "llama4",
        "mimo_v2_flash",
        "minimax_m3",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "brand_new",
    ),
]
NUMBERS = st.integers(-3, 20) | st.sampled_from([48, 52, 128, 2**31, 10**12, 10**40, -(10**30)])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(
            st.sampled_from(["layers", "text_config", "dtype"]) | st.text(max_size=5),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)
NEW_KEYS = [
    *(
        "layer_types",
        "layers_block_type",
        "block_types",
        "dtype",
        "head_dim",
        "text_config",
        "sliding_window",
        "use_sliding_window",
    ),
    *(
        "mamba_d_state",
        "attn",
        "linear_attn_config",
        "attn_layer_indices",
        "attn_type_list",
        "intermediate_size",
        "full_attn_idxs",
    ),
    *(
        "compress_ratios",
        "hybrid_layer_pattern",
        "sliding_window_layout",
        "sparse_attention_config",
        "sliding_window_pattern",
    ),
    *(
        "attention_chunk_size",
        "max_window_layers",
        "no_rope_layers",
        "index_topk",
        "kv_lora_rank",
        "num_nextn_predict_layers",
    ),
    *("model_type", "architectures", "num_kv_shared_layers", "v_head_dim", "global_head_dim"),
]


@st.composite
def edited(draw: st.DrawFn) -> dict[str, Any]:
    """A model file with up to four fields deleted, replaced or added, in its sections too."""
    config = json.loads(json.dumps(FILES[draw(st.sampled_from(sorted(FILES)))]))
    for _ in range(draw(st.integers(0, 4))):
        place = config
        while isinstance(inner := place.get(draw(st.sampled_from(SECTIONS))), dict) and draw(
            st.booleans()
        ):
            place = inner
        key = draw(st.sampled_from(sorted(place) + NEW_KEYS))
        if draw(st.booleans()):
            place.pop(key, None)
        elif isinstance(place.get(key), list) and place[key] and draw(st.booleans()):
            place[key] = draw(
                st.lists(st.sampled_from(place[key]) | VALUES, max_size=len(place[key]) + 1)
            )
        else:
            place[key] = draw(VALUES)
    return config


def check_message(message: str, where: str) -> None:
    assert message.startswith(where)
    assert "\n" not in message
    assert len(message) < len(where) + 1500


def check(config: dict[str, Any]) -> None:
    try:
        read = from_config(config, "file")
    except ConfigError as error:
        check_message(str(error), "file: ")
        return
    assert all(found.total >= 0 for found in read.cache(100).values())
    assert Architecture.parse(read.spec) == read


def without(config: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {key: value for key, value in config.items() if key != path[0]}
    return config | {path[0]: without(config[path[0]], path[1:])}


def paths(config: dict[str, Any]) -> list[tuple[str, ...]]:
    """Every field, those of sections too."""
    inner = [
        (key, *rest)
        for key in SECTIONS
        if isinstance(config.get(key), dict)
        for rest in paths(config[key])
    ]
    return [(key,) for key in config] + inner


DEFINED = {
    *(
        "attn",
        "num_v_heads",
        "value_dim",
        "num_kv_heads",
        "window_size",
        "attention_hidden_size",
        "linear_attn_config",
        "intermediate_size",
    ),
    *(
        "d_conv",
        "num_heads_kv",
        "head_dim",
        "attn_layer_idx",
        "layer",
        "layer_types",
        "attn_type_list",
        "linear_value_head_dim",
    ),
    *(
        "linear_key_head_dim",
        "linear_num_key_heads",
        "num_key_value_heads",
        "text_config",
        "mamba_ssm_dtype",
        "mamba_ssm_cache_dtype",
    ),
}
DEFINED |= {
    *(
        "q_lora_rank",
        "sliding_window",
        "use_sliding_window",
        "sliding_window_pattern",
        "attention_chunk_size",
        "max_window_layers",
        "no_rope_layers",
    ),
    *(
        "global_attn_every_n_layers",
        "num_global_key_value_heads",
        "attention_k_eq_v",
        "hybrid_layer_pattern",
        "attention_other_setting",
    ),
    *("rope_scaling", "truncate", "dtype", "torch_dtype"),
    *("sliding_window_layout", "sparse_attention_config", "use_sparse_attention", "num_kv_heads"),
}
"""Fields whose absence has a meaning of its own, by the definition of the model class."""


@pytest.mark.parametrize("name", FILES)
def test_every_single_deletion_is_refused_or_changes_no_layer(name: str) -> None:
    for path in paths(FILES[name]):
        config = without(FILES[name], path)
        check(config)
        own = path[0] == "attention_other_setting" or (
            name in ATTENTION and path == ("model_type",)
        )
        if path[-1] not in DEFINED and not own:
            try:
                read = from_config(config)
            except ConfigError:
                continue
            whole = from_config(FILES[name])
            assert unplaced(read) == unplaced(whole), path
            # what a layer's places are without a field is assumed or unknown, and a note says which
            assert read == whole or any(_of_places(note) for note in read.notes), path


def _of_places(note: str) -> bool:
    return note.startswith("positions: ") or ("rotation" in note and "(assumed)" in note)


WRONG = (
    None,
    True,
    0,
    -1,
    1,
    2,
    7,
    2.0,
    0.5,
    10**9,
    10**30,
    "",
    "8",
    [],
    [1],
    [0, 1, 2],
    ["attention"] * 6,
    {},
    {"a": 1},
)


def a_third(name: str) -> list[tuple[str, ...]]:
    """Fields that are changed, not the same places in every file."""
    return paths(FILES[name])[list(FILES).index(name) % 3 :: 3]


@pytest.mark.parametrize("name", SMALL)
def test_single_type_changes(name: str) -> None:
    for path in a_third(name):
        for value in WRONG:
            check(replaced(FILES[name], path, value))


def replaced(config: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(path) == 1:
        return config | {path[0]: value}
    return config | {path[0]: replaced(config[path[0]], path[1:], value)}


@pytest.mark.parametrize("name", FILES)
def test_huge_and_deep_values(name: str) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    for path in a_third(name):
        for value in (
            10**4000,
            "x" * 100_000,
            [0] * 100_000,
            ["mamba"] * 100_000,
            deep,
            {"k" * 10_000: 1},
        ):
            check(replaced(FILES[name], path, value))


def test_ten_megabytes(tmp_path: Path) -> None:
    config = next(iter(SMALL.values()))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"padding": "x" * 10_000_000}))
    assert read_config(path).layers == from_config(config).layers


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edited())
def test_random_edits(config: dict[str, Any]) -> None:
    check(config)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_anything_at_all(data: Any) -> None:
    with pytest.raises(ConfigError):
        from_config(data)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(SMALL)), st.data())
def test_files_cut_or_with_a_changed_byte(tmp_path: Path, name: str, data: st.DataObject) -> None:
    content = bytearray(json.dumps(SMALL[name]).encode())
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
