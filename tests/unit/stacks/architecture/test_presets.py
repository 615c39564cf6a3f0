"""Presets by name, and the one resolver of architecture texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.each import each
from support.hf_configs import QWEN

from separatrix.core.errors import (
    ConfigError,
    SeparatrixError,
    SizeError,
    SpecError,
    UnknownNameError,
)
from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import ROWS, from_config, of_class
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset, resolve


def test_presets_name_their_source_and_family() -> None:
    for name, facts in PRESETS.items():
        assert set(facts) - {"also"} == {"source", "family", "config"}
        assert facts["source"].startswith("https://huggingface.co/")
        config = facts["config"].get("text_config", facts["config"])
        assert isinstance(config, dict)
        assert facts["family"] == config.get("model_type") or facts["family"] == of_class(
            config["architectures"][0]
        )
        assert facts["family"] in ROWS
        assert preset(name).name == name


def test_unknown_presets_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="'nemotron-h-8b'"):
        preset("nemotron-8b")


def test_resolve_reads_presets_in_any_case() -> None:
    assert resolve("recurrentgemma-2b") == preset("recurrentgemma-2b")
    assert resolve(" Qwen3-Next-80B ").name == "qwen3-next-80b"


@each(
    "text",
    [
        "full",
        "full*2 + gdn*24",
        "full|gdn @ heads=2",
        "(gdn*3 + full)*12 @ heads=16, bf16",
        "full\n + gdn",
    ],
)
def test_resolve_reads_specs(text: str) -> None:
    assert resolve(text) == Architecture.parse(text)


def test_resolve_reads_files_folders_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = from_config(QWEN)
    (tmp_path / "tiny  model").mkdir()
    (tmp_path / "tiny  model" / "config.json").write_text(json.dumps(QWEN))
    (tmp_path / "stack.json").write_text(json.dumps(preset("nemotron-h-8b").to_json()))
    monkeypatch.chdir(tmp_path)
    assert (
        resolve("./tiny  model")
        == resolve("tiny  model/config.json")
        == resolve(str(tmp_path / "tiny  model"))
        == model
    )
    read = resolve("stack.json")
    assert read == preset("nemotron-h-8b")
    assert (read.name, read.notes, read.vocabulary) == (
        "nemotron-h-8b",
        preset("nemotron-h-8b").notes,
        131_072,
    )
    assert resolve(json.dumps(QWEN)) == resolve(json.dumps(QWEN | {"layers": 8})) == model
    assert resolve(
        json.dumps(Architecture.parse("full|gdn + window").to_json())
    ) == Architecture.parse("full|gdn + window")


def test_a_bare_folder_name_is_read_but_mechanisms_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("full", "tiny"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(QWEN))
    monkeypatch.chdir(tmp_path)
    assert resolve("tiny") == from_config(QWEN)
    assert resolve("full") == Architecture.parse("full")
    assert resolve("./full") == from_config(QWEN)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (
            "qwen-next",
            UnknownNameError,
            [
                "unknown architecture 'qwen-next'",
                "Did you mean 'qwen3-next-80b'?",
                "config.json",
                "stack",
            ],
        ),
        ("gnd", UnknownNameError, ["Did you mean 'gdn'?"]),
        (
            "zzz",
            UnknownNameError,
            ["Known: automaton, bamba-9b-fp8", "more", "`separatrix list presets`", "config.json"],
        ),
        (
            "full*2 + gnd*4",
            UnknownNameError,
            ["unknown mechanism 'gnd' at position 9", "Did you mean 'gdn'?"],
        ),
        (
            "./config.json",
            ConfigError,
            ["config.json: no such file or folder", "nothing is downloaded"],
        ),
        ("Qwen/No-Such-Model", ConfigError, ["no such file or folder"]),
        ("~/no-such-model-here", ConfigError, ["no such file or folder"]),
        ("x" * 5000 + "/config.json", ConfigError, ["no such file or folder"]),
        ("", SpecError, ["empty"]),
        ("  ", SpecError, ["empty"]),
        ("full\0", SpecError, ["cannot be printed"]),
        ("full*0", SizeError, ["at least 1"]),
        ("{", ConfigError, ["the JSON given: not JSON"]),
        ("{}", ConfigError, ["'model_type' is missing"]),
        ('{"layers": 3}', SpecError, ["the JSON given", "layers (a list)"]),
    ],
)
def test_texts_that_name_nothing(
    text: str,
    kind: type[SeparatrixError],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        resolve(text)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    for word in words:
        assert word in message


@each(
    "change, message",
    [
        ({"name": 3}, "must be a text"),
        ({"notes": "text"}, "a list of texts"),
        ({"notes": [1]}, "a list of texts"),
        ({"vocabulary": "many"}, "integer or null"),
        ({"context": True}, "integer or null"),
        ({"context": -1}, "integer or null"),
        ({"layers": [{"times": 0, "heads": []}]}, "times is 0"),
        ({"layers": [{"times": 10_001, "heads": []}]}, "times is 10001"),
        ({"layers": [{"times": True, "heads": []}]}, "times (an integer)"),
        ({"layers": [{"times": 1, "heads": []}]}, "least one mechanism"),
        ({"layers": [{"times": 1, "heads": [3]}]}, "object with a 'mechanism'"),
        ({"layers": [{"times": 1, "heads": [{"mechanism": "gnd"}]}]}, "you mean 'gdn'"),
        (
            {"layers": [{"times": 1, "heads": [{"mechanism": "full", "where": "x"}]}]},
            "of 'full' 'where'",
        ),
        (
            {"layers": [{"times": 1, "heads": [{"mechanism": "full", "name": "x"}]}]},
            "of 'full' 'name'",
        ),
        (
            {"layers": [{"times": 1, "heads": [{"mechanism": "full", "format": 3}]}]},
            "be a number format",
        ),
        (
            {"layers": [{"times": 1, "heads": [{"mechanism": "full", "format": None}]}]},
            "be a number format",
        ),
        ({"layers": [{"times": 1, "heads": [{"mechanism": "full", "state": 3}]}]}, "unknown size"),
        (
            {"layers": [{"times": 1, "heads": [{"mechanism": "full", "heads": 2.0}]}]},
            "heads is 2.0",
        ),
        ({"layers": []}, "least one layer"),
        ({"extra": 1}, "exactly the fields"),
    ],
)
def test_architecture_json_with_a_wrong_field(change: dict[str, object], message: str) -> None:
    data = Architecture.parse("full").to_json() | change
    with pytest.raises(SeparatrixError) as caught:
        resolve(json.dumps(data))
    assert message in str(caught.value)
    assert "the JSON given" in str(caught.value)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-next-80b", "glm-5"])
def test_a_file_with_a_format_of_keys_that_is_not_read_is_told_by_its_sizes(name: str) -> None:
    config = dict(PRESETS[name]["config"]) | {"kv_cache_dtype": "int3"}
    with pytest.raises(UnknownSizes) as caught:
        from_config(config, "file")
    assert caught.value.outline.missing == ("kv",)


def test_experts_of_deepseek_v4_flash_have_four_bits_and_the_rest_eight() -> None:
    """284 B weights, as its card says: 43 layers of 256 experts of 3 maps of 4,096 x 2,048."""
    found = preset("deepseek-v4-flash").weights
    assert found is not None
    experts = 43 * 256 * 3 * 4096 * 2048
    assert (found.total - experts) * 1000 // found.total == 25
    assert round(found.total / 10**9) == 284
    # 4 bits and a scale of 8 for 32 numbers, 8 and 32 for 128 x 128; the vocabulary is left in 16
    rest = found.total - experts - 2 * 129_280 * 4096
    assert found.stored == round(experts * 17 / 4 + rest * (8 + 2**-9) + 2 * 129_280 * 4096 * 16)


def test_why_weights_are_not_told_is_told() -> None:
    """47 of 48; the other leaves a size out."""
    silent = {name: own.uncounted for name in PRESETS if (own := preset(name)).weights is None}
    assert {*silent} == {"bamba-9b-fp8"}
    assert silent["bamba-9b-fp8"].startswith("'intermediate_size' is missing")


def test_weights_of_recurrent_models_by_hand() -> None:
    """flash-linear-attention 0.6.0, from the maps that its layers make: queries and keys of
    `expand_k`, values, gate and outputs of `expand_v` times 2,048; GatedMLP rounds two thirds of
    `hidden_ratio` times 2,048 up to 256. Published are 6.87 G of xLSTM 7B, 1.6 T and 49 G active of
    DeepSeek-V4-Pro, 120 G and 12 G active of Nemotron 3 Super.
    """
    half, width = 1024, 2048
    maps = {
        # decays of 16 numbers
        "gla-1.3b": 2 * width * half + 3 * width * width + 16 * (width + half),
        # a strength for each of 16 heads, three convolutions over 4 tokens, and no gate
        "delta-net-1.3b": 4 * width * width + 16 * width + 4 * 3 * width,
        "retnet-1.3b": 2 * width * width + 3 * width * 2 * width,
    }
    for (name, mixer), dense in zip(maps.items(), (5632, 5632, 2816), strict=True):
        known = preset(name).weights
        assert known is not None
        assert known.total == 24 * (mixer + 3 * width * dense) + 2 * 32_000 * width
    for name, total, active, unit in (
        *(("xlstm-7b", 687, 666, 10**7), ("deepseek-v4-pro", 16, None, 10**11)),
        *(("deepseek-v4-pro", 1573, 49, 10**9), ("nemotron-3-super-120b", 121, 12, 10**9)),
    ):
        known = preset(name).weights
        assert known is not None
        assert round(known.total / unit) == total
        assert active is None or round(known.read(1) / unit) == active


def test_gemma_4_without_its_blocks_of_experts() -> None:
    """30 layers with 128 experts of three maps of 704 units, and what chooses among them."""
    config = dict(PRESETS["gemma-4-26b-a4b"]["config"])
    text = json_object(config["text_config"]) or {}
    with_, without_ = (
        from_config(config | {"text_config": {**text, "enable_moe_block": own}}).weights
        for own in (True, False)
    )
    assert with_ is not None
    assert without_ is not None
    assert with_.total - without_.total == 30 * 128 * 2816 * (3 * 704 + 1)
