"""Each family on a small file: layers and sizes worked out by hand from the fields."""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_configs import FAMILIES, GEMMA, NEMOTRON, QWEN
from support.unplaced import unplaced

from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.mechanisms import RGLRU, Full, GatedDeltaNet, Mamba2, PositionWise, Window

FULL = {"accumulator": "fp32", "running_max": True, "format": "bf16"}
QWEN_FULL = Full(heads=4, kv_heads=2, head_dim=32, **FULL)
QWEN_GDN = GatedDeltaNet(
    heads=4, key_heads=2, head_dim=16, value_dim=8, conv=4, format="bf16", state_format="fp32"
)


def kinds(config: dict[str, Any]) -> str:
    return "".join(part.symbol for layer in from_config(config) for part in layer)


def test_qwen3_next_sizes() -> None:
    read = unplaced(from_config(QWEN, "small"))
    assert read.layers == tuple(((QWEN_FULL,) if i in (3, 7) else (QWEN_GDN,)) for i in range(8))
    assert (read.name, read.vocabulary, read.context) == ("small", 100, 1024)
    # 6 layers x 4 heads x 16 x 8 fp32; 6 x 3 columns x (2 x 2 x 16 + 4 x 8) channels bf16; 2 layers
    # x 2 x 2 x 32 bf16 per token
    cache = read.cache(50)
    assert cache["state"].total == 6 * 4 * 16 * 8 * 32
    assert cache["convolution"].total == 6 * 3 * 96 * 16
    assert cache["kv"].total == 50 * 2 * 2 * 2 * 32 * 16
    assert read.read_bits(3) == 4 * (32 + 2) * 32


def test_an_output_gate_may_be_switched_off() -> None:
    """Qwen3-Next norms queries and keys of each head, and gates every number of their outputs."""
    for config, gate in ((QWEN, "sigmoid"), (QWEN | {"attn_output_gate": False}, "none")):
        part = from_config(config).layers[3][0]
        assert (part.sizes()["qk_norm"], part.sizes()["gate"]) == ("head", gate)


def test_nemotron_h_sizes() -> None:
    read = unplaced(from_config(NEMOTRON))
    mamba = Mamba2(
        heads=8, head_dim=4, state=16, groups=2, conv=4, format="bf16", state_format="fp32"
    )
    attention = Full(heads=4, kv_heads=1, head_dim=32, **FULL)
    mlp = PositionWise(format="bf16")
    assert read.layers == ((mamba,), (mlp,), (mamba,), (attention,), (mamba,), (mlp,))
    assert read.cache(50)["state"].total == 3 * 8 * 4 * 16 * 32
    assert read.cache(50)["convolution"].total == 3 * 3 * (8 * 4 + 2 * 2 * 16) * 16
    assert read.context is None


def test_recurrent_gemma_sizes() -> None:
    read = unplaced(from_config(GEMMA))
    rglru = RGLRU(width=48, conv=4, format="bf16", state_format="fp32")
    window = Window(heads=2, kv_heads=1, head_dim=32, size=10, **FULL)
    assert read.layers == ((rglru,), (rglru,), (window,), (rglru,), (rglru,))
    cache = read.cache(50)
    assert (cache["state"].total, cache["convolution"].total, cache["window"].total) == (
        4 * 48 * 32,
        4 * 3 * 48 * 16,
        10 * 2 * 32 * 16,
    )
    assert read.reading == ()


def test_explicit_layer_types_win_over_the_interval() -> None:
    types = ["full_attention"] + ["linear_attention"] * 6 + ["full_attention"]
    assert kinds(QWEN | {"layer_types": types}) == "fggggggf"
    assert kinds(QWEN | {"layer_types": ["mamba"] * 7 + ["attention"]}) == "gggggggf"


@each("interval, expected", [(1, "ffffffff"), (2, "gfgfgfgf"), (3, "ggfggfgg"), (9, "gggggggg")])
def test_full_attention_interval(interval: int, expected: str) -> None:
    assert kinds(QWEN | {"full_attention_interval": interval}) == expected


def test_interval_is_four_where_the_file_is_silent_and_the_card_says_so() -> None:
    silent = {key: value for key, value in QWEN.items() if key != "full_attention_interval"}
    assert kinds(silent) == "gggfgggf"
    assert any("every 4 layers (assumed)" in note for note in from_config(silent).notes)
    assert not any("4th layer" in note for note in from_config(QWEN).notes)


def test_nemotron_lists_newer_spellings() -> None:
    newer = {
        key: value
        for key, value in NEMOTRON.items()
        if key not in ("hybrid_override_pattern", "attention_head_dim")
    }
    newer |= {
        "layers_block_type": ["mamba", "mlp", "mamba", "attention", "mamba", "moe"],
        "head_dim": 32,
    }
    assert from_config(newer) == from_config(NEMOTRON)


def test_nemotron_sliding_window() -> None:
    assert kinds(NEMOTRON | {"sliding_window": 64}) == "m-mwm-"
    assert kinds(NEMOTRON | {"sliding_window": 64, "use_sliding_window": False}) == "m-mfm-"
    assert kinds(NEMOTRON | {"sliding_window": None}) == "m-mfm-"


def test_nemotron_state_format_stated_by_the_file() -> None:
    read = from_config(NEMOTRON | {"mamba_ssm_cache_dtype": "bfloat16"})
    assert read.cache(50)["state"].total == 3 * 8 * 4 * 16 * 16
    assert any("mamba_ssm_cache_dtype" in note for note in read.notes)
    assert not any(
        note.startswith("recurrent state") and "(assumed)" in note for note in read.notes
    )


def test_both_spellings_of_the_block_types() -> None:
    plain = {"block_types" if key == "_block_types" else key: value for key, value in GEMMA.items()}
    assert from_config(plain) == from_config(GEMMA)
    assert kinds(GEMMA | {"num_hidden_layers": 2}) == "rr"


@each("dtype, bits", [("float32", 32), ("float16", 16), ("bfloat16", 16), ("torch.bfloat16", 16)])
def test_dtype_in_both_spellings(dtype: str, bits: int) -> None:
    silent = {key: value for key, value in GEMMA.items() if key != "torch_dtype"}
    for name in ("dtype", "torch_dtype"):
        assert from_config(silent | {name: dtype}).cache(50)["window"].total == 10 * 2 * 32 * bits


@pytest.mark.parametrize("family", FAMILIES)
def test_assumptions_name_state_buffers_and_accumulators(family: str) -> None:
    notes = from_config(FAMILIES[family]).notes
    assert [
        note
        for note in notes
        if note.startswith("recurrent state fp32 (assumed)")
        and "transformers" in note
        and "vLLM" in note
    ]
    assert [note for note in notes if note.startswith("softmax accumulators fp32 ")]
    assert [note for note in notes if note.startswith("convolution buffers bf16 (assumed)")]


@each("family", FAMILIES)
@each("key", ["text_config", "llm_config", "language_config"])
def test_nested_text_config(family: str, key: str) -> None:
    config = dict(FAMILIES[family])
    plain = from_config(config)
    assert from_config({"model_type": "some_vision_model", key: config, "vocab_size": 7}) == plain
    dtype = config.pop("torch_dtype")
    assert from_config({"model_type": "some_vision_model", "dtype": dtype, key: config}) == plain


def test_nested_dtype_wins() -> None:
    for name in ("dtype", "torch_dtype"):
        assert from_config({name: "float32", "text_config": QWEN}) == from_config(QWEN)


def test_architectures_stand_in_for_a_missing_model_type() -> None:
    silent = {key: value for key, value in QWEN.items() if key != "model_type"}
    assert from_config(silent) == from_config(QWEN)


def test_remote_code_is_never_followed() -> None:
    hostile = QWEN | {
        "auto_map": {"AutoConfig": "no_such_module_here.Config"},
        "trust_remote_code": True,
    }
    assert from_config(hostile) == from_config(QWEN)
