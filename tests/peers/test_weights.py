"""Weights as files are read, against the modules that transformers builds of the same fields, on
no device: every parameter but norms, biases and single numbers of a head.
"""

from __future__ import annotations

import json
import os
from copy import deepcopy
from typing import Any

import pytest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import torch
from huggingface_hub.errors import StrictDataclassError
from support.tiny_configs import tiny
from transformers.models.auto import configuration_auto, modeling_auto

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.hf.table import ROWS
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.released import PRESETS

transformers = pytest.importorskip("transformers")
# GPT-BigCode's class compiles its softmax in a way that torch warns of
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

RELEASED = {
    name: dict(PRESETS[name]["config"])
    for name in (
        *("llama-3.1-8b", "mistral-7b-v0.1", "qwen2.5-7b", "qwen3-8b", "gemma-2-9b"),
        *("gpt-oss-20b", "qwen3-next-80b", "deepseek-v3", "falcon-h1-7b", "kimi-linear-48b"),
        *("granite-4.0-h-small", "granite-4.0-h-tiny", "lfm2-1.2b", "minimax-m2.7"),
        *("nemotron-h-8b", "nemotron-h-56b", "recurrentgemma-2b", "rwkv-4-7b-pile"),
        *("deepseek-v4-flash", "deepseek-v4-pro", "nemotron-3-super-120b", "xlstm-7b"),
    )
} | {
    name: {**PRESETS[name]["config"]["text_config"]}  # pyright: ignore[reportGeneralTypeIssues]
    for name in ("gemma-3-27b", "gemma-4-26b-a4b", "qwen3.5-35b-a3b")
}
SMALL: dict[str, dict[str, Any]] = {
    "qwen3_moe, every second layer": {
        **{"model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"head_dim": 8, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        **{"decoder_sparse_step": 2, "mlp_only_layers": [3], "vocab_size": 99},
        **{"torch_dtype": "bfloat16", "use_sliding_window": False},
        **{"max_window_layers": 6, "sliding_window": None},
    },
    "deepseek_v3 without a latent of queries": {
        **{"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4},
        **{"kv_lora_rank": 16, "q_lora_rank": None, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4},
        **{"v_head_dim": 6, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2},
        **{"topk_group": 1, "n_shared_experts": 2, "moe_intermediate_size": 12},
        **{"first_k_dense_replace": 1, "vocab_size": 99, "torch_dtype": "float32"},
    },
    "mixtral": {
        **{"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 99},
        **{"torch_dtype": "bfloat16", "sliding_window": None, "head_dim": 8},
    },
    "nemotron_h, experts of a latent": {
        **{"model_type": "nemotron_h", "hidden_size": 32, "intermediate_size": 40, "head_dim": 8},
        **{"hybrid_override_pattern": "ME*E", "num_hidden_layers": 4, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2},
        **{"ssm_state_size": 16, "conv_kernel": 4, "expand": 1, "n_routed_experts": 8},
        **{"num_experts_per_tok": 3, "moe_intermediate_size": 24, "moe_latent_size": 12},
        **{"moe_shared_expert_intermediate_size": 20, "n_shared_experts": 1, "vocab_size": 99},
        **{"routed_scaling_factor": 5.0, "torch_dtype": "bfloat16"},
    },
    # no layer has experts, and what a layer of experts would share stands in none
    "qwen3_next, dense": {
        **{"model_type": "qwen3_next", "hidden_size": 32, "intermediate_size": 80, "head_dim": 8},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8},
        **{"linear_value_head_dim": 6, "linear_conv_kernel_dim": 4, "num_experts": 0},
        **{"moe_intermediate_size": 12, "shared_expert_intermediate_size": 20, "vocab_size": 99},
        **{"num_experts_per_tok": 2, "dtype": "bfloat16"},
    },
    # what all tokens take is all that stands behind a mixer
    "granitemoehybrid, dense": {
        **{"model_type": "granitemoehybrid", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 2},
        **{"mamba_d_conv": 4, "mamba_expand": 2, "layer_types": ["mamba", "attention"] * 2},
        **{"shared_intermediate_size": 28, "num_local_experts": 0, "num_experts_per_tok": 2},
        **{"vocab_size": 99, "dtype": "bfloat16"},
    },
    # one expert needs no router
    "jamba, one expert": {
        **{"model_type": "jamba", "hidden_size": 32, "intermediate_size": 80, "vocab_size": 99},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 2},
        **{"num_experts": 1, "num_experts_per_tok": 1, "dtype": "bfloat16"},
        **{"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
        **{"expert_layer_period": 2, "expert_layer_offset": 1},
    },
    "ernie4_5_moe, first layer dense": {
        **{"model_type": "ernie4_5_moe", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 12, "vocab_size": 99},
        **{"moe_num_shared_experts": 1, "moe_layer_start_index": 1, "dtype": "bfloat16"},
    },
    "gemma4_text, MLPs twice as wide": {
        **json.loads(tiny("gemma4_text").to_json_string(use_diff=False)),
        **{"use_double_wide_mlp": True, "num_kv_shared_layers": 3},
    },
    "lfm2, MLPs rounded as its class does": {
        key: value
        for key, value in json.loads(tiny("lfm2").to_json_string(use_diff=False)).items()
        if key != "block_multiple_of"
    },
    "gemma4_text, keys that are values": {
        **json.loads(tiny("gemma4_text").to_json_string(use_diff=False)),
        "attention_k_eq_v": True,
    },
    "xlstm, MLPs of any width": {
        **json.loads(tiny("xlstm").to_json_string(use_diff=False)),
        **{"ffn_round_up_to_multiple_of": 1, "ffn_proj_factor": 2.68},
    },
    "gemma, tied": {
        **{"model_type": "gemma", "hidden_size": 32, "intermediate_size": 80, "head_dim": 8},
        **{"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1},
        **{"vocab_size": 99, "torch_dtype": "bfloat16"},
    },
}


def _built(model: Any) -> int:
    """Parameters of what reads text: those of images and sound stand around it."""
    around = ("vision", "visual", "image", "audio", "projector")
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        # decays of heads stand in up to four dimensions
        if (2 <= parameter.ndim <= 3)
        and not name.endswith(("bias", ".D"))
        and not any(word in name for word in around)
    )


@pytest.mark.slow
def test_weights_of_every_family_that_are_counted_are_those_of_transformers() -> None:
    found: dict[str, tuple[int, int]] = {}
    for kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        try:
            config = tiny(kind)
            stated = json.loads(config.to_json_string(use_diff=False))
            own = from_config({key: stated[key] for key in stated if key != "dtype"}).weights
        except (ConfigError, UnknownSizes, StrictDataclassError, ValueError, AttributeError):
            # refused, or with no tiny cousin (test_every_family.py says which)
            continue
        if own is None:
            continue
        try:
            with torch.device("meta"):
                model = transformers.AutoModelForCausalLM.from_config(config)
        except ImportError:
            # Gemma 3n within eyes of another package; its text model is among the others
            continue
        found[kind] = (own.total, _built(model))
    # its class makes maps for experts that do nothing, which released files have none of
    ours, theirs = found.pop("longcat_flash")
    idle = tiny("longcat_flash")
    each = idle.hidden_size * 2 * idle.expert_ffn_hidden_size
    assert theirs - ours == idle.num_layers * idle.zero_expert_num * each
    assert {kind: pair for kind, pair in found.items() if pair[0] != pair[1]} == {}
    assert len(found) >= 139


@pytest.mark.slow
def test_heads_are_tied_as_classes_do_where_files_are_silent() -> None:
    known = 0
    for kind, row in ROWS.items():
        read = row.mlps.maps and not row.refused
        if not read or kind not in configuration_auto.CONFIG_MAPPING:
            continue
        config = configuration_auto.CONFIG_MAPPING[kind]().get_text_config()
        assert bool(getattr(config, "tie_word_embeddings", False)) == row.tied, kind
        known += 1
    assert known > 90


@pytest.mark.parametrize("name", [*RELEASED, *SMALL])
def test_the_weights_are_those_of_transformers(name: str) -> None:
    fields = (RELEASED | SMALL)[name]
    found = from_config(fields).weights
    assert found is not None
    config = transformers.AutoConfig.for_model(
        **{key: fields[key] for key in fields if "dtype" not in key and "quant" not in key}
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    assert found.total == _built(model)


def test_weights_of_a_class_that_writes_no_text_by_itself() -> None:
    """Step-3.5: its gates of heads among them; its head stands in a class of images."""
    from transformers.models.step3p7 import modeling_step3p7

    config: Any = tiny("step3p5")
    stated = json.loads(config.to_json_string(use_diff=False))
    found = from_config({key: stated[key] for key in stated if key != "dtype"}).weights
    assert found is not None
    with torch.device("meta"):
        model = modeling_step3p7.Step3p7TextModel(config)
    assert found.total - found.head == _built(model)


LEFT_OUT: dict[str, tuple[str, ...]] = {
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "their width": ("moe_intermediate_size",),
    "what all take": (
        *("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
        "shared_expert_intermediate_size",
    ),
    "where they stand": ("mlp_layer_types", "first_k_dense_replace", "num_dense_layers"),
    "key heads": ("num_key_value_heads",),
    "embeddings of layers": ("hidden_size_per_layer_input",),
    "how many of them": ("vocab_size_per_layer_input",),
}


@pytest.mark.parametrize("silent", LEFT_OUT)
@pytest.mark.parametrize(
    "kind",
    [
        *("axk1", "deepseek_v2", "deepseek_v3", "deepseek_v4", "ernie4_5_moe", "exaone_moe"),
        *(
            "gemma4_text",
            "flex_olmo",
            "glm4_moe",
            "glm4_moe_lite",
            "granite_swa",
            "granitemoe",
            "hy_v3",
        ),
        *("kimi_linear", "lfm2_moe", "mellum", "mixtral", "qwen2_moe", "qwen3_moe"),
        *("qwen3_next", "seed_oss", "solar_open"),
    ],
)
def test_what_a_file_leaves_out_is_not_guessed(kind: str, silent: str) -> None:
    """A class takes sizes of its own there: they are asked for, or counted as the class does."""
    stated = json.loads(tiny(kind).to_json_string(use_diff=False))
    file = {key: value for key, value in stated.items() if key not in LEFT_OUT[silent]}
    try:
        found = from_config(file)
    except (ConfigError, UnknownSizes):
        return
    if found.weights is None:
        assert found.uncounted
        return
    assert found.weights.total == _of_transformers(kind, file)


def _of_transformers(kind: str, file: dict[str, Any]) -> int:
    # the class writes into it
    config = transformers.CONFIG_MAPPING[kind].from_dict(deepcopy(file))
    with torch.device("meta"):
        return _built(transformers.AutoModelForCausalLM.from_config(config))


OF_OTHERS: dict[str, Any] = {
    **{"first_k_dense_replace": 3, "num_dense_layers": 3, "decoder_sparse_step": 2},
    **{"mlp_only_layers": [1], "moe_layer_interval": 2, "moe_layer_start_index": 2},
    **{"interleave_moe_layer_step": 2, "expert_layer_period": 4, "expert_layer_offset": 0},
    **{"n_shared_experts": 3, "shared_expert_intermediate_size": 20, "intermediate_size_mlp": 40},
    **{"tie_word_embeddings": True},
}
"""What some class reads of experts and heads; the others do not ask for it."""


@pytest.mark.parametrize(
    "kind",
    [
        *("afmoe", "axk1", "cohere2_moe", "deepseek_v2", "deepseek_v32", "dots1", "ernie4_5_moe"),
        *("exaone_moe", "flex_olmo", "glm4_moe", "glm4_moe_lite", "gpt_oss", "granitemoe_swa"),
        *("granitemoeshared", "hy_v3", "hy_v4", "jamba", "kimi_linear", "laguna", "lfm2_moe"),
        *("llama4_text", "mellum", "mimo_v2_flash", "minimax", "minimax_m2", "mixtral", "phimoe"),
        *("minimax_m3_vl_text", "qwen2_moe", "qwen3_moe", "qwen3_next", "solar_open"),
        "xlstm",
    ],
)
def test_what_only_other_classes_read_changes_nothing(kind: str) -> None:
    stated = json.loads(tiny(kind).to_json_string(use_diff=False))
    lists = {name: stated.get(name) for name in ("mlp_layer_types", "moe_layers")}
    counted = 0
    for name, value in OF_OTHERS.items():
        for file in (
            {**stated, name: value},
            {**stated, name: value, **dict.fromkeys(lists)},
        ):
            try:
                found = from_config(file).weights
                theirs = _of_transformers(kind, file)
            except (ConfigError, UnknownSizes, StrictDataclassError, ValueError, TypeError):
                continue
            if found is not None:
                assert found.total == theirs, (name, file[name])
                counted += 1
    assert counted >= len(OF_OTHERS) // 2


def test_maps_between_an_embedding_and_a_wider_model_are_not_counted() -> None:
    opt = json.loads(tiny("opt").to_json_string(use_diff=False))
    assert from_config(opt).weights is not None
    narrow = from_config(opt | {"word_embed_proj_dim": 32})
    assert narrow.weights is None
    assert "word_embed_proj_dim" in narrow.uncounted
