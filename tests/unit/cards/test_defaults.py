"""Sizes that nobody gave are named: those a spec leaves open, and none of a file's."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from support.each import each

from separatrix.cards.memory import taken_by_default
from separatrix.cli.main import run
from separatrix.stacks.architecture import MECHANISMS, Architecture, mechanism
from separatrix.stacks.architecture.resolve import preset


@each(
    "spec, named",
    [
        ("full", {"heads=4", "head_dim=64", "fp32", "kv_heads=heads"}),
        ("full @ heads=4, head_dim=64, fp32, kv_heads=4", set()),  # said, though as by default
        ("gdn(heads=2) + full(kv_heads=2) @ bf16", {"full.heads=4", "head_dim=64"}),
        ("rglru + mamba @ fp32", {"width=256", "state=16"}),
        ("mlp(bf16)", set()),
        (
            "window(rope=true, size=9) @ bf16, heads=1",
            {"head_dim=64", "kv_heads=heads", "rope_base=10000"},
        ),
    ],
)
def test_what_a_spec_leaves_open(spec: str, named: set[str]) -> None:
    found = taken_by_default(Architecture.parse(spec))
    assert set(found) == named
    assert len(found) == len(named)


def test_a_spec_with_the_defaults_written_out_is_the_same_stack() -> None:
    """What is named is what was taken: writing it down changes nothing."""
    for name in MECHANISMS:
        bare = Architecture.parse(name)
        said = [text for text in taken_by_default(bare) if text != "kv_heads=heads"]
        assert any(f.name == "format" for f in fields(mechanism(name)))
        assert "fp32" in said
        full = Architecture.parse(f"{name} @ {', '.join(said)}")
        assert full == bare
        assert set(taken_by_default(full)) <= {"kv_heads=heads"}


def test_models_of_files_leave_nothing_open() -> None:
    assert taken_by_default(preset("recurrentgemma-2b")) == ()
    assert taken_by_default(Architecture.from_json(Architecture.parse("full").to_json())) == ()


def test_a_comparison_says_what_its_costs_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Each once, whatever the model; nothing where all is said."""
    for models, said in (
        (("full @ heads=2", "gdn @ heads=2, bf16"), "head_dim=64, kv_heads=heads, fp32"),
        (("full @ heads=2, kv_heads=1, head_dim=8, bf16", "qwen3-8b"), ""),
    ):
        assert run(["compare", *models, "--context", "64"]) == 0
        _, taken, rest = capsys.readouterr().out.partition("taken by default: ")
        assert rest.partition("\n")[0] == said
        assert bool(taken) == bool(said)


def test_they_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "full*2 + gdn"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    said = "not said in the spec, taken by default: heads=4, head_dim=64, kv_heads=heads, fp32"
    assert out.count("by default") == out.count(said) == 1
    assert run(["analyze", "full*2 + gdn", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["defaults"] == said.partition(": ")[2].split(", ")
    assert run(["compare", "full", "qwen3-8b", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    wanted = ["heads=4", "head_dim=64", "kv_heads=heads", "fp32"]
    assert [model["defaults"] for model in models] == [wanted, []]
