"""Norms of queries and keys, as transformers' classes have them, and what they cost a verdict."""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import Equality
from separatrix.theory import judge

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "head_dim": 16,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
    "rope_theta": 10_000,
}
GROUPED = {"num_key_value_heads": 2}
FLA = {
    "model_type": "transformer",
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_heads": 4,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def norm(kind: str, **more: Any) -> str:
    grouped = {} if kind == "persimmon" else GROUPED
    return (
        from_config(SMALL | grouped | {"model_type": kind} | more).layers[0][0].sizes()["qk_norm"]
    )


@each(
    "kind, more, wanted",
    [
        ("llama", {}, "none"),
        ("qwen3", {}, "head"),
        ("gemma3_text", {"sliding_window": 8}, "head"),
        ("olmo2", {}, "all"),
        ("glm4_moe", {}, "none"),
        ("glm4_moe", {"use_qk_norm": True}, "head"),
        ("cohere", {"use_qk_norm": False}, "none"),
        # layer norms
        ("cohere", {"use_qk_norm": True}, "other"),
        ("stablelm", {"qk_layernorm": True}, "other"),
        ("persimmon", {}, "other"),
        ("persimmon", {"qk_layernorm": False}, "none"),
        ("chameleon", {}, "other"),
        # behind the rotation
        ("hunyuan_v1_dense", {}, "other"),
        ("hunyuan_vl_text", {}, "other"),
        ("qwen3_omni_moe_text", {}, "head"),
        # a flag of a class that has no such norm
        ("llama", {"use_qk_norm": True}, "other"),
    ],
)
def test_what_a_class_norms(kind: str, more: dict[str, Any], wanted: str) -> None:
    assert norm(kind, **more) == wanted


def test_flags_of_flash_linear_attention() -> None:
    assert from_config(FLA).layers[0][0].sizes()["qk_norm"] == "none"
    assert from_config(FLA | {"qk_norm": True}).layers[0][0].sizes()["qk_norm"] == "head"


def test_a_flag_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match="true or false"):
        norm("cohere", use_qk_norm=3)


@pytest.mark.parametrize(("said", "wanted"), [({}, True), ({"use_qk_norm": False}, False)])
def test_llama_4_norms_without_weights_where_it_rotates(said: dict[str, Any], wanted: bool) -> None:
    types = ["chunked_attention", "full_attention"]
    stack = {"num_hidden_layers": 2, "layer_types": types, "attention_chunk_size": 8}
    rotating = {"model_type": "llama4_text", "no_rope_layers": [1, 0]}
    layers = from_config(SMALL | GROUPED | stack | rotating | said).layers
    assert [layer[0].sizes()["bounded"] for layer in layers] == [wanted, False]


@pytest.mark.parametrize("said", [{}, {"layer_rope_theta": [500_000, 0]}])
def test_muse_glimmer_norms_without_weights_and_rotates_where_it_slides(
    said: dict[str, Any],
) -> None:
    stack = {"model_type": "muse_glimmer_text", "num_hidden_layers": 2, "sliding_window": 8}
    layers = from_config(SMALL | GROUPED | stack | said).layers
    sizes = [part.sizes() for (part,) in layers]
    assert [own.get("size") for own in sizes] == [8, None]
    assert [own["rope"] for own in sizes] == [True, False]
    assert sizes[0]["rope_base"] == (500_000 if said else 10_000)
    assert all(own["bounded"] and own["gate"] == "sigmoid" for own in sizes)


@pytest.mark.parametrize(
    ("kind", "gate", "sink"),
    [("afmoe", "sigmoid", False), ("step3p5", "head", False), ("gpt_oss", "none", True)],
)
def test_gates_and_sinks_that_classes_have(kind: str, gate: str, sink: bool) -> None:
    stack = {"model_type": kind, "num_hidden_layers": 2, "sliding_window": 8}
    kinds = {"layer_types": ["sliding_attention", "full_attention"]}
    layers = from_config(SMALL | GROUPED | stack | kinds).layers
    found = [(part.sizes()["gate"], part.sizes()["sink"]) for (part,) in layers]
    assert found == [(gate, sink)] * 2


@pytest.mark.parametrize("name", ["qwen3-8b", "lfm2-1.2b"])
def test_a_start_token_whose_key_is_one_pair_does_not_survive_the_norm(name: str) -> None:
    """All dimensions turn, so the token that takes the weight of a missing offset would have a key
    of one pair, which a norm makes longer than that of all pairs.
    """
    statuses = {verdict.status for verdict in judge(preset(name), Equality(n=256))}
    assert "SOLVABLE" not in statuses
