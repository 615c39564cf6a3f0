"""Families with recurrence or short convolutions on small files: layers and sizes worked out by
hand from the fields.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_recurrent_configs import (
    BAMBA,
    FALCON_H1,
    FALCON_MAMBA,
    GATED_DELTANET,
    GRANITE,
    HYMBA,
    JAMBA,
    KIMI,
    LFM2,
    LINEAR,
    MAMBA,
    MAMBA2,
    MINIMAX,
    NATIVE,
    OLMO,
    PORTED,
    RECURRENT,
    RETNET,
    RWKV,
    RWKV6,
    RWKV7,
    XLSTM,
    ZAMBA,
    ZAMBA2,
)
from support.hf_recurrent_configs import HGRN2 as HGRN2_FILE
from support.unplaced import sizes_of

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config, of_class
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.mechanisms import (
    GLA,
    HGRN2,
    KDA,
    MLSTM,
    RWKV4,
    DeltaNet,
    DeltaProduct,
    Full,
    GatedDeltaNet,
    Latent,
    Lightning,
    Linear,
    LogLinear,
    Mamba,
    Mamba2,
    Mechanism,
    RetNet,
    ShortConvolution,
    Window,
)
from separatrix.stacks.mechanisms import RWKV as Rwkv67
from separatrix.tasks import parse_task
from separatrix.theory import judge

F: dict[str, Any] = {"accumulator": "fp32", "running_max": True, "format": "bf16"}
S: dict[str, Any] = {"format": "bf16", "state_format": "fp32"}
FULL_16 = Full(heads=4, kv_heads=2, head_dim=16, **F)
MIXED_M2 = Mamba2(heads=6, head_dim=32, state=24, groups=2, conv=4, **S)
PLAIN_M2 = Mamba2(heads=6, head_dim=16, state=24, groups=2, conv=4, **S)
ZAMBA_FULL = Full(heads=4, kv_heads=4, head_dim=24, **F)
WINDOW_16 = Window(heads=4, kv_heads=2, head_dim=16, size=10, **F)

BY_HAND: dict[str, dict[str, Mechanism]] = {
    "kimi_linear": {
        "k": KDA(heads=3, head_dim=24, conv=4, **S),
        "a": Latent(heads=4, head_dim=16, value_dim=20, latent=40, rope_dim=8, **F),
    },
    "olmo_hybrid": {
        "g": GatedDeltaNet(
            heads=4, key_heads=2, head_dim=12, value_dim=20, conv=4, negative=True, **S
        ),
        "f": FULL_16,
    },
    "minimax_text_01": {
        "y": Lightning(heads=4, head_dim=24, **S),
        "f": Full(heads=4, kv_heads=2, head_dim=24, **F),
    },
    "minimax": {
        "y": Lightning(heads=4, head_dim=24, format="bf16"),
        "f": Full(heads=4, kv_heads=2, head_dim=24, **F),
    },
    "jamba": {"b": Mamba(width=192, state=8, conv=4, norms=True, **S), "f": FULL_16},
    "bamba": {"m": MIXED_M2, "f": FULL_16},
    "granitemoehybrid": {"m": MIXED_M2, "f": FULL_16},
    "falcon_h1": {"m": MIXED_M2, "f": Full(heads=4, kv_heads=2, head_dim=24, **F)},
    "mamba": {"b": Mamba(width=64, state=8, conv=4, **S)},
    "falcon_mamba": {"b": Mamba(width=64, state=8, conv=4, norms=True, **S)},
    "mamba2": {"m": PLAIN_M2},
    "zamba": {"b": Mamba(width=96, state=8, conv=4, **S), "f": ZAMBA_FULL},
    "zamba2": {"m": PLAIN_M2, "f": ZAMBA_FULL},
    "lfm2": {"u": ShortConvolution(width=64, conv=3, format="bf16"), "f": FULL_16},
    "hymba": {
        "b": Mamba(width=128, state=8, conv=4, **S),
        "f": Full(heads=4, kv_heads=2, head_dim=16, value_dim=32, **F),
        "w": Window(heads=4, kv_heads=2, head_dim=16, value_dim=32, size=10, **F),
    },
    "rwkv": {"V": RWKV4(width=48, hidden=32, **S)},
    "xlstm": {"x": MLSTM(heads=2, head_dim=32, value_dim=64, **S)},
    "gla": {"q": GLA(heads=4, head_dim=8, value_dim=16, **S)},
    "retnet": {"t": RetNet(heads=4, head_dim=16, value_dim=32, **S), "f": FULL_16},
    "delta_net": {"d": DeltaNet(heads=2, head_dim=24, value_dim=32, conv=4, **S)},
    "gated_deltanet": {
        "g": GatedDeltaNet(heads=4, key_heads=2, head_dim=12, value_dim=24, conv=4, **S),
        "f": Full(heads=4, kv_heads=4, head_dim=16, **F),
        "w": Window(heads=8, kv_heads=2, head_dim=8, size=10, **F),
    },
    "gated_deltaproduct": {
        "p": DeltaProduct(
            heads=4,
            key_heads=2,
            head_dim=12,
            value_dim=24,
            conv=4,
            householders=3,
            negative=False,
            **S,
        )
    },
    "kda": {"k": KDA(heads=2, key_heads=2, head_dim=12, value_dim=12, conv=4, **S)},
    "hgrn2": {"e": HGRN2(heads=4, head_dim=16, value_dim=16, **S)},
    "linear_attn": {
        "l": Linear(heads=4, head_dim=8, value_dim=16, feature="identity", normaliser=True, **S)
    },
    "rwkv6": {"v": Rwkv67(heads=4, head_dim=8, value_dim=16, width=64, shifts=2, version=6, **S)},
    "samba": {"b": Mamba(width=128, state=8, conv=4, **S), "w": WINDOW_16},
    "log_linear_mamba2": {
        "o": LogLinear(heads=6, key_heads=2, head_dim=24, value_dim=16, conv=4, base="mamba2", **S)
    },
    "mamba_ssm": {"m": PLAIN_M2, "f": Full(heads=4, kv_heads=2, head_dim=20, conv=3, **F)},
}
PATTERNS = {
    "kimi_linear": "k k a k a",
    "olmo_hybrid": "g f g g f",
    "minimax_text_01": "y f y y f",
    "minimax": "y y f y f",
    "jamba": "b f b b f b b",
    "bamba": "m f m m f m",
    "granitemoehybrid": "m m f m",
    "falcon_h1": "f|m f|m f|m",
    "mamba": "b b b",
    "falcon_mamba": "b b b",
    "mamba2": "m m m",
    "zamba": "b b f|b b f|b b b f|b",
    "zamba2": "m f|m m f|m",
    "lfm2": "u u f u f",
    "hymba": "f|b w|b w|b f|b",
    "rwkv": "V V V",
    "xlstm": "x x x",
    "gla": "q q q q",
    "retnet": "t f t f",
    "delta_net": "d d d d",
    "gated_deltanet": "f g w g",
    "gated_deltaproduct": "p p p p",
    "kda": "k k k k",
    "hgrn2": "e e e e",
    "linear_attn": "l l l l",
    "rwkv6": "v v v v",
    "samba": "b w b w",
    "log_linear_mamba2": "o o o",
    "mamba_ssm": "m m f m",
}


def kinds(config: dict[str, Any]) -> str:
    return " ".join("|".join(part.symbol for part in layer) for layer in from_config(config))


@each("family", ["delta_net", "gated_deltanet", "gated_deltaproduct", "kda"])
def test_negative_eigenvalues_are_read(family: str) -> None:
    (part,) = {
        p
        for layer in from_config(RECURRENT[family] | {"allow_neg_eigval": True, "attn": None})
        for p in layer
    }
    assert part.sizes()["negative"] is True


@each("family", ["delta_net", "gated_deltanet", "gated_deltaproduct", "kda"])
def test_the_silu_of_released_layers_stays_where_they_have_no_convolution(family: str) -> None:
    """Behind it keys are no reflections of things: all that is known of such a layer is parity."""
    config = RECURRENT[family] | {"allow_neg_eigval": True, "attn": None, "use_short_conv": False}
    model = from_config(config)
    (part,) = {part for layer in model for part in layer}
    assert part.turning is not None
    assert not part.turning.bare
    for text, status in (("parity:n=100", "SOLVABLE"), ("permutation:n=100,k=3", "OPEN")):
        assert judge(model, parse_task(text))[0].status == status


@pytest.mark.parametrize(("said", "negative"), [({}, True), (True, True), (False, False)])
def test_olmo_hybrid_has_negative_eigenvalues_unless_the_file_says_no(
    said: bool | dict[str, Any], negative: bool
) -> None:
    """As `OlmoHybridConfig` of transformers, whose default is true."""
    given = {"linear_allow_neg_eigval": said} if isinstance(said, bool) else {}
    parts = {part for layer in from_config(RECURRENT["olmo_hybrid"] | given) for part in layer}
    assert {p.sizes()["negative"] for p in parts if p.name == "gdn"} == {negative}


def test_every_small_file_is_counted() -> None:
    assert (
        set(BY_HAND)
        == set(PATTERNS)
        == set(RECURRENT)
        - {
            *(
                "qwen3_next",
                "qwen3_5",
                "nemotron_h",
                "recurrent_gemma",
                "kimi_k3",
                "minimax_m1",
                "lfm2_moe",
                "rwkv7",
            ),  # tested elsewhere
        }
    )


@each("family", BY_HAND)
def test_layers_and_sizes(family: str) -> None:
    read = sizes_of(RECURRENT[family])
    expected = tuple(
        tuple(BY_HAND[family][symbol] for symbol in layer.split("|"))
        for layer in PATTERNS[family].split()
    )
    assert read.layers == expected
    assert read.vocabulary == 100


@pytest.mark.parametrize(
    ("family", "plain"),
    [("kimi_k3", "kimi_linear"), ("minimax_m1", "minimax_text_01"), ("lfm2_moe", "lfm2")],
)
def test_families_that_read_alike(family: str, plain: str) -> None:
    assert from_config(RECURRENT[family]) == from_config(RECURRENT[plain])


def test_qwen3_5_reads_its_text_config() -> None:
    assert from_config(RECURRENT["qwen3_5"]) == from_config(RECURRENT["qwen3_next"])


@each(
    "name",
    [
        *("JambaForCausalLM", "MiniMaxText01ForCausalLM", "FalconH1ForCausalLM", "RwkvForCausalLM"),
        *("xLSTMForCausalLM", "GatedDeltaNetForCausalLM", "LinearAttentionForCausalLM"),
        *("KimiLinearForCausalLM", "OlmoHybridForCausalLM", "SambaForCausalLM"),
    ],
)
def test_a_class_stands_in_for_its_type(name: str) -> None:
    config = RECURRENT[str(of_class(name))]
    silent = {key: value for key, value in config.items() if key != "model_type"}
    assert from_config(silent | {"architectures": [name]}).layers == from_config(config).layers


def test_rwkv7_values_by_layer_and_token_shifts() -> None:
    narrow, wide = (
        Rwkv67(heads=4, head_dim=16, value_dim=v, width=64, shifts=2, **S) for v in (16, 32)
    )
    assert sizes_of(RWKV7).layers == ((narrow,), (narrow,), (wide,), (narrow,))
    by_heads = {**RWKV7, "head_dim": None, "num_heads": 4, "value_dim": None}
    assert sizes_of(by_heads).layers == ((narrow,),) * 4
    # a layer of attention keeps channel mixing's shift: one token of 64 numbers
    mixed = from_config({**RWKV6, "attn": {"layers": [1], "num_heads": 4, "window_size": None}})
    assert [part.name for part in mixed.layers[1]] == ["full", "shortconv"]
    assert mixed.cache(50)["convolution"].total == 64 * 16
    assert mixed.cache(50)["state"].total == 3 * (4 * 8 * 16 * 32 + 2 * 64 * 16)


def test_kimi_head_dim_beside_the_sizes_is_a_decoy() -> None:
    for value in (None, 7, 999):
        assert from_config(KIMI | {"head_dim": value}) == from_config(KIMI)
    assert from_config(KIMI).cache(50)["kv"].total == 50 * 2 * (40 + 8) * 16
    assert from_config(KIMI).cache(50)["state"].total == 3 * 3 * 24 * 24 * 32
    assert from_config(KIMI).cache(50)["convolution"].total == 3 * 3 * (3 * 3 * 24) * 16


@each(
    "full, kda, expected",
    [
        ([3, 5], [1, 2, 4], "k k a k a"),
        ([2, 4], [0, 1, 3], "k k a k a"),
        ([4, 2], [3, 1, 0], "k k a k a"),
        ([1, 2, 3, 4, 5], [], "a a a a a"),
        ([3, 5], None, "k k a k a"),
        ([0, 2], None, "a k a k k"),
        (None, [0, 1], "k k a a a"),
        (None, [4, 5], "a a a k k"),
    ],
)
def test_kimi_lists_count_from_one_or_zero(
    full: list[int] | None, kda: list[int] | None, expected: str
) -> None:
    inner = {**KIMI["linear_attn_config"], "full_attn_layers": full, "kda_layers": kda}
    assert kinds(KIMI | {"linear_attn_config": inner}) == expected


def test_kimi_in_transformers_own_spelling() -> None:
    flat = {key: value for key, value in KIMI.items() if key != "linear_attn_config"}
    flat |= {"linear_head_dim": 24, "linear_num_heads": 3, "linear_conv_kernel_dim": 4}
    words = {"k": "linear_attention", "a": "full_attention"}
    assert from_config(
        flat | {"layer_types": [words[letter] for letter in "kkaka"]}
    ) == from_config(KIMI)


def test_lightning_state_is_fp32_in_the_released_code_and_the_models_dtype_in_transformers() -> (
    None
):
    assert from_config(MINIMAX).cache(9)["state"].total == 3 * 4 * 24 * 24 * 32
    assert from_config(PORTED).cache(9)["state"].total == 3 * 4 * 24 * 24 * 16
    assert any(
        note.startswith("recurrent state fp32 (assumed)") for note in from_config(MINIMAX).notes
    )
    assert any(note.startswith("recurrent state in ") for note in from_config(PORTED).notes)
    assert kinds(PORTED | {"layer_types": None, "attn_type_list": [1, 0, 0, 0, 1]}) == "f y y y f"


def test_explicit_layers_win_over_periods() -> None:
    listed = ["mamba", "mamba", "attention", "mamba", "mamba", "mamba", "attention"]
    new = [{"mamba": "linear_attention", "attention": "full_attention"}[word] for word in listed]
    assert (
        kinds(JAMBA | {"layers_block_type": listed})
        == kinds(JAMBA | {"layer_types": new})
        == "b b f b b b f"
    )
    hybrid = ["hybrid" if i in (0, 7) else "mamba" for i in range(8)]
    assert kinds(ZAMBA | {"layers_block_type": hybrid}) == "f|b b b b b b b f|b"
    # the first hybrid layer is the third
    assert kinds(ZAMBA | {"num_hidden_layers": 2}) == "b b"


@each(
    "period, offset, expected",
    [
        (1, 0, "f f f f f f f"),
        (2, 0, "f b f b f b f"),
        (4, 3, "b b b f b b b"),
        (9, 8, "b b b b b b b"),
    ],
)
def test_jamba_period_and_offset(period: int, offset: int, expected: str) -> None:
    assert kinds(JAMBA | {"attn_layer_period": period, "attn_layer_offset": offset}) == expected


def test_olmo_hybrid_defines_what_the_file_leaves_out() -> None:
    names = (
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "num_key_value_heads",
    )
    silent = {key: value for key, value in OLMO.items() if key not in (*names, "layer_types")}
    read = sizes_of(silent | {"num_hidden_layers": 9})
    # 4 heads; keys 0.75 x 64 / 4 = 12, values twice that; layers 3 and 7 (of 0 to 8) full, with as
    # many key-value heads as heads
    assert read.layers[0] == (
        GatedDeltaNet(heads=4, key_heads=4, head_dim=12, value_dim=24, conv=4, negative=True, **S),
    )
    assert read.layers[3] == read.layers[7] == (Full(heads=4, kv_heads=4, head_dim=16, **F),)
    assert read.reading == (3, 7)
    assert any("every 4 layers (assumed)" in note for note in read.notes)
    assert kinds(silent | {"num_hidden_layers": 3}) == "g g f"
    assert not any("4th layer" in note for note in from_config(OLMO).notes)


def test_widths_that_win() -> None:
    (falcon,) = set(sizes_of(FALCON_MAMBA).layers)
    # intermediate_size 64 over expand 16 x 32
    assert falcon == (Mamba(width=64, state=8, conv=4, norms=True, **S),)
    wide = {key: value for key, value in MAMBA.items() if key != "expand"}
    assert sizes_of(wide | {"intermediate_size": 96}).layers[0] == (
        Mamba(width=96, state=8, conv=4, **S),
    )
    # implementations disagree on which of the two wins
    with pytest.raises(ConfigError, match="'intermediate_size'"):
        sizes_of(MAMBA | {"intermediate_size": 96})
    assert sizes_of(FALCON_H1 | {"mamba_expand": 77}) == sizes_of(
        FALCON_H1
    )  # mamba_d_ssm over expand
    null = sizes_of(FALCON_H1 | {"mamba_d_ssm": None, "mamba_expand": 3})
    assert null == sizes_of(FALCON_H1)  # null, not absent: expand x hidden_size
    auto = sizes_of(BAMBA | {"mamba_d_head": "auto"})
    assert (
        auto
        == sizes_of(BAMBA)
        == sizes_of({key: value for key, value in BAMBA.items() if key != "mamba_d_head"})
    )
    assert sizes_of(MAMBA2 | {"num_heads": None}) == sizes_of(MAMBA2)
    assert sizes_of(MAMBA | {"expand": 2.0}) == sizes_of(MAMBA)
    assert sizes_of(MAMBA | {"expand": 1.5}).layers[0] == (Mamba(width=48, state=8, conv=4, **S),)


def test_zamba2_in_both_spellings() -> None:
    newer = {
        key: value
        for key, value in ZAMBA2.items()
        if key not in ("state_size", "mamba_headdim", "expansion_factor", "conv_dimension")
    }
    newer |= {"mamba_d_state": 24, "n_mamba_heads": 6, "mamba_expand": 2, "mamba_d_conv": 4}
    newer["layers_block_type"] = ["linear_attention", "hybrid", "linear_attention", "hybrid"]
    assert from_config(newer) == from_config(ZAMBA2)
    # 6 heads of 16 are 96 channels
    assert from_config(ZAMBA2 | {"n_mamba_heads": 6}) == from_config(ZAMBA2)
    with pytest.raises(ConfigError, match="'n_mamba_heads'"):
        from_config(ZAMBA2 | {"n_mamba_heads": 8})
    assert any("of its own" in note for note in from_config(ZAMBA2).notes)
    # KV at each of the two hybrid layers: 2 x 4 heads x (2 x 48 / 4)
    assert from_config(ZAMBA2).cache(10)["kv"].total == 10 * 2 * 2 * 4 * 24 * 16


@each("config", [JAMBA, BAMBA, GRANITE, LFM2, OLMO])
def test_head_dim_is_hidden_over_heads_unless_given(config: dict[str, Any]) -> None:
    full = next(
        part
        for layer in from_config(config | {"head_dim": 40})
        for part in layer
        if isinstance(part, Full)
    )
    assert full.head_dim == 40


def test_lfm2_indices_and_words() -> None:
    indexed = {key: value for key, value in LFM2.items() if key != "layer_types"} | {
        "full_attn_idxs": [2, 4]
    }
    assert from_config(indexed) == from_config(LFM2)
    assert from_config(LFM2).cache(50)["convolution"].total == 3 * 64 * 2 * 16
    assert from_config(LFM2).cache(1)["convolution"].total == 3 * 64 * 1 * 16
    assert (
        "state" not in from_config(LFM2).cache(50) or not from_config(LFM2).cache(50)["state"].total
    )


def test_hymba_says_what_it_counts() -> None:
    read = from_config(HYMBA)
    assert any("'num_memory_tokens'" in note and "not counted" in note for note in read.notes)
    # windows of 10 tokens: two layers x 2 heads x (16 + 32) numbers
    assert read.cache(50)["window"].total == 10 * 2 * 2 * 48 * 16
    assert read.cache(50)["kv"].total == 50 * 2 * 2 * 48 * 16


def test_rwkv4_and_xlstm_states() -> None:
    assert from_config(RWKV).cache(5)["state"].total == 3 * (3 * 48 * 32 + 2 * 32 * 16)
    plain = sizes_of({key: value for key, value in RWKV.items() if key != "attention_hidden_size"})
    assert plain.layers[0] == (RWKV4(width=32, hidden=32, **S),)
    assert from_config(XLSTM).cache(5)["state"].total == 3 * 2 * (32 * 64 + 32 + 1) * 32
    stated = from_config(XLSTM | {"inference_state_dtype": "bfloat16"})
    assert stated.cache(5)["state"].total == 3 * 2 * (32 * 64 + 32 + 1) * 16
    assert any("inference_state_dtype" in note for note in stated.notes)


def test_attn_of_flash_linear_attention() -> None:
    assert (
        kinds(RETNET | {"attn": None})
        == kinds({key: value for key, value in RETNET.items() if key != "attn"})
        == "t t t t"
    )
    assert kinds(RETNET | {"attn": []}) == "t t t t"
    assert kinds(RETNET | {"attn": {"layers": [], "num_heads": 4}}) == "t t t t"
    assert kinds(GATED_DELTANET | {"attn": {"layers": [0, 1, 2, 3], "num_heads": 2}}) == "f f f f"
    assert not any(
        note.startswith("recurrent state")
        for note in from_config(
            GATED_DELTANET | {"attn": {"layers": [0, 1, 2, 3], "num_heads": 2}}
        ).notes
    )


def test_linear_attention_with_and_without_normaliser() -> None:
    assert from_config(LINEAR).cache(5)["state"].total == 4 * 4 * 8 * (16 + 1) * 32
    assert (
        from_config(LINEAR | {"norm_feature_map": False}).cache(5)["state"].total
        == 4 * 4 * 8 * 16 * 32
    )


def test_native_files() -> None:
    assert kinds(NATIVE | {"attn_layer_idx": [], "attn_cfg": {}}) == "m m m m"
    assert kinds(NATIVE | {"attn_layer_idx": [0, 1, 2, 3], "ssm_cfg": {}}) == "f f f f"
    first = sizes_of(NATIVE | {"ssm_cfg": {"d_state": 8, "d_conv": 4, "expand": 2}})
    assert first.layers[0] == (Mamba(width=96, state=8, conv=4, **S),)
    assert any("Mamba (assumed)" in note for note in first.notes)
    grouped = sizes_of(NATIVE | {"attn_cfg": {"num_heads": 4}})
    assert grouped.layers[2] == (Full(heads=4, kv_heads=4, head_dim=12, **F),)
    assert any("no convolution" in note for note in grouped.notes)


def test_native_files_without_rotation() -> None:
    """The numbers of a head that are rotated: none said, none, and some."""
    for dims, places in ((None, "none"), (0, "none"), (6, "rope")):
        config = NATIVE | {"attn_cfg": {"num_heads": 4, "d_conv": 3, "rotary_emb_dim": dims}}
        (part,) = from_config(config).layers[2]
        assert ("rope" if part.sizes()["rope"] else part.sizes()["positions"]) == places
        assert any("rotary_emb_dim" in note for note in from_config(config).notes) == (dims is None)


def test_a_native_file_that_gives_channels_to_an_mlp() -> None:
    with pytest.raises(ConfigError, match=r"ssm_cfg\.d_ssm"):
        from_config(NATIVE | {"ssm_cfg": NATIVE["ssm_cfg"] | {"d_ssm": 32}})


def test_hgrn_ratio() -> None:
    """Keys of `expand_ratio` numbers, else hidden_size / num_heads; 64 channels."""
    for ratio, heads, read in ((16, None, (4, 16)), (8, 4, (8, 8)), (None, 4, (4, 16))):
        (part,) = from_config(HGRN2_FILE | {"expand_ratio": ratio, "num_heads": heads}).layers[0]
        assert (part.sizes()["heads"], part.sizes()["head_dim"]) == read
    with pytest.raises(UnknownSizes, match=r"expand_ratio.*num_heads"):
        from_config(HGRN2_FILE | {"expand_ratio": None})


@each("family", RECURRENT)
def test_assumptions_are_said(family: str) -> None:
    read = from_config(RECURRENT[family])
    parts = {part.name for layer in read for part in layer}
    state = [note for note in read.notes if note.startswith("recurrent state")]
    assert len(state) == (0 if family.startswith("lfm2") else 1)
    assert all("(assumed)" in note for note in state)
    softmax = [
        note
        for note in read.notes
        if note.startswith("softmax accumulators fp32 with a running maximum (assumed)")
    ]
    assert bool(softmax) == bool(parts & {"full", "window", "mla"})
    assert len(set(read.notes)) == len(read.notes)


def test_the_rank_of_the_step_size() -> None:
    # a 16th of the model width, as transformers' "auto", is what a mixer takes by itself
    sixteenth = -(-MAMBA["hidden_size"] // 16)
    for rank, read in (("auto", None), (sixteenth, None), (7, 7)):
        (layer,) = set(sizes_of(MAMBA | {"time_step_rank": rank}).layers)
        assert layer == (Mamba(width=64, state=8, conv=4, rank=read, **S),)
    (layer,) = {
        p for ps in sizes_of(JAMBA | {"mamba_dt_rank": 5}).layers for p in ps if p.symbol == "b"
    }
    assert layer.sizes()["rank"] == 5
    with pytest.raises(ConfigError, match="'time_step_rank' is 0"):
        sizes_of(MAMBA | {"time_step_rank": 0})


def test_a_mamba_2_says_its_width_by_heads_alone() -> None:
    """transformers' Mamba2Config raises unless hidden_size x expand is num_heads x head_dim: where
    `hidden_size` is left out, heads and their width say all that a state holds.
    """
    whole = MAMBA2 | {"hidden_size": 48, "expand": 2, "num_heads": 6, "head_dim": 16}
    silent = {key: value for key, value in whole.items() if key != "hidden_size"}
    assert from_config(silent).layers == from_config(whole).layers
    assert from_config(silent).uncounted.startswith("'hidden_size' is missing")
    with pytest.raises(ConfigError, match="6 x 16"):
        from_config(whole | {"hidden_size": 40})
