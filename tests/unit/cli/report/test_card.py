"""A card is one screen: of every preset, at every context, and whatever takes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from separatrix.cards import CardFacts, card_facts
from separatrix.cards.facts import ASKED, FAR, NOTHING_SPEAKS, opened
from separatrix.cli.main import run
from separatrix.cli.printing import show
from separatrix.cli.report.card import card_document
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.theory.solves.room import from_one

CONTEXTS = (8192, 131_072, 1_048_576)
QUICK = {"qwen3-next-80b", "recurrentgemma-2b", "deepseek-v4-pro"}
NOTHING = "no bound and no construction here"


def lines_of(
    facts: CardFacts,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    columns: int = 80,
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    show(card_document(facts))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PRESETS],
)
def test_every_preset_is_one_screen_that_names_what_is_missing(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for context in CONTEXTS:
        facts = card_facts(preset(name), context)
        printed = lines_of(facts, capsys, monkeypatch)
        assert len(printed) <= 45, context
        assert max(map(len, printed)) <= 80
        text = " ".join(" ".join(printed).split())
        assert text.isascii()
        # where an indexer chooses, layers that find tokens are called reading
        nothing = text.replace("several reading", "several full").count(NOTHING_SPEAKS)
        assert nothing == any(row.decides == FAR for row in facts.table)
        # no number that no prompt reaches
        assert not re.search(r"10\^\d{3}|e\+|\d(,\d{3}){5}", text)
        for row in facts.table:
            assert row.key in ASKED
            assert row.decides, row.asks
            assert len(row.said) <= 80, row.said
            assert row.decides != NOTHING, (context, row)


def test_a_guessed_type_stands_on_the_first_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose type nobody knows may attend otherwise than its usual fields say."""
    sizes = {"hidden_size": 512, "num_hidden_layers": 2}
    file = sizes | dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 8)
    for named, said in (
        ({"model_type": "brand_new"}, "'model_type' is 'brand_new', which is not known"),
        ({}, "'model_type' is missing"),
        ({"model_type": "llama"}, ""),
    ):
        shown = lines_of(card_facts(from_config(file | named), 64), capsys, monkeypatch)
        found = [line for line in shown if line.startswith("'model_type' is")]
        assert len(found) == bool(said)
        assert all(line.startswith(said) for line in found)


@pytest.mark.slow
def test_what_is_missing_is_said_in_few_words() -> None:
    """Wherever nothing decides and nothing bounds, theory says in a few words what is missing,
    which fit a row of 80 columns.
    """
    specs = ("full*2 @ positions=unknown", "full*2 @ positions=alibi", "sparse(block=16, topk=4)")
    for spec in (*specs, "gdn*4", "mamba*2", "full(format=fp8)", "full(softcap=30)", "deltanet*9"):
        for line in card_facts(Architecture.parse(spec), 100).lines:
            undecided = line.status == "OPEN" and line.bound is None
            assert bool(line.missing) == undecided, (spec, line.key)
            assert len(line.missing) <= 42, (spec, line.missing)


def test_questions_are_opened_by_their_names_in_any_case() -> None:
    assert opened("S5") == "s5"
    assert opened(" comp ") == "composition"
    assert opened("track S_5") == "s5"
    assert {opened(key) for key in ASKED} == {*ASKED}


def test_numbers_behind_an_answer_count_layers_from_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The full layers of these stacks are the 2nd, and the 1st and 3rd; --json counts from 0."""
    for spec, why, numbers in (
        ("gdn + full", "2sum", {"layer": 2}),
        ("full + gdn + full", "pairs", {"first": 1, "second": 3}),
        ("gdn + full + gdn*2 + full*7", "s5", {"layer_1": 2, "layer_2": 5}),
    ):
        assert run(["analyze", spec, "--context", "4096", "--why", why]) == 0
        said = " ".join(capsys.readouterr().out.split())
        for name, place in numbers.items():
            assert re.search(rf"\b{name} {place}\b", said), (spec, name)
    assert from_one({"layer": 0, "layers": 3, "layer_12": 4, "points": 5}) == {
        **{"layer": 1, "layers": 3, "layer_12": 5, "points": 5}
    }


def test_a_contexts_end(capsys: pytest.CaptureFixture[str]) -> None:
    for context in ("1", "2", "4", "5", "1000000000000"):
        assert run(["analyze", "gdn + full", "--context", context]) == 0
        assert capsys.readouterr().out
    assert run(["analyze", "gdn", "--context", "0", "--why", "recall"]) == 2
    assert "context is 0" in capsys.readouterr().err


@pytest.mark.slow
def test_without_colour_and_into_a_pipe_that_closes() -> None:
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "80"}
    command = [sys.executable, "-m", "separatrix", "analyze", "qwen3-8b", "--why", "all"]
    plain = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "\x1b" not in plain.stdout
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        process.wait()
    assert b"Traceback" not in said
