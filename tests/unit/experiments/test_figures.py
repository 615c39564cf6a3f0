"""Figures and tables of experiments: every seed, its interval, chance, and what Theorem A says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support.practice_tables import diverged, row, trial
from support.practice_tables import table as made
from support.pretended_tables import table as pretended
from support.toy_experiment import SMALL, Toy, table

from separatrix.errors import SpecError
from separatrix.experiments import EXPERIMENTS
from separatrix.experiments.base import Cell, cell, claimed, parts
from separatrix.experiments.drawing import PALETTE, colours, marks, places, slug
from separatrix.experiments.lines import ceiling, ceilings, chances, verdict
from separatrix.experiments.showing import data, notes, shown_rows
from separatrix.numbers.accuracy import highest_accuracy
from separatrix.numbers.counts import Power
from separatrix.numbers.wilson import wilson
from separatrix.training.run import Run


def test_a_mark_is_a_seed_with_its_own_interval() -> None:
    """700 of 1,000 answers in 250 prompts: as wide as 175 of 250."""
    found = marks(table().rows[2], 16)
    low, high = wilson(175, 250)
    assert [mark.seed for mark in found] == [0, 1, 2]
    assert (found[0].height, found[0].low, found[0].high) == (0.7, float(low), float(high))


def test_seeds_that_diverged_are_drawn_at_the_foot() -> None:
    one = row({"mechanism": "gdn", "n": 8}, {3e-3: [trial(0, 900), diverged(1)]})
    assert [(mark.height, mark.low, mark.high) for mark in marks(one, 8)][1] == (0, 0, 1)


def test_places() -> None:
    """Numbers that spread far stand by their logarithms; others do not; words as they come."""
    assert places([64, 8, 8, 16]).at == {8: 3.0, 16: 4.0, 64: 6.0}
    assert places([1, 2, 4]).at == {1: 1.0, 2: 2.0, 4: 4.0}
    assert places([0, 16]).at == {0: 0.0, 16: 16.0}
    assert places(["none", "first"]).at == {"none": 0.0, "first": 1.0}
    assert places([15, -1, 3], even=True).at == {-1: 0.0, 3: 1.0, 15: 2.0}
    assert places([7]).gap == 1.0


def test_chance_is_one_line_where_it_is_the_same_for_all() -> None:
    (line,) = chances(Toy(), table())
    assert line.points == ((16, 1 / 16), (32, 1 / 16))


def test_the_ceiling_is_theorem_a() -> None:
    """A state of 2 x 2 numbers and 2 of the normaliser, in float32, and no other cache."""
    bits = 32 * 6
    expected = highest_accuracy(Power(16, 64), 64, 16, bits)
    one = row({"mechanism": "linear", "n": 64}, {}, architecture=SMALL, task="eva:n=64,V=16")
    found = ceiling(one)
    assert found is not None
    assert found.at_most == expected < 10**6
    assert verdict(one).theorem == "I"


def test_only_series_below_one_have_a_ceiling() -> None:
    rows = table().rows
    (line,) = ceilings(Toy(), replace(table(), rows=(*rows, _hopeless())))
    assert line.series == "linear"
    assert [x for x, _ in line.points] == [16, 32, 64]
    assert line.points[-1][1] < 1


def _hopeless() -> Any:
    return row(
        {"mechanism": "linear", "n": 64, "stack": SMALL},
        {3e-3: [trial(0, 100)]},
        architecture=SMALL,
        task="eva:n=64,V=16",
        width=16,
        hidden=32,
    )


def test_a_figure_has_every_seed_the_medians_and_the_lines() -> None:
    pytest.importorskip("altair")
    specs = Toy().figures(table())
    assert list(specs) == [""]
    spec = specs[""]
    points = [one for one in _values(spec) if "seed" in one]
    assert len(points) == 12
    assert {round(one["height"], 3) for one in points if one["series"] == "linear"} == {
        0.7,
        0.695,
        0.69,
        0.2,
        0.195,
        0.19,
    }
    medians = {
        (one["series"], one["at"]): one["median"] for one in _values(spec) if "median" in one
    }
    assert medians["linear", 16.0] == 0.695
    assert any(one.get("label") == "chance" for one in _values(spec))
    text = json.dumps(spec)
    for said in (Toy.title, "How many facts", "Chance is the best constant guess"):
        assert said in text


@pytest.mark.slow
def test_a_figure_for_each_value_of_a_panel() -> None:
    pytest.importorskip("altair")

    class Two(Toy):
        x = "mechanism"
        x_title = "mixer"
        series = ("mechanism",)
        panels = ("n",)

    specs = Two().figures(table())
    assert list(specs) == ["n-16", "n-32"]
    # the same colour in both, whatever else is in them
    for spec in specs.values():
        assert json.dumps([PALETTE[0], PALETTE[1]]) in json.dumps(spec)


def _values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of data of a figure."""
    found = [*spec.get("data", {}).get("values", [])]
    for layer in spec.get("layer", []):
        found += _values(layer)
    return found


def test_colours_begin_anew() -> None:
    names = [f"line {number}" for number in range(len(PALETTE) + 1)]
    found = colours(names)
    assert found[names[0]] == found[names[-1]] != found[names[1]]


def test_slug() -> None:
    assert slug("task recall, V 16") == "task-recall-v-16"
    assert slug("gdn(negative=true)") == "gdn-negative-true"


def test_the_table_shows_every_seed_of_the_best_rate() -> None:
    shown = shown_rows(Toy(), table())
    assert shown.columns[:4] == ("mechanism", "n", "stack", "median")
    line = dict(zip(shown.columns, shown.rows[2], strict=True))
    assert line["median"] == "69.5 %"
    assert line["every seed"].startswith("70.0 % (64.0-75.4), 69.5 %")
    assert line["rate"] == "0.003 of 2"
    assert line["chance"] == "6.2 %"
    assert line["solved"] == "0 of 3"
    assert len(shown.rows) == 4


def test_no_label_hides_a_column_and_none_a_label() -> None:
    for name, one in EXPERIMENTS.items():
        columns = shown_rows(one, pretended(one, "smoke", lambda run: 1.0)).columns
        assert len(set(columns)) == len(columns), name


def test_labels_that_never_change_stand_in_the_title() -> None:
    only = table()
    shown = shown_rows(Toy(), replace(only, rows=only.rows[:1]))
    assert "mechanism full, n 16" in shown.title
    assert shown.columns[0] == "median"


def test_diverged_seeds_are_said() -> None:
    one = row(
        {"mechanism": "gdn", "n": 8, "stack": "gdn*2"},
        {3e-3: [trial(0, 900), trial(1, 800), diverged(2)]},
    )
    small = made("toy", one)
    assert "diverged at 500" in shown_rows(Toy(), small).rows[0][1]
    assert any("1 of the trainings diverged" in note for note in notes(small))


def test_data_is_json() -> None:
    found = json.loads(json.dumps(data(Toy(), table()), allow_nan=False))
    assert found["rows"][0]["rates"][0]["seeds"][0]["accuracy"] == 1.0
    assert len(found["rows"]) == 4


def test_no_claim_from_two_seeds() -> None:
    two = row({"mechanism": "gdn", "n": 8}, {3e-3: [trial(0, 900), trial(1, 900)]})
    assert not claimed([two])
    assert not claimed([None])
    assert claimed(list(table().rows))


def test_parts_keep_the_order() -> None:
    found = parts(("mechanism",), table())
    assert [key for key, _ in found] == [("full",), ("linear",)]
    assert [len(part.rows) for _, part in found] == [2, 2]
    assert parts((), table()) == [((), table())]


def test_a_cell_has_every_seed_at_every_rate() -> None:
    run = Run(architecture="full", task="eva:n=4,V=4", seed=7)
    found = cell({"n": 4}, run, seeds=3, rates=(1e-3, 3e-3))
    assert found.labels == {"n": 4, "stack": "full"}
    assert {(one.seed, one.learning_rate) for one in found.runs} == {
        (seed, rate) for seed in range(3) for rate in (1e-3, 3e-3)
    }


def test_a_cell_of_different_runs_is_refused() -> None:
    run = Run(architecture="full", task="eva:n=4,V=4", seed=0)
    with pytest.raises(SpecError, match="differ in more"):
        Cell({"n": 4}, (run, replace(run, steps=7)))
    with pytest.raises(SpecError, match="or none"):
        Cell({"n": 4}, ())
