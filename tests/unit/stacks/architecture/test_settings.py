"""Sizes set by hand: what they change, what they refuse, and that nothing set is silently
ignored.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.each import each
from support.hf_configs import NEMOTRON, QWEN

from separatrix.cards import card_facts
from separatrix.core.errors import (
    ConfigError,
    SeparatrixError,
    SizeError,
    SpecError,
    UnknownNameError,
)
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.resolve import preset, resolve
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import GatedDeltaNet, Mamba2

SILENT = {
    key: value
    for key, value in NEMOTRON.items()
    if key not in ("ssm_state_size", "conv_kernel", "torch_dtype")
}


def read(config: dict[str, Any], *texts: str) -> Any:
    return from_config(config, "file", settings=Settings.parse(texts))


def test_a_missing_size_is_supplied() -> None:
    model = read(SILENT, "mamba2.state=16", "mamba2.conv=4", "dtype=bf16")
    assert model == from_config(NEMOTRON)
    assert any("mamba2.state = 16, mamba2.conv = 4, dtype = bf16" in n for n in model.notes)


def test_a_size_of_the_file_is_changed_and_the_others_stay() -> None:
    model = read(QWEN, "gdn.heads=8", "vocabulary=7", "context=99")
    assert model.layers[0][0] == GatedDeltaNet(
        heads=8,
        key_heads=2,
        head_dim=16,
        value_dim=8,
        conv=4,
        format="bf16",
        state_format="fp32",
        positions="none",
    )
    assert model.layers[3] == from_config(QWEN).layers[3]
    assert (model.vocabulary, model.context) == (7, 99)


def test_what_stays_unknown_is_named_with_the_way_to_supply_it() -> None:
    with pytest.raises(UnknownSizes) as caught:
        read(SILENT, "mamba2.conv=4")
    assert caught.value.outline.missing == ("mamba2.state",)
    assert "'ssm_state_size' is missing" in str(caught.value)
    assert "--set mamba2.state=..." in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_outline_keeps_what_is_known() -> None:
    with pytest.raises(UnknownSizes) as caught:
        read({key: value for key, value in NEMOTRON.items() if key != "ssm_state_size"})
    outline = caught.value.outline
    assert [tuple(part.symbol for part in layer) for layer in outline] == [
        ("m",),
        ("-",),
        ("m",),
        ("f",),
        ("m",),
        ("-",),
    ]
    assert {part for layer in outline for part in layer if isinstance(part, type)} == {Mamba2}


@each(
    "text, error, said",
    [
        ("mamba2.state", SpecError, "no setting"),
        ("=5", SpecError, "no setting"),
        ("mamba2.state=", SpecError, "no setting"),
        ("mambo.state=5", UnknownNameError, "Did you mean 'mamba"),
        ("mamba2.stat=5", UnknownNameError, "Did you mean 'state'"),
        ("mamba2.state=0", SeparatrixError, "state is 0"),
        ("mamba2.state=-3", SeparatrixError, "state is -3"),
        ("mamba2.state=many", SeparatrixError, "state is 'many'"),
        ("mamba2.state=1" + "0" * 30, SeparatrixError, "10^12"),
        ("full.kv_heads=3", SeparatrixError, "does not divide"),
        ("gdn.heads=4", UnknownNameError, "no layer of this model is 'gdn'"),
        ("mamba.width=4", UnknownNameError, "no layer of this model is 'mamba'"),
        ("dtype=float", SpecError, "float"),
        ("vocabulary=0", SizeError, "vocabulary must be"),
        ("context=1e6", SizeError, "context must be"),
        ("contxt=5", UnknownNameError, "Did you mean 'context'"),
    ],
)
def test_settings_that_cannot_be(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said.replace("^", r"\^").replace("(", r"\(")) as caught:
        read(NEMOTRON, text)
    assert "\n" not in str(caught.value)


def test_a_setting_given_twice() -> None:
    with pytest.raises(SpecError, match="given twice"):
        Settings.parse(["mamba2.state=5", "mamba2.state=6"])


@pytest.mark.parametrize(
    ("setting", "gone", "kept"),
    [
        ("rglru.state_format=bf16", "recurrent state", "softmax accumulators fp32"),
        ("dtype=fp32", "keys and values", "recurrent state fp32"),
        ("window.accumulator=bf16", "softmax accumulators fp32", "recurrent state fp32"),
    ],
)
def test_a_note_that_a_setting_contradicts_is_gone(setting: str, gone: str, kept: str) -> None:
    before = preset("recurrentgemma-2b")
    after = preset("recurrentgemma-2b", settings=Settings.parse([setting]))
    assert any(note.startswith(gone) for note in before.notes)
    assert not any(note.startswith(gone) for note in after.notes)
    assert any(note.startswith(kept) for note in after.notes)
    assert after.notes[-1].startswith("set by hand: ")


def test_a_card_says_the_accumulators_that_were_set() -> None:
    stack = preset("llama-3.1-8b", settings=Settings.parse(["full.accumulator=bf16"]))
    said = " ".join(card_facts(stack, 1000).assumptions)
    assert "hold 16 bits" in said
    assert "accumulators fp32" not in said


def test_a_file_is_read_as_another_model_type() -> None:
    """Whatever type and class it names: by that row's rules, and with a note that says so."""
    file = {
        **{"model_type": "nobody_knows", "architectures": ["NobodyForCausalLM"]},
        **{"num_hidden_layers": 12, "hidden_size": 64, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "head_dim": 16, "torch_dtype": "bfloat16"},
        **{"sliding_window": 32, "rope_theta": 5000},
    }
    like = read(file, "like=gemma3_text")
    # Gemma 3: every sixth layer sees all tokens, and the windows' base is its own
    assert [layer[0].name for layer in like.layers] == (["window"] * 5 + ["full"]) * 2
    assert [layer[0].rope_base for layer in like.layers[:6]] == [10_000] * 5 + [5000]
    assert any("gemma3_text" in note for note in like.notes)
    own = {**file, "model_type": "gemma3_text", "architectures": None}
    assert like == from_config(own)
    with pytest.raises(UnknownNameError, match="gemma3"):
        read(file, "like=gemma3_txt")
    with pytest.raises(SpecError, match="like"):
        resolve("full*2", settings=Settings.parse(["like=llama"]))
    # fields that the row does not know stop it all the same
    with pytest.raises(ConfigError, match="kv_reuse"):
        read({**file, "kv_reuse_depth": 3}, "like=gemma3_text")


def test_settings_over_a_spec() -> None:
    settings = Settings.parse(["gdn.heads=8", "dtype=bf16", "vocabulary=7", "context=99"])
    model = resolve("gdn*2 + full", settings=settings)
    assert model == Architecture.parse("gdn(heads=8)*2 + full @ bf16")
    assert (model.vocabulary, model.context) == (7, 99)
    (note,) = model.notes
    assert note.endswith("gdn.heads = 8, dtype = bf16")
    data = Architecture.parse("gdn*2 + full").to_json()
    assert resolve(json.dumps(data), settings=settings) == model
    assert resolve("gdn*2 + full", settings=Settings.parse([])).notes == ()


@pytest.mark.parametrize(
    ("texts", "error", "said"),
    [
        (["mamba2.state=4"], UnknownNameError, "of this model is 'mamba2'"),
        (["full.kv_heads=3"], SizeError, "does not divide"),
        (["full.heads=0"], SizeError, "heads is 0"),
    ],
)
def test_settings_that_do_not_fit_a_spec(
    texts: list[str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        resolve("gdn*2 + full", settings=Settings.parse(texts))


def test_settings_over_a_preset() -> None:
    model = preset("nemotron-h-8b", settings=Settings.parse(["mamba2.state=64"]))
    assert model.cache(1)["state"].numbers * 2 == preset("nemotron-h-8b").cache(1)["state"].numbers
    assert resolve("Nemotron-H-8B", settings=Settings.parse(["mamba2.state=64"])) == model
