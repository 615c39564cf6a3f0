"""What files say of positions, in each spelling; what a model class fixes; and what is refused.

Numbers by hand: llama's heads have 96 / 6 = 16 numbers, those of the others 20.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import (
    AFM,
    COHERE2,
    DEEPSEEK,
    DEEPSEEK_INDEXED,
    DEEPSEEK_V4,
    EXAONE,
    FALCON,
    GPT2,
    LLAMA,
    MIMO,
    MISTRAL,
    SMALLTHINKER,
    STEP,
)
from support.hf_configs import NEMOTRON, SHARED
from support.hf_recurrent_configs import GATED_DELTANET, GRANITE, NATIVE, OLMO, ZAMBA2

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config, read_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.tasks import Eva
from separatrix.theory import judge

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
PHI_3 = {"model_type": "phi3", "rope_theta": 100}
YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}


def places(config: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of every attention layer: base, rotated numbers (None: all) and scaling; or, where it does
    not rotate, where its places come from.
    """
    found = [part.sizes() for layer in from_config(config) for part in layer]
    return [
        tuple(sizes[name] for name in ("rope_base", "rope_dim", "rope_scaling"))
        if sizes["rope"]
        else (sizes["positions"],)
        for sizes in found
        if "rope" in sizes
    ]


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def one(config: dict[str, Any]) -> tuple[Any, ...]:
    """The same, of a file whose attention layers are all alike."""
    (same,) = set(places(config))
    return same


@each(
    "said, expected",
    [
        ({"rope_theta": 500000.0}, (500_000, None, None)),
        ({"rotary_emb_base": 25000}, (25_000, None, None)),
        ({"rope_parameters": {"rope_theta": 7e5, "rope_type": "default"}}, (700_000, None, None)),
        ({"rope_theta": 7.0, "rope_parameters": {"rope_theta": 7}}, (7, None, None)),
        ({**PHI_3, "partial_rotary_factor": 0.5}, (100, 8, None)),
        ({**PHI_3, "model_type": "stablelm", "rotary_pct": 0.25}, (100, 4, None)),
        ({"rope_theta": 100, "rotary_dim": 6}, (100, 6, None)),
        ({"rope_theta": 100, "rotary_dim": 16}, (100, None, None)),
        (
            {**PHI_3, "rope_parameters": {"rope_theta": 100, "partial_rotary_factor": 0.25}},
            (100, 4, None),
        ),
        # Llama's class rotates whole heads, but for a scaling, which reads the part in every class
        ({"rope_theta": 100, "partial_rotary_factor": 0.5}, ("unknown",)),
        ({"rope_theta": 100, "partial_rotary_factor": 1.0}, (100, None, None)),
        ({"rope_theta": 100, "rotary_pct": 0.5, "rope_scaling": LLAMA3}, ("unknown",)),
        ({**PHI_3, "rotary_pct": 0.5}, ("unknown",)),
        (
            {"rope_theta": 100, "partial_rotary_factor": 0.5, "rope_scaling": LLAMA3},
            (100, 8, "llama3_8_1_4_8192"),
        ),
        ({"rope_theta": 100, "rope_scaling": LLAMA3}, (100, None, "llama3_8_1_4_8192")),
        ({"rope_theta": 100, "rope_scaling": YARN}, (100, None, "yarn_40_32_1_4096")),
        (
            {"rope_theta": 100, "rope_scaling": YARN | {"truncate": False, "beta_fast": 16.0}},
            (100, None, "yarnexact_40_16_1_4096"),
        ),
        (
            {"rope_theta": 100, "rope_scaling": {"type": "linear", "factor": 4.0}},
            (100, None, "linear_4"),
        ),
        ({"rope_theta": 100, "rope_scaling": {"type": "linear", "factor": 1}}, (100, None, None)),
        (
            {"rope_theta": 100, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}},
            (100, None, None),
        ),
        ({"rope_theta": 100, "rope_scaling": {"type": "dynamic", "factor": 4}}, ("unknown",)),
        ({"rope_theta": 100, "rope_scaling": {"type": "linear", "factor": 2.5}}, ("unknown",)),
        ({"rope_theta": 10000.5}, ("unknown",)),
        ({}, (10_000, None, None)),
    ],
)
def test_spellings(said: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert one(LLAMA | said) == expected


def test_what_is_assumed_or_unknown_is_said() -> None:
    assert "base 10,000 (assumed)" in from_config(LLAMA).notes[-1]
    assert not any("rotation" in note for note in from_config(LLAMA | {"rope_theta": 9}).notes)
    scaled = LLAMA | {"rope_theta": 9, "rope_scaling": {"type": "longrope", "factor": 4}}
    assert from_config(scaled).notes[-1].startswith("positions: the file")
    assert "'rope_scaling.type' is 'longrope'" in from_config(scaled).notes[-1]
    stranger = LLAMA | {"model_type": "stranger"}
    assert one(stranger) == ("unknown",)
    assert any("'rope_theta'" in note for note in from_config(stranger).notes)
    assert one(stranger | {"rope_theta": 99}) == (99, None, None)
    assert any("not known" in note for note in from_config(stranger | {"rope_theta": 99}).notes)
    assert one(stranger | {"position_embedding_type": "alibi"}) == ("alibi",)
    assert one(stranger | {"position_embedding_type": "relative_key"}) == ("unknown",)


def test_layers_without_rotation() -> None:
    """1 in a list is a layer that rotates; without a list, Llama 4 and SmolLM3 leave out every
    fourth.
    """
    turned = (9, None, None)
    base = LLAMA | {"rope_theta": 9}
    assert places(base | {"rope_layout": [0, 1, 1, 0, 1, 0]}) == [
        ("none",), turned, turned, ("none",), turned, ("none",)
    ]  # fmt: skip
    smol = base | {"model_type": "smollm3"}
    assert places(smol | {"no_rope_layers": [1, 1, 1, 1, 1, 0]}) == [turned] * 5 + [("none",)]
    assert places(smol | {"no_rope_layer_interval": 2}) == [turned, ("none",)] * 3
    assert places(smol) == [*[turned] * 3, ("none",), turned, turned]
    assert any("4th layer without rotation" in note for note in from_config(smol).notes)


def test_kinds_of_layers_have_rotations_of_their_own() -> None:
    gemma = LLAMA | {"head_dim": 16, "num_key_value_heads": 3, "sliding_window": 11}
    gemma |= {"layer_types": ["sliding_attention", "full_attention"] * 3}
    third = gemma | {"model_type": "gemma3_text", "rope_theta": 1000, "rope_local_base_freq": 10}
    third |= {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    assert places(third) == [(10, None, None), (1000, None, "linear_8")] * 3
    own = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10},
        "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1000},
    }
    assert places(gemma | {"model_type": "gemma3_text", "rope_parameters": own}) == places(third)
    # scalings of other classes hold in all layers
    assert (
        places(gemma | {"model_type": "gpt_oss", "rope_theta": 9, "rope_scaling": YARN})
        == [(9, None, "yarn_40_32_1_4096")] * 6
    )
    # 3 pairs of 14 are at most a quarter of 28 numbers
    proportional = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 9}
    assert one(LLAMA | {"head_dim": 28, "rope_parameters": proportional}) == (
        9,
        6,
        "proportional_28",
    )


@each(
    "said, main, compressed",
    [
        ({"rope_theta": 7, "compress_rope_theta": 9}, 7, 9),
        # of an object for all layers the class takes the scaling, and no base
        ({"rope_parameters": YARN | {"rope_theta": 7}, "rope_theta": 7}, 7, 160_000),
        (
            {"rope_scaling": YARN | {"rope_theta": 7}, "rope_theta": 7, "compress_rope_theta": 9},
            *(7, 9),
        ),
        ({"rope_parameters": YARN | {"rope_theta": 7}, "compress_rope_theta": 9}, None, 9),
        ({"rope_parameters": YARN | {"rope_theta": 10_000}}, 10_000, 160_000),
        # and where both kinds have objects, `rope_theta` stands for a base that one lacks
        (
            {
                "rope_parameters": {"main": {"rope_theta": 5}, "compress": YARN},
                **{"rope_theta": 7, "compress_rope_theta": 9},
            },
            *(5, 7),
        ),
    ],
)
def test_bases_of_deepseek_v4(said: dict[str, Any], main: int | None, compressed: int) -> None:
    """As transformers' `DeepseekV4Config` makes `rope_parameters` of them; None: what only its
    class would pass over is not read.
    """
    read = from_config(DEEPSEEK_V4 | {"qk_rope_head_dim": 8} | said)
    bases = {part.name: (part.sizes()["rope"], part.sizes()["rope_base"]) for (part,) in read}
    assert bases["compressed"] == (True, compressed)
    assert bases["window"] == ((True, main) if main else (False, 10_000))
    assert main or any("reads 'rope_theta' beside it" in note for note in read.notes)


def test_per_layer_lists_of_step() -> None:
    # the lists go on with a layer for multi-token prediction, which is not part of the stack
    full = [kind == "full_attention" for kind in STEP["layer_types"]]
    file = STEP | {
        "rope_theta": [50 if f else 10 for f in full],
        "partial_rotary_factors": [0.5 if f else 1.0 for f in full],
        "rope_scaling": LLAMA3,
        "yarn_only_types": ["full_attention"],
    }
    own = [(50, 10, "llama3_8_1_4_8192") if f else (10, None, None) for f in full]
    assert places(file) == own[: STEP["num_hidden_layers"]]


def test_classes_that_rotate_in_their_windows_alone() -> None:
    for config in (COHERE2, EXAONE, AFM):
        found = from_config(config | {"rope_theta": 9})
        assert {part.name: part.sizes()["rope"] for layer in found for part in layer} == {
            "window": True,
            "full": False,
        }
    everywhere = without(EXAONE, "sliding_window") | {"rope_theta": 9}
    assert one(everywhere) == (9, None, None)


@each(
    "config, expected",
    [
        (GPT2, ("embedded",)),
        (GPT2 | {"model_type": "gptj", "n_embd": 512, "rotary_dim": 32}, (10_000, 32, None)),
        (GPT2 | {"model_type": "bloom"}, ("alibi",)),
        (GPT2 | {"model_type": "mpt"}, ("alibi",)),
        (GPT2 | {"model_type": "mpt", "attn_config": {"alibi": False}}, ("unknown",)),
        (FALCON | {"alibi": True}, ("alibi",)),
        (FALCON | {"alibi": False, "rope_theta": 9}, (9, None, None)),
        (NEMOTRON | {"rope_theta": 9}, ("none",)),
        (GRANITE | {"rope_theta": 9, "position_embedding_type": "nope"}, ("none",)),
        (GRANITE | {"rope_theta": 9, "position_embedding_type": "rope"}, (9, None, None)),
        (ZAMBA2 | {"rope_theta": 9, "use_mem_rope": True}, (9, None, None)),
        (ZAMBA2 | {"rope_theta": 9}, ("none",)),
        (OLMO | {"rope_parameters": {"rope_type": None}}, ("none",)),
        (OLMO | {"rope_parameters": {"rope_theta": 9}}, (9, None, None)),
        (DEEPSEEK | {"rope_theta": 9, "rope_scaling": YARN}, (9, 8, "yarn_40_32_1_4096")),
        (DEEPSEEK_INDEXED | {"rope_theta": 9}, (9, 8, None)),
        (DEEPSEEK | {"qk_rope_head_dim": 0}, ("none",)),
        (SMALLTHINKER, ("unknown",)),
        (NATIVE | {"attn_cfg": {"num_heads": 4}}, ("none",)),
        (NATIVE | {"attn_cfg": {"num_heads": 4, "rotary_emb_dim": 6}}, (10_000, 6, None)),
    ],
)
def test_what_model_classes_fix(config: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert one(config) == expected


def test_attention_among_layers_of_fla() -> None:
    attn = {"layers": [1], "num_heads": 4, "rope_theta": 77.0}
    hybrid = without(GATED_DELTANET, "attn")
    assert places(hybrid | {"attn": attn}) == [(77, None, None)]
    assert places(hybrid | {"attn": [attn | {"use_rope": False}]}) == [("none",)]


def test_windows_of_mimo_have_a_base_of_their_own() -> None:
    file = MIMO | {"rope_theta": 500, "swa_rope_theta": 10, "partial_rotary_factor": 0.334}
    # 0.334 of 20 and of 22 numbers, rounded down as transformers does: 6.68 and 7.348, so 7 is odd
    with pytest.raises(ConfigError, match="'partial_rotary_factor'"):
        from_config(file)
    assert {base for base, _, _ in places(file | {"partial_rotary_factor": 0.5, "swa_head_dim": 20})
    } == {500, 10}  # fmt: skip


def test_scores_that_are_capped() -> None:
    gemma = LLAMA | {"model_type": "gemma2", "head_dim": 16, "num_key_value_heads": 3}
    gemma |= {"layer_types": ["full_attention"] * 6}

    def caps(config: dict[str, Any]) -> set[int]:
        return {part.sizes()["softcap"] for layer in from_config(config) for part in layer}

    assert caps(gemma | {"attn_logit_softcapping": 30.0}) == {30}
    assert caps(gemma | {"attn_logit_softcapping": None}) == {0}
    assert caps(gemma) == {50}
    assert any("capped at 50 (assumed)" in note for note in from_config(gemma).notes)
    assert caps(LLAMA) == {0}
    # grok-1: 30 tanh(score / 30); no weights make a lead as clear as they like
    grok = LLAMA | {"model_type": "grok-1", "max_attn_value": 30.0}
    assert caps(grok) == {30}
    assert not any(part.free_scores for layer in from_config(grok) for part in layer)
    with pytest.raises(ConfigError, match=r"'attn_logit_softcapping' is 0\.5"):
        from_config(gemma | {"attn_logit_softcapping": 0.5})
    with pytest.raises(ConfigError, match="'attn_logit_softcapping' is there"):
        from_config(DEEPSEEK | {"attn_logit_softcapping": 50})


def test_scores_that_no_weight_makes_larger() -> None:
    """nanochat scales queries and keys to one length without a weight, so that scores stay within
    sqrt(128) = 11.3; DBRX and OLMo clip their numbers at 8. No lead need outweigh n tokens.
    """

    def bounded(config: dict[str, Any]) -> set[bool]:
        return {part.sizes()["bounded"] for layer in from_config(config) for part in layer}

    assert bounded(LLAMA) == bounded(LLAMA | {"clip_qkv": None}) == {False}
    assert bounded(LLAMA | {"model_type": "nanochat"}) == {True}
    assert bounded(LLAMA | {"model_type": "olmo", "clip_qkv": 8.0}) == {True}
    assert bounded(LLAMA | {"attn_config": {"clip_qkv": 8}}) == {True}
    assert judge(from_config(LLAMA), Eva(n=512, V=16))[0].status == "SOLVABLE"
    clipped = from_config(LLAMA | {"model_type": "nanochat"})
    assert judge(clipped, Eva(n=512, V=16))[0].status == "OPEN"


@each(
    "said, error",
    [
        ({"rope_theta": "10000"}, "'rope_theta' is '10000'"),
        ({"rope_theta": -1}, "'rope_theta' is -1"),
        ({"rope_theta": True}, "'rope_theta' is True"),
        ({"rope_theta": float("nan")}, "'rope_theta' is nan"),
        ({"rope_theta": [9] * 5}, "'rope_theta' has 5 entries"),
        ({"partial_rotary_factor": 1.5}, "'partial_rotary_factor' is 1.5"),
        ({"partial_rotary_factor": 0}, "'partial_rotary_factor' is 0"),
        ({"rotary_dim": 18}, "'rotary_dim' rotates 18 of the 16"),
        ({"rotary_dim": 5}, "'rotary_dim' rotates 5 of the 16"),
        (
            {"model_type": "stablelm", "rotary_dim": 4, "rotary_pct": 0.5},
            "'rotary_dim' is 4, but 'rotary_pct'",
        ),
        ({"rope_layout": [1] * 7}, "'rope_layout' has 7"),
        ({"rope_layout": [1, 1, 2, 1, 1, 1]}, "entry 3 of 'rope_layout' is 2"),
        ({"no_rope_layers": 3}, "'no_rope_layers' is 3"),
        ({"no_rope_layer_interval": 0}, "'no_rope_layer_interval' is 0"),
        ({"rope_scaling": 4}, "'rope_scaling' is 4"),
        ({"rope_scaling": {"factor": 4}}, "'rope_scaling.factor' is there without a 'rope_type'"),
        ({"rope_scaling": {"type": 4}}, "'rope_scaling.type' is 4"),
        ({"rope_scaling": {"type": "linear"}}, "'rope_scaling.factor' is missing"),
        ({"rope_scaling": YARN | {"factor": "x"}}, "'rope_scaling.factor' is 'x'"),
        ({"rope_scaling": YARN | {"truncate": 0}}, "'rope_scaling.truncate' is 0"),
        (
            {"rope_scaling": LLAMA3 | {"low_freq_factor": 5}},
            "'rope_scaling.low_freq_factor' is 5",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_theta": "x"}}},
            "'rope_parameters.full_attention.rope_theta' is 'x'",
        ),
        ({"rope_parameters": {"full_attention": 3}}, "'rope_parameters.full_attention' is 3"),
    ],
)
def test_bad_values_are_named(said: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_config(LLAMA | said)
    assert error in str(caught.value)


def test_what_is_set_by_hand_wins() -> None:
    set_by_hand = Settings.parse(["full.rope_base=77", "full.rope_dim=4"])
    (part,) = {layer[0] for layer in from_config(LLAMA, settings=set_by_hand)}
    assert isinstance(part, Full)
    assert (part.rope_base, part.rope_dim, part.rope) == (77, 4, True)


def test_layers_share_a_description_unless_their_places_differ() -> None:
    found: list[Mechanism] = [layer[0] for layer in from_config(MISTRAL)]
    assert len({id(part) for part in found}) == 1


def test_the_files_at_hand_say_their_positions() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared files are not at hand")
    for path in SHARED.glob("*.json"):
        try:
            model = read_config(path)
        except UnknownSizes:
            continue
        said = {part.seen_positions for layer in model for part in layer} - {None}
        # two files were cut down to less than says it
        expected = {"unknown"} if "MiniMax-Text" in path.name else {"none"}
        assert said in (expected, set()), path.name
