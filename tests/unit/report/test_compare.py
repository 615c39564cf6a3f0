"""`compare`: rows aligned by question, differences marked, readable at the width there is."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from separatrix.architecture.resolve import resolve
from separatrix.cards import CardFacts, card_facts
from separatrix.cli.compare import compare
from separatrix.errors import SeparatrixError
from separatrix.report.compare import Aligned, aligned, compare_json, render_comparison

MODELS = ("qwen3-next-80b", "recurrentgemma-2b", "full*2 + gdn*24")


def cards(models: Sequence[str], context: int) -> list[CardFacts]:
    return [card_facts(resolve(model), context) for model in models]


def printed(models, context: int, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(render_comparison(cards(models, context)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("count", [2, 3])
def test_it_fits_in_ascii(width: int, count: int) -> None:
    text = printed(MODELS[:count], 8192, width)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= width
    for model in MODELS[:count]:
        assert model in text or width == 40


def test_the_figures_of_real_models_stand_in_their_columns() -> None:
    """ux.md: 73.7 MiB of state and convolutions and 24,576 bytes per token; 18 RG-LRU and 8
    windowed layers, 134,217,728 bits of windows.
    """
    rows = {row.label: row.cells for row in aligned(cards(MODELS[:2], 262_144))}
    assert rows["full"] == ("12", "0")
    assert rows["recurrent"] == ("36", "18")
    assert rows["windowed"] == ("0", "8")
    assert rows["windows"] == ("-", "16.0 MiB")
    assert rows["keys and values"] == ("6.0 GiB, 24,576 bytes per token", "-")
    assert rows["pattern"] == ("(g*3 + f)*12", "(r*2 + w)*8 + r*2")
    assert (
        "not excluded (Theorem I bites from n = 7,675,932 on)"
        in rows["recall of one of n facts"][1]
    )
    assert "SOLVABLE" in rows["recall of one of n facts"][0]


def test_questions_are_aligned_and_follow_each_other() -> None:
    rows = [row for row in aligned(cards(MODELS, 8192)) if row.part == "What that means"]
    labels = [row.label for row in rows]
    assert len(labels) == len(set(labels))
    assert (
        labels.index("recall with chain of thought") == labels.index("recall of one of n facts") + 1
    )
    assert all(len(row.cells) == 3 for row in rows)
    composition = next(row for row in rows if row.label == "composition")
    assert composition.cells[0].startswith("L <= 12 steps: SOLVABLE")


def test_only_differences_are_marked() -> None:
    assert Aligned("part", "row", ("1", "2")).differs
    assert not Aligned("part", "row", ("1", "1")).differs
    same = printed(("gdn*4", "gdn*4"), 8192, 100)
    assert (
        "*"
        not in same.replace("gdn*4", "").replace("g*4", "").rsplit("\n* the models differ", 1)[0]
    )
    other = printed(("gdn*4", "gdn*5"), 8192, 100)
    assert "* recurrent state" in other
    assert "* full" not in other


def test_more_models_than_fit_are_folded() -> None:
    text = printed([f"gdn*{count}" for count in range(1, 8)], 4096, 80)
    assert text.count("at 4,096 tokens") == 3
    assert all(f"gdn*{count}" in text for count in range(2, 8))


def test_json_holds_the_cards() -> None:
    data = json.loads(json.dumps(compare_json(cards(MODELS, 8192)), allow_nan=False))
    assert [model["name"] for model in data["models"]] == list(MODELS)
    assert {model["context"] for model in data["models"]} == {8192}
    assert {row["row"] for row in data["rows"] if row["differs"]} >= {
        "full",
        "recurrent",
        "pattern",
    }


@pytest.mark.parametrize(
    ("models", "context", "said"),
    [
        (["full"], None, "at least two models"),
        (["full", "gnd"], None, "gnd"),
        (["full", "gdn"], "0", "context is 0"),
        (["full", "gdn"], "1" + "0" * 30, "from 1 to 10^12"),
        (["full", "no/such/config.json"], None, "no such file"),
    ],
)
def test_mistakes_are_one_line(models, context, said: str) -> None:
    with pytest.raises(SeparatrixError) as caught:
        compare(models, context)
    assert said in str(caught.value)


def test_the_context_is_the_smallest_that_a_model_names(capsys: pytest.CaptureFixture[str]) -> None:
    compare(["full", "gdn"], as_json=True)
    assert json.loads(capsys.readouterr().out)["context"] == 8192
    compare(["qwen3-next-80b", "gdn"], as_json=True)
    assert json.loads(capsys.readouterr().out)["context"] == 262_144
