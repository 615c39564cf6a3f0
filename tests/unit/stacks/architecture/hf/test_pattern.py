"""A stack given by hand for a file (`--pattern`), and sizes given by hand for specs and presets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import DEEPSEEK_INDEXED, LLAMA, MISTRAL
from support.hf_configs import NEMOTRON, QWEN
from support.unplaced import sizes_of, unplaced

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

NEW: dict[str, Any] = {
    key: value
    for key, value in QWEN.items()
    if key not in ("model_type", "architectures", "full_attention_interval")
}


def read(config: dict[str, Any], pattern: str, *texts: str) -> Architecture:
    return from_config(config, "file", settings=Settings.parse(texts), pattern=pattern)


def test_the_pattern_gives_the_layers_and_the_file_the_sizes() -> None:
    model = read(NEW, "(gdn*3 + full)*2")
    # places are those of a model type, which the pattern does not name
    assert unplaced(model) == sizes_of(QWEN)
    assert (model.vocabulary, model.context) == (100, 1024)
    assert any("--pattern '(gdn*3 + full)*2'" in note for note in model.notes)
    assert any(note.startswith("recurrent state fp32 (assumed)") for note in model.notes)


def test_sizes_of_the_pattern_win() -> None:
    assert unplaced(read(NEW, "gdn*7 + full(heads=8, kv_heads=1)")).layers[7][0].sizes() == {
        **sizes_of(QWEN).layers[7][0].sizes(),
        **{"heads": 8, "kv_heads": 1},
    }
    # p8 holds for every layer; 8 layers of 4 x 16 x 8 numbers
    assert read(NEW, "gdn*8 @ p8, state_format=p8").cache(50)["state"].parts == (
        (8 * 4 * 16 * 8, 8),
    )


def test_heads_side_by_side() -> None:
    assert {tuple(part.name for part in layer) for layer in read(NEW, "full|gdn + gdn*7")} == {
        ("full", "gdn"),
        ("gdn",),
    }


def test_mamba_2_of_nemotron() -> None:
    assert read(
        NEMOTRON, "mamba2 + mlp + mamba2 + full(head_dim=32) + mamba2 + mlp"
    ) == from_config(NEMOTRON)


def test_the_pattern_wins_over_a_known_model_type() -> None:
    assert "".join(layer[0].symbol for layer in read(MISTRAL, "full*3 + window*3")) == "fffwww"
    assert read(DEEPSEEK_INDEXED, "mla*6").cache(1)["kv"].numbers == 6 * 48
    assert read(DEEPSEEK_INDEXED, "dsa*6") == from_config(DEEPSEEK_INDEXED)


def test_sizes_that_no_field_holds_are_named() -> None:
    with pytest.raises(UnknownSizes) as caught:
        read(LLAMA, "mamba2*5 + full")
    assert [name for name in caught.value.outline.missing if name.startswith("mamba2")] == [
        f"mamba2.{size}" for size in ("heads", "head_dim", "state", "groups", "conv")
    ]
    with pytest.raises(UnknownSizes) as caught:
        read(LLAMA, "retnet*6")
    assert caught.value.outline.missing == ("retnet.heads", "retnet.head_dim")
    assert "'heads' of 'retnet'" in str(caught.value)
    by_hand = read(LLAMA, "retnet*6", "retnet.heads=2", "retnet.head_dim=8")
    assert by_hand.cache(9)["state"].numbers == 6 * 2 * 8 * 8


@each(
    "pattern, error, said",
    [
        ("gdn*7", ConfigError, "--pattern has 7 layers, but 'num_hidden_layers'"),
        ("gdn*9999 + full", ConfigError, "--pattern has 10,000 layers"),
        ("gdn*99999", SizeError, "at most"),
        ("", SpecError, "pattern is empty"),
        ("(gdn*8", SpecError, "expected"),
        ("gdm*8", UnknownNameError, "you mean 'gdn'"),
        ("gdn(hedas=4)*8", UnknownNameError, "you mean 'heads'"),
        ("gdn(heads=0)*8", ConfigError, "heads is 0"),
        ("gdn(heads=many)*8", SeparatrixError, "heads is 'many'"),
        ("gdn*8 @ window=4", UnknownNameError, "size"),
    ],
)
def test_patterns_that_cannot_be(pattern: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        read(NEW, pattern)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pattern_is_for_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(NEW))
    assert unplaced(resolve(str(tmp_path), pattern="(gdn*3 + full)*2")) == sizes_of(QWEN)
    assert resolve(json.dumps(NEW), pattern="gdn*8").layers == read(NEW, "gdn*8").layers
    for text in ("full*2", json.dumps(Architecture.parse("full*2").to_json())):
        with pytest.raises(SpecError, match="--pattern"):
            resolve(text, pattern="full*2")


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


def test_heads_that_a_file_spells_in_an_unknown_way_are_not_guessed_under_a_pattern() -> None:
    plain = {key: value for key, value in LLAMA.items() if key != "model_type"}
    for name, sizes in (
        ("kv_channels", {"full.head_dim"}),
        ("num_kv_groups_per_layer", {"full.heads", "full.kv_heads", "full.head_dim"}),
    ):
        with pytest.raises(UnknownSizes, match=f"'{name}' is there") as caught:
            from_config(plain | {name: 7}, pattern="full*6")
        assert set(caught.value.outline.missing) == sizes
        by_hand = from_config(plain | {name: 7}, pattern="full(heads=6, kv_heads=3, head_dim=8)*6")
        assert by_hand.layers[0][0].sizes()["head_dim"] == 8


def test_fields_that_the_pattern_stands_for_are_named() -> None:
    read = from_config(LLAMA | {"total_ut_steps": 4}, pattern="full*6")
    assert any("'total_ut_steps'" in n for n in read.notes)
    assert not any("not read" in note for note in from_config(LLAMA, pattern="full*6").notes)
