"""Files of recurrent families that cannot be read without guessing: one line that names the
file, the field and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.each import each
from support.hf_recurrent_configs import (
    BAMBA,
    DELTA_NET,
    FALCON_H1,
    FALCON_MAMBA,
    FLA_KDA,
    GATED_DELTANET,
    GLA,
    GRANITE,
    HGRN2,
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
    SAMBA,
    XLSTM,
    ZAMBA,
    ZAMBA2,
)

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.settings import Settings

Config = dict[str, Any]


def refusal(config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        from_config(config, "file")
    message = str(caught.value)
    assert message.startswith("file: ")
    assert "\n" not in message
    assert len(message) < 900
    return message


def refusals(config: Config, name: str, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What is said of the file with a field of each value, after the value as it stands in a
    failure. One test for all: there are hundreds.
    """
    for value in values:
        try:
            message = refusal(config | {name: value})
        except BaseException as error:  # what pytest raises is no Exception
            error.add_note(f"{name} = {value!r}")
            raise
        yield f"{name} = {value!r}", message


def without(config: Config, *names: str) -> Config:
    return {key: value for key, value in config.items() if key not in names}


def inner(config: Config, section: str, **changes: Any) -> Config:
    """The file with fields of a section changed, or removed if None."""
    changed = {**config[section], **changes}
    return {**config, section: {key: value for key, value in changed.items() if value is not None}}


ATTENTION = {"num_attention_heads": "full.heads", "num_key_value_heads": "full.kv_heads"}
MIXED = {
    "mamba_n_heads": "mamba2.heads",
    "mamba_d_state": "mamba2.state",
    "mamba_n_groups": "mamba2.groups",
    "mamba_d_conv": "mamba2.conv",
}
NEEDED: dict[str, dict[str, str]] = {
    "kimi_linear": {
        "num_attention_heads": "mla.heads",
        "kv_lora_rank": "mla.latent",
        "qk_nope_head_dim": "mla.head_dim",
    }
    | {"qk_rope_head_dim": "mla.rope_dim", "v_head_dim": "mla.value_dim"},
    "olmo_hybrid": {
        "num_attention_heads": "full.heads",
        "linear_conv_kernel_dim": "gdn.conv",
        "hidden_size": "full.head_dim",
    },
    "minimax_text_01": {**ATTENTION, "head_dim": "lightning.head_dim"},
    "jamba": {
        **ATTENTION,
        "hidden_size": "mamba.width",
        "mamba_d_state": "mamba.state",
        "mamba_d_conv": "mamba.conv",
    },
    "bamba": {**ATTENTION, **MIXED, "hidden_size": "full.head_dim"},
    "granitemoehybrid": {**ATTENTION, **MIXED, "hidden_size": "full.head_dim"},
    "falcon_h1": {**ATTENTION, **MIXED},
    "mamba": {
        "hidden_size": "mamba.width",
        "state_size": "mamba.state",
        "conv_kernel": "mamba.conv",
    },
    "falcon_mamba": {
        "intermediate_size": "mamba.width",
        "state_size": "mamba.state",
        "conv_kernel": "mamba.conv",
    },
    "mamba2": {
        "state_size": "mamba2.state",
        "n_groups": "mamba2.groups",
        "conv_kernel": "mamba2.conv",
    },
    "zamba": {
        **ATTENTION,
        "hidden_size": "mamba.width",
        "mamba_d_state": "mamba.state",
        "mamba_d_conv": "mamba.conv",
    },
    "zamba2": {**ATTENTION, "hidden_size": "mamba2.heads", "mamba_ngroups": "mamba2.groups"},
    "lfm2": {**ATTENTION, "hidden_size": "shortconv.width", "conv_L_cache": "shortconv.conv"},
    "hymba": {
        **ATTENTION,
        "hidden_size": "mamba.width",
        "sliding_window": "window.size",
        "mamba_d_state": "mamba.state",
    },
    "rwkv": {"hidden_size": "rwkv4.hidden"},
    "xlstm": {"num_heads": "mlstm.heads", "hidden_size": "mlstm.head_dim"},
    "gla": {"num_heads": "gla.heads", "hidden_size": "gla.head_dim"},
    "delta_net": {
        "num_heads": "deltanet.heads",
        "hidden_size": "deltanet.value_dim",
        "conv_size": "deltanet.conv",
    },
    "gated_deltanet": {
        "num_heads": "gdn.key_heads",
        "head_dim": "gdn.head_dim",
        "hidden_size": "full.head_dim",
        "conv_size": "gdn.conv",
    },
    "gated_deltaproduct": {
        "num_householder": "deltaproduct.householders",
        "head_dim": "deltaproduct.head_dim",
    },
    "hgrn2": {"hidden_size": "hgrn2.heads", "expand_ratio": "hgrn2.head_dim"},
    "linear_attn": {"num_heads": "linear.heads", "hidden_size": "linear.head_dim"},
    "rwkv6": {"num_heads": "rwkv.heads", "hidden_size": "rwkv.width"},
    "rwkv7": {"head_dim": "rwkv.head_dim", "hidden_size": "rwkv.width"},
    "samba": {"hidden_size": "mamba.width", "state_size": "mamba.state"},
    "log_linear_mamba2": {"state_size": "loglinear.head_dim", "n_groups": "loglinear.key_heads"},
    "mamba_ssm": {"d_model": "mamba2.heads"},
}
SIZES = [(family, name, size) for family, names in NEEDED.items() for name, size in names.items()]


@each("family, name, size", SIZES)
def test_a_missing_size_is_named_with_the_setting_that_supplies_it(
    family: str, name: str, size: str
) -> None:
    for config in (without(RECURRENT[family], name), RECURRENT[family] | {name: None}):
        with pytest.raises(UnknownSizes) as caught:
            from_config(config, "file")
        assert name in str(caught.value)
        assert "is missing" in str(caught.value)
        assert f"--set {size}=" in str(caught.value)
        assert size in caught.value.outline.missing
        assert len(caught.value.outline) == len(from_config(RECURRENT[family]))


@each("family, name, size", SIZES)
def test_a_size_that_is_none_is_named(family: str, name: str, size: str) -> None:
    none = [] if name == "qk_rope_head_dim" else [0]  # latent attention may do without rotated keys
    for case, message in refusals(
        RECURRENT[family],
        name,
        [*none, -1, 10**9 + 1, 10**30, True, 2.0, float("inf"), "4", [4], {"a": 1}],
    ):
        assert f"'{name}' is " in message, case
        assert "integer" in message, case


def test_zero_rotated_keys_are_read() -> None:
    assert from_config(KIMI | {"qk_rope_head_dim": 0}).cache(10)["kv"].total == 10 * 2 * 40 * 16


FACTORS = [
    *(
        (family, "mamba_expand")
        for family in ("jamba", "bamba", "granitemoehybrid", "zamba", "hymba")
    ),
    *((family, "expand") for family in ("mamba", "mamba2", "samba", "log_linear_mamba2")),
    *(
        (family, name)
        for family in ("gla", "retnet", "delta_net", "linear_attn", "rwkv6")
        for name in ("expand_k", "expand_v")
    ),
    *(
        ("gated_deltanet", "expand_v"),
        ("kda", "expand_v"),
        ("xlstm", "qk_dim_factor"),
        ("xlstm", "v_dim_factor"),
    ),
    ("zamba2", "expansion_factor"),
]


@each("family, name", FACTORS)
def test_a_factor_that_is_none_is_named(family: str, name: str) -> None:
    values = [
        0,
        -1,
        -0.5,
        10**30,
        1e300,
        True,
        "2",
        [2],
        {},
        float("inf"),
        float("nan"),
        0.01234567,
    ]
    for case, message in refusals(RECURRENT[family], name, values):
        assert f"'{name}' is " in message, case


@each(
    "family, name",
    [item for item in FACTORS if item[0] not in ("bamba", "granitemoehybrid", "mamba2")],
)
def test_a_missing_factor_is_not_guessed(family: str, name: str) -> None:
    if family == "log_linear_mamba2":
        pytest.skip("heads and head dimension say as much")
    with pytest.raises(UnknownSizes, match=f"{name}' is missing|looked for {name}"):
        from_config(without(RECURRENT[family], name))


@each(
    "section, name, family, size",
    [
        ("linear_attn_config", "head_dim", "kimi_linear", "kda.head_dim"),
        ("linear_attn_config", "num_heads", "kimi_linear", "kda.heads"),
        ("linear_attn_config", "short_conv_kernel_size", "kimi_linear", "kda.conv"),
        ("ssm_cfg", "d_state", "mamba_ssm", "mamba2.state"),
        ("ssm_cfg", "headdim", "mamba_ssm", "mamba2.head_dim"),
        ("ssm_cfg", "ngroups", "mamba_ssm", "mamba2.groups"),
        ("ssm_cfg", "expand", "mamba_ssm", "mamba2.heads"),
        ("ssm_cfg", "d_conv", "mamba_ssm", "mamba2.conv"),
        ("attn_cfg", "num_heads", "mamba_ssm", "full.heads"),
        ("attn", "num_heads", "samba", "window.heads"),
    ],
)
def test_sizes_inside_a_section(section: str, name: str, family: str, size: str) -> None:
    config = RECURRENT[family]
    with pytest.raises(UnknownSizes, match=rf"'{section}\.{name}' is missing") as caught:
        from_config(inner(config, section, **{name: None}))
    assert size in caught.value.outline.missing
    for value in (0, -1, "4", True, [4], 10**30):
        assert f"'{section}.{name}' is " in refusal(inner(config, section, **{name: value}))


@each("config, section", [(KIMI, "linear_attn_config"), (NATIVE, "ssm_cfg"), (NATIVE, "attn_cfg")])
@each("value", [3, "text", [1], True])
def test_sections_that_are_no_objects(config: Config, section: str, value: Any) -> None:
    message = refusal(config | {section: value})
    assert f"'{section}' is " in message
    assert "object" in message


@each(
    "config, expected",
    [
        (
            without(KIMI, "linear_attn_config") | {"linear_head_dim": 4},
            "'linear_head_dim'",
        ),
        (without(MINIMAX, "attn_type_list"), "attn_type_list"),
        (without(PORTED, "layer_types"), "layer_types"),
        (without(JAMBA, "attn_layer_period"), "'mamba_d_state'"),
        (without(JAMBA, "attn_layer_offset"), "'attn_layer_offset' is missing"),
        (without(BAMBA, "attn_layer_indices"), "'mamba_n_heads'"),
        (without(GRANITE, "layer_types"), "'mamba_n_heads'"),
        (without(ZAMBA, "attn_layer_period"), "'mamba_d_state'"),
        (without(ZAMBA, "attn_layer_offset"), "'attn_layer_offset' is missing"),
        (without(ZAMBA2, "layers_block_type"), "'mamba_headdim'"),
        (without(LFM2, "layer_types"), "full_attn_idxs"),
        (without(HYMBA, "global_attn_idx"), "'mamba_expand'"),
        (without(SAMBA, "attn"), "looked for 'attn'"),
        (inner(RETNET, "attn", layers=None), "'attn.layers' is missing"),
    ],
)
def test_a_missing_pattern_is_not_guessed(config: Config, expected: str) -> None:
    assert expected in refusal(config)


@each(
    "config, expected",
    [
        (MINIMAX | {"attn_type_list": [0, 1, 0, 0]}, "'attn_type_list' has 4 entries"),
        (MINIMAX | {"attn_type_list": [0, 1, 0, 0, 1, 1]}, "'attn_type_list' has 6 entries"),
        (MINIMAX | {"attn_type_list": []}, "'attn_type_list' has 0 entries"),
        (PORTED | {"layer_types": ["linear_attention"] * 4}, "'layer_types' has 4 entries"),
        (GRANITE | {"layer_types": ["mamba"] * 5}, "'layer_types' has 5 entries"),
        (ZAMBA2 | {"layers_block_type": ["mamba"] * 3}, "'layers_block_type' has 3 entries"),
        (LFM2 | {"layer_types": ["conv"] * 6}, "'layer_types' has 6 entries"),
        (OLMO | {"layer_types": ["full_attention"] * 6}, "'layer_types' has 6 entries"),
        (HYMBA | {"layer_type": ["h"] * 5}, "'layer_type' has 5 entries"),
        (RWKV7 | {"value_dim": [64] * 3}, "'value_dim' has 3 entries"),
        (BAMBA | {"attn_layer_indices": list(range(7))}, "'attn_layer_indices' has 7 entries"),
        (RETNET | {"attn": [{"layers": [0], "num_heads": 4}] * 5}, "'attn' has 5 entries"),
        (
            inner(KIMI, "linear_attn_config", full_attn_layers=[3]),
            "must name each",
        ),
        (
            inner(KIMI, "linear_attn_config", full_attn_layers=[3, 6]),
            "names layer 6",
        ),
        (KIMI | {"num_hidden_layers": 6}, "each of the 6"),
    ],
)
def test_lists_of_the_wrong_length(config: Config, expected: str) -> None:
    assert expected in refusal(config)


@each(
    "config, expected",
    [
        (MINIMAX | {"attn_type_list": [0, 1, 0, 0, 2]}, "entry 5 of 'attn_type_list' is 2"),
        (MINIMAX | {"attn_type_list": [0, True, 0, 0, 1]}, "entry 2 of 'attn_type_list'"),
        (MINIMAX | {"attn_type_list": [0, 1.0, 0, 0, 1]}, "entry 2 of 'attn_type_list' is 1.0"),
        (
            MINIMAX | {"attn_type_list": ["0", "1", "0", "0", "1"]},
            "entry 1 of 'attn_type_list' is '0'",
        ),
        (MINIMAX | {"attn_type_list": 5}, "'attn_type_list' is 5"),
        (PORTED | {"layer_types": ["linear"] * 5}, "1 of 'layer_types' is 'linear'"),
        (
            GRANITE | {"layer_types": ["mamba", "mamba2", "attention", "mamba"]},
            "entry 2 of 'layer_types' is 'mamba2'",
        ),
        (
            GRANITE | {"layer_types": ["mamba", "sliding_attention", "attention", "mamba"]},
            "entry 2 of 'layer_types'",
        ),
        (
            ZAMBA2 | {"layers_block_type": ["mamba", "attention", "mamba", "hybrid"]},
            "2 of 'layers_block_type' is 'attention'",
        ),
        (
            LFM2 | {"layer_types": ["conv", "linear_attention", "conv", "conv", "conv"]},
            "entry 2 of 'layer_types' is 'linear_attention'",
        ),
        (
            FALCON_H1 | {"layer_types": ["hybrid", "mamba", "hybrid"]},
            "2 of 'layer_types' is 'mamba'",
        ),
        (HYMBA | {"layer_type": ["h", "m", "h", "h"]}, "2 of 'layer_type' is 'm'"),
        (
            MAMBA | {"layer_types": ["linear_attention", "full_attention", "linear_attention"]},
            "entry 2 of 'layer_types' is 'full_attention'",
        ),
        (inner(NATIVE, "ssm_cfg", layer="Mamba3"), "'ssm_cfg.layer' is 'Mamba3'"),
        (inner(NATIVE, "ssm_cfg", layer=2), "'ssm_cfg.layer' is 2"),
        (inner(NATIVE, "ssm_cfg", layer=["Mamba2"]), "'ssm_cfg.layer' is ['Mamba2']"),
        (LINEAR | {"feature_map": "hedgehog"}, "'feature_map' is 'hedgehog'"),
        (LINEAR | {"feature_map": ["elu"]}, "'feature_map' is ['elu']"),
        (without(LINEAR, "feature_map"), "'feature_map' is None"),
        (without(LINEAR, "norm_feature_map"), "'norm_feature_map' is missing"),
        (GLA | {"use_short_conv": 1}, "'use_short_conv' is 1"),
        (GLA | {"attn": 3}, "'attn' is 3"),
        (GLA | {"attn": "full"}, "'attn' is 'full'"),
        (GLA | {"attn": [3]}, "'attn[0]' is 3"),
        (GLA | {"attn": [{"layers": [1], "num_heads": 4}, None]}, "'attn[1].layers' is missing"),
    ],
)
def test_values_outside_the_vocabulary(config: Config, expected: str) -> None:
    assert expected in refusal(config)


INDEXED = [
    (BAMBA, "attn_layer_indices"),
    (without(LFM2, "layer_types"), "full_attn_idxs"),
    (HYMBA, "global_attn_idx"),
    (NATIVE, "attn_layer_idx"),
]


@each("config, name", INDEXED)
@each(
    "value, expected",
    [
        ([-1], "names layer -1"),
        ([2, 99], "names layer 99"),
        ([10**40], "names layer 1000000"),
        ([1, 1], "names layer 1 twice"),
        ([1.0], "is 1.0"),
        ([True], "be a layer number"),
        (["1"], "is '1'"),
        ([[1]], "is [1]"),
        ("1", "must be a list"),
        (3, "must be a list"),
        ({"1": 1}, "must be a list"),
    ],
)
def test_indices_that_are_no_layers(config: Config, name: str, value: Any, expected: str) -> None:
    message = refusal(config | {name: value})
    assert f"'{name}'" in message
    assert expected in message


@each("config, name", INDEXED)
def test_families_that_number_from_zero_refuse_the_number_of_layers(
    config: Config, name: str
) -> None:
    layers = config.get("num_hidden_layers") or config["n_layer"]
    assert f"layers 0 to {layers - 1}" in refusal(config | {name: [1, layers]})


@each(
    "changes, expected",
    [
        ({"full_attn_layers": [2, 3], "kda_layers": None}, "from 0 or from 1"),
        ({"full_attn_layers": [0, 5], "kda_layers": None}, "numbers than layers"),
        ({"full_attn_layers": None, "kda_layers": [2]}, "from 0 or from 1"),
        ({"full_attn_layers": [3, 6], "kda_layers": None}, "from 0 or from 1"),
        ({"full_attn_layers": [3, 5], "kda_layers": [1, 2, 3]}, "must name each"),
        ({"full_attn_layers": [3, 3], "kda_layers": [1, 2, 4]}, "names layer 3 twice"),
        ({"full_attn_layers": "3,5", "kda_layers": [1, 2, 4]}, "must be a list"),
        ({"full_attn_layers": [2, 4, 6], "kda_layers": [3, 5]}, "names layer 6"),
    ],
)
def test_kimi_lists_that_do_not_fit(changes: Config, expected: str) -> None:
    assert expected in refusal(inner(KIMI, "linear_attn_config", **changes))


@each(
    "config, expected",
    [
        (
            JAMBA | {"attn_layer_offset": 3},
            "'attn_layer_offset' is 3",
        ),
        (JAMBA | {"attn_layer_offset": -1}, "'attn_layer_offset' is -1"),
        (JAMBA | {"attn_layer_period": 0}, "'attn_layer_period' is 0"),
        (
            JAMBA | {"num_attention_heads": 6},
            (
                "'num_key_value_heads' is 2"
                if 6 % 2
                else "hidden_size / num_attention_heads is 64 / 6"
            ),
        ),
        (JAMBA | {"num_key_value_heads": 3}, "'num_key_value_heads' is 3"),
        (JAMBA | {"sliding_window": 32}, "'sliding_window' is 32"),
        (
            JAMBA | {"layer_types": ["mamba"] * 7, "layers_block_type": ["attention"] * 7},
            "layers and disagree",
        ),
        (BAMBA | {"layer_types": ["mamba"] * 6}, "disagree"),
        (
            BAMBA | {"mamba_d_head": 31},
            "'mamba_n_heads' x 'mamba_d_head' is 6 x 31",
        ),
        (BAMBA | {"mamba_d_head": "automatic"}, "'mamba_d_head' is 'automatic'"),
        (
            without(BAMBA, "mamba_d_head") | {"mamba_n_heads": 5, "mamba_n_groups": 1},
            "is 192 / 5",
        ),
        (
            BAMBA | {"mamba_n_groups": 4},
            "'mamba_n_groups' is 4",
        ),
        (FALCON_H1 | {"mamba_d_ssm": 190}, "the recurrence has 190"),
        (MAMBA2 | {"num_heads": 5}, "the recurrence has 96"),
        (MAMBA2 | {"n_groups": 4}, "is 4"),
        (ZAMBA2 | {"mamba_headdim": 17}, "is 96 / 17"),
        (ZAMBA2 | {"mamba_ngroups": 4}, "is 4"),
        (
            ZAMBA2 | {"mamba_d_state": 25},
            "'mamba_d_state' is 25 and 'state_size' is 24",
        ),
        (OLMO | {"linear_num_key_heads": 3}, "'linear_num_key_heads' is 3"),
        (XLSTM | {"hidden_size": 96}, "only multiples of 64"),
        (XLSTM | {"num_heads": 3}, "is 64 / 3"),
        (
            XLSTM | {"num_hidden_layers": 4},
            "'num_hidden_layers' is 4 and 'num_blocks' is 3",
        ),
        (XLSTM | {"inference_state_dtype": "fp8"}, "'inference_state_dtype' is 'fp8'"),
        (HYMBA | {"num_attention_heads": 6}, "hidden_size / num_attention_heads is 64 / 6"),
        (GLA | {"num_heads": 3}, "is 32 / 3"),
        (
            GLA | {"num_heads": 3, "expand_k": 0.75},
            "hidden_size x expand_v / num_heads is 64 / 3",
        ),
        (DELTA_NET | {"num_kv_heads": 1}, "'num_kv_heads' is 1, but 'use_short_conv'"),
        (GATED_DELTANET | {"num_v_heads": 3}, "'num_v_heads' = 3"),
        (FLA_KDA | {"expand_v": 0.3}, "'expand_v' is 0.3, which times 12"),
        (HGRN2 | {"expand_ratio": 15}, "hidden_size / expand_ratio is 64 / 15"),
        (RWKV6 | {"num_heads": 5}, "is 32 / 5"),
        (RWKV7 | {"num_heads": 5}, "'num_heads' is 5, but hidden_size / head_dim is 4"),
        (RWKV7 | {"value_dim": [64, 64, "64", 64]}, "entry 3 of 'value_dim' is '64'"),
        (RWKV7 | {"value_dim": [64, 0, 64, 64]}, "'value_dim' is 0"),
        (RWKV7 | {"value_dim": 66}, "value_dim / num_heads is 66 / 4"),
        (
            RETNET | {"attn": {"layers": [1, 3], "num_heads": 5}},
            "hidden_size / attn.num_heads is 64 / 5",
        ),
        (
            RETNET | {"attn": {"layers": [4], "num_heads": 4}},
            "'attn.layers' names layer 4",
        ),
        (
            RETNET | {"attn": {"layers": [1], "num_heads": 4, "num_kv_heads": 3}},
            "'attn.num_kv_heads' is 3",
        ),
        (
            RETNET | {"attn": {"layers": [1], "num_heads": 4, "window_size": 0}},
            "'attn.window_size' is 0",
        ),
        (
            RETNET
            | {"attn": [{"layers": [1], "num_heads": 4}, {"layers": [0, 1], "num_heads": 4}]},
            "'attn[0]' and 'attn[1]'",
        ),
        (inner(NATIVE, "attn_cfg", num_heads_kv=3), "'attn_cfg.num_heads_kv' is 3"),
        (inner(NATIVE, "ssm_cfg", headdim=17), "is 96 / 17"),
        (inner(NATIVE, "ssm_cfg", d_ssm=48), "'ssm_cfg.d_ssm'"),
        (RWKV | {"attention_hidden_size": -1}, "'attention_hidden_size' is -1"),
        (KIMI | {"layer_types": ["full_attention"] * 5}, "layers and disagree"),
        (KIMI | {"linear_num_heads": 4}, "thing and disagree"),
    ],
)
def test_contradictions(config: Config, expected: str) -> None:
    assert expected in refusal(config)


def test_phi4flash_is_refused_with_the_reason() -> None:
    message = refusal(
        {
            "model_type": "phi4flash",
            "num_hidden_layers": 32,
            "mamba_d_state": 16,
            "sliding_window": 512,
        }
    )
    assert "states across layers" in message


@each("family", RECURRENT)
def test_a_missing_dtype_is_assumed_and_an_unknown_one_named(family: str) -> None:
    config = RECURRENT[family]
    silent = without(config, "dtype", "torch_dtype")
    if "text_config" in silent:
        silent["text_config"] = without(silent["text_config"], "dtype", "torch_dtype")
    assert any("bf16 (assumed)" in note for note in from_config(silent).notes)
    for value in ("auto", 16, ["bfloat16"]):
        assert "'torch_dtype' is" in refusal(silent | {"torch_dtype": value})
    assert (
        from_config(silent, settings=Settings.parse(["dtype=bf16"])).layers
        == from_config(config).layers
    )


@each("family", RECURRENT)
def test_a_missing_depth_is_named(family: str) -> None:
    config = RECURRENT[family]
    if family == "nemotron_h":
        # transformers takes the depth from the list, and no longer saves it
        assert from_config(without(config, "num_hidden_layers")) == from_config(config)
        return
    names = ("num_hidden_layers", "num_blocks", "n_layer")
    silent = without(config, *names)
    if "text_config" in silent:
        silent["text_config"] = without(silent["text_config"], *names)
    message = refusal(silent)
    assert "is missing" in message
    assert "'num_hidden_layers'" in message or family == "mamba_ssm"


@each("family", RECURRENT)
def test_an_absurd_depth_is_named(family: str) -> None:
    if "text_config" in RECURRENT[family]:
        pytest.skip("the same reader without nesting")
    name = next(
        name for name in ("num_hidden_layers", "num_blocks", "n_layer") if name in RECURRENT[family]
    )
    for case, message in refusals(
        RECURRENT[family], name, [0, -1, 10_001, 10**30, 2.0, "3", True, [3]]
    ):
        assert f"'{name}' is " in message, case


def test_falcon_mamba_without_a_width_does_not_take_expand() -> None:
    with pytest.raises(UnknownSizes, match="intermediate_size"):
        from_config(without(FALCON_MAMBA, "intermediate_size"))


def test_falcon_h1_without_a_width_does_not_take_expand() -> None:
    with pytest.raises(UnknownSizes, match="mamba_d_ssm"):
        from_config(without(FALCON_H1, "mamba_d_ssm", "mamba_d_head"))
