"""Families whose layers have sizes or keys of their own, or spell them as nobody else: numbers
carried, worked out by hand from the fields.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.unplaced import unplaced

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.mechanisms import Full, Lightning, PositionWise, Reused, ReusedWindow, Window

SOFTMAX = {"accumulator": "fp32", "running_max": True, "format": "bf16"}
USUAL = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "vocab_size": 100,
    "dtype": "bfloat16",
}
SLIDING, WHOLE = "sliding_attention", "full_attention"
GEMMA_3N = USUAL | {
    "model_type": "gemma3n_text",
    "num_hidden_layers": 8,
    "layer_types": [SLIDING, SLIDING, WHOLE, SLIDING, SLIDING, WHOLE, SLIDING, WHOLE],
    "sliding_window": 32,
    "num_kv_shared_layers": 3,
}
GEMMA_4 = USUAL | {
    "model_type": "gemma4_text",
    "num_hidden_layers": 4,
    "layer_types": [SLIDING, WHOLE, SLIDING, WHOLE],
    "sliding_window": 32,
    "attention_k_eq_v": False,
    "num_kv_shared_layers": 0,
    "per_layer_config": {
        "1": {"head_dim": 48},
        "03": {"head_dim": 48, "num_key_value_heads": 1},
    },
}
MLLAMA = USUAL | {
    "model_type": "mllama_text_model",
    "num_hidden_layers": 5,
    "cross_attention_layers": [1, 3],
}
HUNYUAN = USUAL | {
    "model_type": "hunyuan",
    "num_hidden_layers": 6,
    "use_cla": True,
    "cla_share_factor": 2,
    "attention_head_dim": 24,
}
RING = USUAL | {"model_type": "bailing_moe_linear", "num_hidden_layers": 11, "layer_group_size": 4}
CHATGLM = {
    "model_type": "chatglm",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "kv_channels": 24,
    "num_layers": 3,
    "padded_vocab_size": 100,
    "seq_length": 512,
    "torch_dtype": "bfloat16",
}


def numbers(config: dict[str, Any], t: int) -> list[int]:
    """Numbers that every layer carries after t tokens."""
    return [
        sum(item.bits.numbers for part in layer for item in part.cache(t))
        for layer in from_config(config)
    ]


def test_gemma_3n_layers_that_reuse_keys() -> None:
    read = unplaced(from_config(GEMMA_3N))
    sizes = {"heads": 4, "kv_heads": 2, "head_dim": 24, **SOFTMAX}
    window = Window(size=32, **sizes)
    near = ReusedWindow(size=32, **sizes)
    assert [part for (part,) in read.layers] == [
        *(window, window, Full(**sizes), window, window),
        *(Reused(**sizes), near, Reused(**sizes)),
    ]
    # 2 heads x (24 + 24) numbers of a token
    assert numbers(GEMMA_3N, 50) == [32 * 96, 32 * 96, 50 * 96, 32 * 96, 32 * 96, 0, 0, 0]


def test_reused_keys_are_read_as_any_and_add_no_cache() -> None:
    own, reused = Full(heads=4, head_dim=24), Reused(heads=4, head_dim=24)
    assert reused.read_bits() == own.read_bits()
    assert reused.flops(100) == own.flops(100)
    assert reused.cache_bits(100) == 0
    assert reused.retrieval_head is None


@pytest.mark.parametrize("shared", [6, 8, 9])
def test_keys_of_no_earlier_layer(shared: int) -> None:
    with pytest.raises(ConfigError, match="'num_kv_shared_layers'"):
        from_config(GEMMA_3N | {"num_kv_shared_layers": shared})


def test_as_many_layers_reuse_keys_as_have_one_before_them() -> None:
    """The first three layers hold one of each kind; with all but the first of one kind reused."""
    left = [32 * 96, 32 * 96, 50 * 96, 0, 0, 0, 0, 0]
    assert numbers(GEMMA_3N | {"num_kv_shared_layers": 5}, 50) == left
    assert numbers(GEMMA_3N | {"num_kv_shared_layers": 0}, 50)[-1] == 50 * 96
    alike = GEMMA_3N | {"layer_types": [WHOLE] * 8, "num_kv_shared_layers": 7}
    assert numbers(alike, 50) == [50 * 96, *[0] * 7]
    read = from_config(alike)
    assert any(note.startswith("the last 7 layers") for note in read.notes)


def test_gemma_4_as_transformers_saves_it() -> None:
    # windows 2 x 2 x 24 numbers of a token; full layers 2 x 2 x 48 and 2 x 1 x 48
    assert numbers(GEMMA_4, 50) == [32 * 96, 50 * 192, 32 * 96, 50 * 96]
    # the last layer reuses the keys of layer 1
    assert numbers(GEMMA_4 | {"num_kv_shared_layers": 1}, 50) == [32 * 96, 50 * 192, 32 * 96, 0]


@each(
    "own, said",
    [
        ([], "must be an object"),
        ({"4": {"head_dim": 48}}, "layers 0 to 3"),
        ({"one": {"head_dim": 48}}, "layers 0 to 3"),
        ({"1": 48}, "layers 0 to 3"),
        ({"1": {"kv_lora_rank": 8}}, "'per_layer_config.1.kv_lora_rank'"),
        ({"1": {"head_dim": 0}}, "'head_dim' is 0"),
        ({"1": {"num_key_value_heads": 3}}, "does not divide"),
    ],
)
def test_fields_of_single_layers_that_are_not_read(own: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        from_config(GEMMA_4 | {"per_layer_config": own})


def test_llama_vision_layers_that_read_the_image() -> None:
    layers = from_config(MLLAMA).layers
    assert [type(part) for (part,) in layers] == [Full, PositionWise, Full, PositionWise, Full]
    assert numbers(MLLAMA, 50) == [4800, 0, 4800, 0, 4800]
    with pytest.raises(ConfigError, match="'cross_attention_layers'"):
        from_config(MLLAMA | {"cross_attention_layers": None})


def test_hunyuan_large_keeps_keys_of_every_second_layer() -> None:
    assert numbers(HUNYUAN, 50) == [4800, 0, 4800, 0, 4800, 0]
    assert numbers(HUNYUAN | {"use_cla": False}, 50) == [4800] * 6
    with pytest.raises(ConfigError, match="'cla_share_factor'"):
        from_config(HUNYUAN | {"cla_share_factor": None})


def test_ring_linear_layers() -> None:
    read = unplaced(from_config(RING))
    # full are the last of each four, and the three left over
    lightning = Lightning(heads=4, head_dim=24, format="bf16", state_format="fp32", rotated=True)
    full = [i for i, (part,) in enumerate(read.layers) if isinstance(part, Full)]
    assert full == [3, 7, 8, 9, 10]
    assert all(read.layers[i] == (lightning,) for i in range(11) if i not in full)
    assert numbers(RING, 50)[2:4] == [4 * 24 * 24, 4800]


def test_chatglm_and_exaone_spellings() -> None:
    assert numbers(CHATGLM, 50) == [4800] * 3
    assert numbers(CHATGLM | {"multi_query_attention": False}, 50) == [9600] * 3
    with pytest.raises(ConfigError, match="position_encoding_2d"):
        from_config(CHATGLM | {"position_encoding_2d": True})
    exaone = {key: value for key, value in USUAL.items() if key != "head_dim"}
    exaone |= {"model_type": "exaone", "num_layers": 3, "activation_function": "silu"}
    assert numbers(exaone, 50) == [50 * 2 * 2 * 16] * 3


def test_encoders_only_as_decoders() -> None:
    bert = {
        "model_type": "bert",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "dtype": "float32",
    }
    assert numbers(bert | {"is_decoder": True}, 50) == [50 * 2 * 64] * 2
    with pytest.raises(ConfigError, match="an encoder"):
        from_config(bert)


def test_xglm_as_transformers_saves_it() -> None:
    xglm = {"model_type": "xglm", "d_model": 64, "attention_heads": 4, "num_layers": 2}
    assert numbers(xglm | {"dtype": "float32"}, 50) == [50 * 2 * 64] * 2


def test_gpt_neo_windows() -> None:
    neo = {
        "model_type": "gpt_neo",
        "hidden_size": 64,
        "num_heads": 4,
        "num_layers": 5,
        "attention_types": [[["global", "local"], 2], [["local"], 1]],
        "window_size": 32,
        "dtype": "float32",
    }
    near, far = 32 * 128, 50 * 128
    assert numbers(neo, 50) == [far, near, far, near, near]
    near_named, alone = [[["global", "near"], 2], [["local"], 1]], [[["global"] * 5]]
    for wrong in ([[["global", "local"], 3]], near_named, alone, [5], None):
        with pytest.raises(ConfigError, match="'attention_types'"):
            from_config(neo | {"attention_types": wrong})


def test_the_thinker_of_an_omni_model() -> None:
    text = USUAL | {"model_type": "qwen2", "num_hidden_layers": 2}
    omni = {
        "model_type": "qwen2_5_omni",
        "thinker_config": {"model_type": "qwen2_5_omni_thinker", "text_config": text},
        "talker_config": {"num_hidden_layers": 9, "model_type": "qwen2_5_omni_talker"},
    }
    assert numbers(omni, 50) == [4800] * 2
