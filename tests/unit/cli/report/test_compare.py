"""`compare`: rows aligned by question, differences marked, readable at the width there is."""

from __future__ import annotations

import json
from functools import cache

import pytest
from support.each import each

from separatrix.cards import CardFacts, card_facts
from separatrix.cards.apart import KINDS, asked_of_all
from separatrix.cli.main import run
from separatrix.cli.report.compare import (
    Aligned,
    aligned,
    compare_json,
    compared_why_document,
    comparison_document,
)
from separatrix.core.document import Line, Table
from separatrix.stacks.architecture.resolve import resolve

MODELS = ("qwen3-next-80b", "recurrentgemma-2b", "full*2 + gdn*24")


@cache
def cards(models: tuple[str, ...], context: int) -> list[CardFacts]:
    return [card_facts(resolve(model), context) for model in models]


def printed(models, context: int, width: int) -> str:
    return comparison_document(cards(models, context)).text(width)


@each("width, count", [(40, 2), (40, 3), (80, 3), (200, 2)])
def test_it_fits_in_ascii(width: int, count: int) -> None:
    text = printed(MODELS[:count], 8192, width)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= width
    for model in MODELS[:count]:
        assert model in text or width == 40


def test_the_figures_of_real_models_stand_in_their_columns() -> None:
    rows = {row.label: row.cells for row in aligned(cards(MODELS[:2], 262_144))}
    assert rows["cache"] == ("6.1 GiB", "16.4 MiB")
    assert rows["cache grows by"] == ("24,576 bytes per token", "nothing")
    solved, failed = next(cells for label, cells in rows.items() if "facts of 1" in label)
    assert failed.startswith("FAILS from n = 98,507 on; here ")
    assert solved.startswith("SOLVABLE")
    assert "layer 4" in solved


def test_what_a_theorem_separates_comes_first_then_costs_then_what_nothing_separates() -> None:
    text = printed(MODELS[:2], 131_072, 100)
    parts = (KINDS["theorem"], KINDS["shown"], "Costs", "Nothing here separates", "Not decided")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_costs_that_all_share_are_not_among_the_questions() -> None:
    text = " ".join(printed(("recurrentgemma-2b", "mistral-7b-v0.1"), 131_072, 100).split())
    assert "same of all" in text
    assert "separates: cache" not in text


def test_open_is_not_cannot() -> None:
    """Where a model is OPEN, nothing says that only the other can."""
    for names in (MODELS[:2], ("llama-3.1-8b", "deepseek-v3.2"), ("full", "mlp")):
        for one in asked_of_all(cards(names, 131_072)):
            statuses = {answer.status for answer in one.answers}
            assert (one.kind == "theorem") == (statuses >= {"FAILS", "SOLVABLE"})
            if "OPEN" in statuses and "FAILS" not in statuses:
                assert one.kind in ("shown", "bound", "")


def test_steps_of_composition_are_compared_in_stretches() -> None:
    layouts = ("(gdn*3 + full)*12", "(gdn*7 + full)*6")
    asked = {one.asks: one for one in asked_of_all(cards(layouts, 262_144))}
    seven = asked["compose 7 to 12 steps"]
    assert [answer.status for answer in seven.answers] == ["SOLVABLE", "OPEN"]
    assert seven.kind == "shown"
    assert asked["compose 1 to 6 steps"].kind == ""
    assert asked["compose 13 steps"].kind == ""


def test_equal_layouts_are_separated_by_nothing() -> None:
    assert Aligned("part", "row", ("1", "2")).differs
    assert not Aligned("part", "row", ("1", "1")).differs
    table, _, *notes = comparison_document(cards(("gdn*4", "gdn*4"), 8192)).parts
    assert isinstance(table, Table)
    assert table.rows == []
    text = " ".join(note.text for note in notes if isinstance(note, Line))
    assert "of all: cache" in text
    table = comparison_document(cards(("gdn*4", "gdn*5"), 8192)).parts[0]
    assert isinstance(table, Table)
    assert {"cache", "decode, mixing"} <= {row[0].strip() for row in table.cells}


@each("asked", ["recall", "question-first", "memory", "costs", "assumptions", "all"])
def test_what_stands_behind_it_is_opened(asked: str) -> None:
    text = compared_why_document(cards(MODELS, 8192), (), asked).text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert all(model in " ".join(text.split()) for model in MODELS)


@pytest.mark.slow
def test_more_models_than_fit_are_folded() -> None:
    text = printed(tuple(f"gdn*{count}" for count in range(1, 8)), 64, 80)
    assert text.count("\nat 64 tokens") == text.count("at 64 tokens") - 2
    assert all(f"gdn*{count}" in text for count in range(2, 8))


def test_json_holds_the_cards() -> None:
    data = json.loads(json.dumps(compare_json(cards(MODELS, 8192)), allow_nan=False))
    assert [model["name"] for model in data["models"]] == list(MODELS)
    assert {model["context"] for model in data["models"]} == {8192}
    assert {row["row"] for row in data["rows"] if row["differs"]} >= {"cache", "track S_5"}
    assert {one["kind"] for one in data["questions"]} == {"shown", ""}
    # of two that no weights are known for the bounds differ
    far = compare_json(cards(("deepseek-v3.2", "recurrentgemma-2b", "rwkv-4-7b-pile"), 8192))
    assert {one["kind"] for one in far["questions"]} == {"shown", "bound"}


@each(
    "models, context, said",
    [
        (["full"], None, "least two models"),
        (["full", "gnd"], None, "gnd"),
        (["full", "gdn"], "0", "context is 0"),
        (["full", "gdn"], "1" + "0" * 30, "from 1 to 1,000,000,000,000"),
        (["full", "no/such/config.json"], None, "no such file"),
    ],
)
def test_mistakes_are_one_line(
    models, context, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *models, *([] if context is None else ["--context", context])]) == 2
    assert said in capsys.readouterr().err


def test_the_context_is_the_smallest_that_a_model_names(capsys: pytest.CaptureFixture[str]) -> None:
    run(["compare", "full", "gdn", "--json"])
    assert json.loads(capsys.readouterr().out)["context"] == 8192
    run(["compare", "qwen3-next-80b", "gdn", "--json"])
    assert json.loads(capsys.readouterr().out)["context"] == 262_144
