"""What engines keep of a sequence, against published figures and counts by hand."""

from __future__ import annotations

import pytest

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.engines import TABLE, Engine
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import MECHANISMS

GIB = 8 << 30
MIB = 8 << 20


def vllm(cards: int = 1) -> Engine:
    return Engine.named("vllm", cards)


def fp8(name: str) -> Architecture:
    return preset(name, settings=Settings.parse(["kv=fp8"]))


QWEN_27B = Architecture.parse(
    "(gdn(heads=48, key_heads=16, head_dim=128, conv=4, state_format=fp32) * 3"
    " + full(heads=24, kv_heads=4, head_dim=256, format=fp8)) * 16 @ bf16"
)
"""Qwen3.8-27B, of the sizes of Qwen3.5-27B, with keys and values of 8 bits."""


@pytest.mark.parametrize(
    ("stack", "cards", "tokens", "published"),
    [
        # github.com/vllm-project/vllm/issues/10517: GPU blocks of 16 tokens in a cache of GiB
        ("full(heads=32, kv_heads=8, head_dim=128) * 32 @ bf16", 1, 1952 * 16, 3.81),
        ("full(heads=32, kv_heads=8, head_dim=128) * 32 @ bf16", 1, 1478 * 16, 2.89),
        # github.com/vllm-project/vllm/issues/21348: Qwen3-235B-A22B on four cards; LMCache ran too
        ("full(heads=64, kv_heads=4, head_dim=128) * 94 @ bf16", 4, 178_880, 8.11),
        # huggingface.co/dranger003/c4ai-command-r-v01-iMat.GGUF/discussions/6, at 2,048 tokens
        ("full(heads=32, kv_heads=8, head_dim=128) * 32 @ fp16", 1, 2048, 256 / 1024),
        ("full(heads=64, kv_heads=8, head_dim=128) * 80 @ fp16", 1, 2048, 640 / 1024),
        ("full(heads=40, kv_heads=8, head_dim=128) * 64 @ fp16", 1, 2048, 512 / 1024),
        ("full(heads=56, kv_heads=8, head_dim=128) * 60 @ fp16", 1, 2048, 480 / 1024),
        ("full(heads=64, head_dim=128) * 40 @ fp16", 1, 2048, 2560 / 1024),
    ],
)
def test_pages_are_what_others_have_seen(
    stack: str, cards: int, tokens: int, published: float
) -> None:
    found = vllm(cards).bits(Architecture.parse(stack), tokens) / GIB
    # two decimals are printed; what else ran beside it takes one part in a hundred
    assert found == pytest.approx(published, abs=0.005 if cards == 1 else 0.1)


def test_an_indexed_latent_of_8_bits_has_scales() -> None:
    """656 bytes a token and layer (512 + 4 scales of 4 + 64 in 16 bits), and 132 of the indexer.
    sgl-project/sglang/pull/11309 gives 65.49 GB for 1,462,784 tokens and 43.67 for 975,424.
    """
    model = fp8("deepseek-v3.2")
    assert vllm().bits(model, 16) == 16 * 8 * 61 * (656 + 132)
    for tokens, gib in ((1_462_784, 65.49), (975_424, 43.67)):
        assert vllm().bits(model, tokens) / GIB == pytest.approx(gib, abs=0.01)
    # DeepSeek-V2 in Blaizzy/mlx-vlm/pull/1284: 60 layers of 656 bytes are 38.4 KiB
    assert pytest.approx(38.4, abs=0.05) == 60 * 656 / 1024
    # latents stand on every card
    assert vllm(8).bits(model, 16) == vllm().bits(model, 16)


def test_pages_of_hybrids_hold_a_state() -> None:
    """mitchross/talos-argocd-proxmox/pull/1995: Qwen3.8-27B on two cards has pages of 1,568 tokens,
    302,921 tokens in 4.99 GiB a card, where prefixes are cached (two states for a sequence).
    """
    engine = vllm(2)
    layers = engine.layers(QWEN_27B)
    assert engine.page_tokens(layers) == 1568
    # four groups of 16 layers, in a page 1,024 bytes a token and layer
    block = 16 * 1568 * 1024 * 8
    assert engine.bits(QWEN_27B, 131_072) == (84 + 3) * block
    fit = int(4.99 * GIB) // block / (84 + 2 * 3)
    assert int(fit * 131_072) == 302_921


def test_pages_of_other_hybrids() -> None:
    """github.com/vllm-project/vllm/issues/24280: 672 tokens in Nemotron-Nano-9B-v2; Qwen3-Next:
    (32 x 128 x 128 + 3 x 8192) x 2 bytes, at 2,048 a token, need 536 tokens, in sixteens 544.
    """
    nemotron = Architecture.parse(
        "mamba2(heads=128, head_dim=80, state=128, groups=8, conv=4) * 27"
        " + full(heads=40, kv_heads=8, head_dim=128) * 4 @ bf16"
    )
    assert vllm().page_tokens(vllm().layers(nemotron)) == 672
    assert vllm().page_tokens(vllm().layers(preset("qwen3-next-80b"))) == 544


def test_groups_of_layers_are_padded() -> None:
    """Gemma 3 27B: 10 full and 52 sliding layers make groups of 10, the last one with 8 in vain."""
    gemma = preset("gemma-3-27b")
    page = 16 * 2 * 16 * 128 * 16
    windows = -(-1024 // 16) + 1
    assert vllm().bits(gemma, 32_768) == 10 * page * (32_768 // 16 + 6 * windows)
    # of nearly as many layers the larger number is a group: 9 and 12 are 12 and 12
    stack = Architecture.parse("full * 9 + window(size=32) * 12 @ heads=2, head_dim=8, fp16")
    assert vllm().bits(stack, 160) == 12 * (16 * 2 * 2 * 8 * 16) * (10 + 3)


def test_files_of_32_bits_run_in_16() -> None:
    stack = Architecture.parse("full @ heads=2, head_dim=8, fp32")
    assert 2 * vllm().bits(stack, 16) == stack.cache_bits(16)
    assert Engine.named("transformers").bits(stack, 16) == stack.cache_bits(16)


def test_states_that_nobody_states_have_the_models_own_format() -> None:
    config = {
        **{"model_type": "jamba", "hidden_size": 64, "num_hidden_layers": 2},
        **{"num_attention_heads": 4, "num_key_value_heads": 4, "attn_layer_period": 2},
        **{"attn_layer_offset": 0, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
        **{"mamba_dt_rank": 4, "torch_dtype": "bfloat16", "vocab_size": 9},
    }
    (kept,) = (each for each in vllm().layers(from_config(config)) if each.state)
    assert kept.state == (128 * 16 + 128 * 3) * 16
    # Kimi's recurrence keeps its own in 32 whatever the model has
    delta = Architecture.parse("kda(heads=2, head_dim=8, conv=4, state_format=fp32) @ bf16")
    (kept,) = vllm().layers(delta)
    assert kept.state == 2 * 8 * 8 * 32 + 3 * 3 * 2 * 8 * 16


def test_heads_that_cards_share_are_on_each() -> None:
    stack = Architecture.parse("full(heads=8, kv_heads=2, head_dim=8) @ fp16")
    each = [vllm(cards).bits(stack, 16) for cards in (1, 2, 4, 8)]
    assert each == [each[0], each[0] // 2, each[0] // 2, each[0] // 2]
    # and so are the groups of a Mamba-2: 4 of 1 group, on each card one
    mamba = Architecture.parse("mamba2(heads=8, head_dim=4, state=16, groups=1, conv=4) @ fp16")
    (kept,) = vllm(4).layers(mamba)
    assert kept.state == (8 * 4 * 16 + 3 * (8 * 4 + 2 * 4 * 16)) * 16 // 4


def test_what_transformers_keeps_beside() -> None:
    """A column of a convolution that it does not use, and the keys and values of all heads."""
    stack = Architecture.parse("gdn(heads=2, head_dim=8, conv=4) @ fp16")
    found = Engine.named("transformers").bits(stack, 99)
    assert found == stack.cache_bits(99) + 3 * 2 * 8 * 16
    model = preset("deepseek-v3.2")
    heads = 128 * (128 + 64 + 128)
    assert Engine.named("transformers").bits(model, 10) == 10 * 61 * (heads + 128) * 16


@pytest.mark.parametrize(
    ("settings", "error", "named"),
    [
        (["engine=sglang"], UnknownNameError, "sglang"),
        (["tp=2"], SizeError, "tp=2"),
        (["engine=transformers", "tp=2"], SizeError, "transformers"),
        (["engine=vllm", "tp=0"], SizeError, "tp"),
        (["engine=vllm", "tp=1.5"], SizeError, "tp"),
        (["engine=vllm", "tp=9999999999999999999"], SizeError, "tp"),
        *(
            ([f"utilisation={text}"], SizeError, "utilisation")
            for text in ("0", "1.01", "-1", "nan", "1e1", "1/2", "0.0000000001", ".", "٣")
        ),
    ],
)
def test_settings_that_the_table_does_not_have(
    settings: list[str], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        _ = Settings.parse(settings).served


@pytest.mark.parametrize(
    ("stack", "cards", "named"),
    [
        ("full(heads=8, kv_heads=8, head_dim=8)", 3, "heads=8"),
        ("full(heads=6, kv_heads=3, head_dim=8)", 2, "3 key-value heads"),
        ("mamba(width=7, state=2)", 2, "width=7"),
        ("gdn(heads=3, head_dim=8)", 2, "heads=3"),
        ("mla(heads=6, head_dim=8)", 4, "heads=6"),
        ("retnet", 1, "retnet"),
        ("rwkv", 1, "rwkv"),
    ],
)
def test_stacks_that_cards_do_not_divide_or_engines_do_not_have(
    stack: str, cards: int, named: str
) -> None:
    with pytest.raises(SizeError, match=named):
        vllm(cards).bits(Architecture.parse(stack), 16)


def test_rows_are_whole() -> None:
    for name, row in TABLE.items():
        engine = Engine.named(name)
        assert engine.date
        assert len(engine.source) > 20
        assert set(f"{row.get('keeps', '')} {row.get('columns', '')}".split()) <= set(MECHANISMS)
