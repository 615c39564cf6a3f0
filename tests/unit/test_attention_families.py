"""Softmax families by hand: which layers see what, from the rules of each model class, and what a token leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from separatrix.architecture.hf import from_config
from separatrix.errors import ConfigError

PLAIN: dict[str, Any] = {
    **{"torch_dtype": "bfloat16", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2},
    **{"head_dim": 16, "vocab_size": 100},
}
LATENT: dict[str, Any] = {
    **{"kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 4, "q_lora_rank": 8},
    **{"index_topk": 3, "index_head_dim": 5, "index_n_heads": 2},
}


def pattern(config: dict[str, Any]) -> str:
    return "".join(part.symbol for layer in from_config(config) for part in layer)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model_type": "llama"}, "ffffff"),
        ({"model_type": "mistral", "sliding_window": 7}, "wwwwww"),
        ({"model_type": "mistral", "sliding_window": None}, "ffffff"),
        ({"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": False, "max_window_layers": 2}, "ffffff"),
        ({"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": True, "max_window_layers": 4}, "ffffww"),
        ({"model_type": "gemma2", "sliding_window": 7}, "wfwfwf"),
        ({"model_type": "gpt_oss", "sliding_window": 7}, "wfwfwf"),
        ({"model_type": "gemma3_text", "sliding_window": 7, "sliding_window_pattern": 3}, "wwfwwf"),
        ({"model_type": "llama4_text", "attention_chunk_size": 9, "no_rope_layers": [1, 1, 1, 0, 1, 0]}, "cccfcf"),
        ({"model_type": "minimax_m2", "attn_type_list": [1] * 6}, "ffffff"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["model_type"],
)
def test_which_layers_see_what(fields: dict[str, Any], expected: str) -> None:
    assert pattern(PLAIN | fields) == expected


def test_grouped_keys_and_values_per_token() -> None:
    """2 heads x (16 + 16) numbers x 6 layers x 16 bits; windows stop at 7 tokens."""
    assert from_config(PLAIN | {"model_type": "llama"}).cache(50)["kv"].total == 50 * 6 * 2 * 32 * 16
    assert from_config(PLAIN | {"model_type": "mistral", "sliding_window": 7}).cache(50)["window"].total == 7 * 6 * 2 * 32 * 16


@pytest.mark.parametrize(
    ("kind", "symbol", "numbers"), [("deepseek_v3", "a", 8 + 2), ("deepseek_v32", "i", 8 + 2 + 5), ("glm_moe_dsa", "i", 15)]
)
def test_latents_and_index_keys_per_token(kind: str, symbol: str, numbers: int) -> None:
    latent = {key: value for key, value in LATENT.items() if symbol == "i" or not key.startswith("index")}
    read = from_config(PLAIN | latent | {"model_type": kind})
    assert "".join(layer[0].symbol for layer in read) == symbol * 6
    assert read.cache(50)["kv"].total == 50 * 6 * numbers * 16


def test_compressed_ratios_and_the_layer_that_predicts_further_tokens() -> None:
    """The list may be longer than the stack by the layers of multi-token prediction, and by no others."""
    config = PLAIN | LATENT | {"model_type": "deepseek_v4", "sliding_window": 3, "num_key_value_heads": 1, "num_hidden_layers": 4}
    ratios = {"compress_ratios": [0, 4, 128, 4, 0], "num_nextn_predict_layers": 1}
    read = from_config(config | ratios)
    assert "".join(layer[0].symbol for layer in read) == "wzzz"
    # 256 tokens: 64 entries of 16 and an index key of 5 in two layers, 2 entries of 16 in one
    assert read.cache(256)["kv"].numbers == 2 * 64 * (16 + 5) + 2 * 16
    with pytest.raises(ConfigError, match="compress_ratios"):
        from_config(config | ratios | {"num_nextn_predict_layers": 0})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model_type": "llama", "num_key_value_heads": 3}, "does not divide"),
        ({"model_type": "gemma2", "sliding_window": 7, "layer_types": ["full_attention"] * 5}, "layer_types"),
        ({"model_type": "gemma2", "sliding_window": 7, "layer_types": ["attention_full"] * 6}, "layer_types"),
        ({"model_type": "llama", "num_attention_heads": -4}, "num_attention_heads"),
        ({"model_type": "llama", "head_dim": 10**30}, "head_dim"),
        ({"model_type": "who_knows", "mamba_d_state": 16}, "mamba_d_state"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        from_config(PLAIN | fields)
    assert "\n" not in str(caught.value)


def test_an_unknown_type_is_read_by_its_usual_fields_and_the_card_says_so() -> None:
    read = from_config(PLAIN | {"model_type": "who_knows", "layer_types": ["sliding_attention", "full_attention"] * 3, "sliding_window": 7})
    assert "".join(layer[0].symbol for layer in read) == "wfwfwf"
    assert any("who_knows" in note and "usual fields" in note for note in read.notes)
