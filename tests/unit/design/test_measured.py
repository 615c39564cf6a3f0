"""`design --evidence measured`: layouts in the order of what training found, placement, and what
one more full layer buys; honest where nothing was measured.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.found_tables import SAMPLES, install, seeds
from support.practice_tables import row, table

from separatrix.cli.main import run
from separatrix.design import Choices, DesignResult, Place, design, space_of, task_for_context
from separatrix.design.measured import Measured, measured, told_apart
from separatrix.numbers.amounts import parse_bits
from separatrix.report.measured import measured_json

CONTEXT = 1024


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "results", *(make() for make in SAMPLES))


def found(
    *tasks: str,
    layers: int = 8,
    budget: str = "1GiB",
    bounded: str = "gdn",
    state: int = 32,
    place: Place = "any",
) -> Measured:
    choices = Choices(
        layers=(layers,),
        bounded=(bounded,),
        places=(place,),
        heads=2,
        head_dim=64,
        states=(state,),
    )
    return measured(searched(tasks, parse_bits(budget), choices))


@cache
def searched(tasks: tuple[str, ...], bits: int, choices: Choices) -> DesignResult:
    """What is proved, which no result of an experiment changes."""
    asked = [task_for_context(text, CONTEXT) for text in tasks]
    return design(asked, context=CONTEXT, cache_bits=bits, space=space_of(choices))


def test_layouts_are_ranked_by_the_least_of_their_tasks() -> None:
    """Two steps: 0.31 with one full layer, 0.998 with two; recall: 0.93 at 7:1, 0.99 at 3:1 and
    0.999 at 1:1. So 1:1 leads with the 0.998 of two steps.
    """
    both = found("seqcomp:L=2", "eva:V=16")
    first = both.ranked[0]
    assert (first.layout.arrangement.reading, first.row.median) == (4, Fraction(998, 1000))
    assert first.proved
    assert first.solved
    by_full = {one.layout.arrangement.reading: one.row.median for one in reversed(both.ranked)}
    assert by_full[1] == Fraction(31, 100)
    assert by_full[2] == Fraction(99, 100)
    medians = [one.row.median for one in both.ranked]
    assert medians == sorted(medians, reverse=True)
    assert both.unmeasured == ()


def test_places_stand_beside_each_other_and_rank_what_ratios_do_not() -> None:
    """Ratios were trained with full layers spread; so others are ranked by place where they are all
    that is asked for.
    """
    recall = found("eva:V=16")
    assert all(one.matches[0][1].experiment == "ratio" for one in recall.ranked)
    two = [one for one in recall.ranked if one.layout.arrangement.reading == 2]
    assert [one.layout.place for one in two] == ["evenly spaced"]
    ((task, rows),) = recall.places
    assert task.name == "eva"
    assert {place: one.median for place, one in rows} == {
        "first": Fraction(7, 10),
        "middle": Fraction(9, 10),
        "last": Fraction(96, 100),
        "spread": Fraction(98, 100),
    }
    places: dict[Place, Fraction] = {"start": Fraction(7, 10), "end": Fraction(96, 100)}
    for place, share in places.items():
        first = found("eva:V=16", place=place).ranked[0]
        assert (first.row.median, first.matches[0][1].experiment) == (share, "placement")


def test_where_recurrent_layers_stand_tells_steps_apart() -> None:
    """Two full layers behind a recurrent one: 0.998; before it: 0.34."""
    steps = found("seqcomp:L=2")
    two = {
        one.layout.place: one.row.median
        for one in steps.ranked
        if one.layout.arrangement.reading == 2
    }
    assert two["at the start"] == Fraction(34, 100)
    assert max(value for place, value in two.items() if place != "at the start") == Fraction(
        998, 1000
    )


def test_one_more_full_layer() -> None:
    """A full layer more is a step more, proved; 0.69 more of two steps, measured; and its keys and
    values, 2 heads of 64 + 64 numbers of 16 bits a token, less the
    state of 2 x 32 x 64 that it replaces.
    """
    one, two = found("seqcomp:L=2").rungs[:2]
    assert [(rung.full, rung.steps) for rung in (one, two)] == [(1, 1), (2, 2)]
    kept = 16 * (CONTEXT * 2 * 128 - 2 * 32 * 64)
    assert two.cost.cache_bits - one.cost.cache_bits == kept
    ((title, row),) = two.measured
    assert title == "composition, 2 steps"
    assert row is not None
    assert row.median == Fraction(998, 1000)
    (said, *_) = measured_json(found("seqcomp:L=2"))["more_full_layers"]
    assert said.startswith("1 -> 2 full layers: +1 step proved, +0.69 measured accuracy")


def test_what_was_not_measured_ranks_nothing() -> None:
    for nothing in (found("equality"), found("eva:V=16", bounded="mamba2"), found("seqcomp:L=5")):
        assert nothing.ranked == ()
        assert len(nothing.unmeasured) == 1
    mixed = found("eva:V=16", "equality")
    assert [task.name for task in mixed.unmeasured] == ["equality"]
    assert mixed.ranked


def test_a_package_without_results_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, tmp_path / "none")
    asked = ["--task", "eva:V=16", "--context", "512", "--cache", "1GiB", "--layers", "4"]
    assert run(["design", *asked, "--evidence", "measured"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "no experiment measured it with such layouts, so it ranks none" in text
    assert "nothing to rank" in text
    assert "Proved sufficient" in text


def test_no_layout_beyond_the_budget_or_excluded_is_ranked() -> None:
    """1,023 facts of 10^12 values take 40,781 bits: eight states of 2 x 32 x 64 numbers of 16 bits
    hold them, eight of 2 x 1 x 64 numbers have 16,384 bits.
    """
    small = found("eva:V=16", budget="300KiB")
    assert small.ranked
    assert all(one.cost.cache_bits <= 300 * 8192 for one in small.ranked)
    values = 10**12
    held = found(f"eva:V={values}")
    excluded = found(f"eva:V={values}", state=1)
    assert 0 in {one.layout.arrangement.reading for one in held.ranked}
    assert 0 not in {one.layout.arrangement.reading for one in excluded.ranked}
    assert excluded.ranked


def test_overlapping_intervals_tell_nothing_apart() -> None:
    recall = found("eva:V=16")
    first, *_, last = recall.ranked
    assert told_apart(first, last)
    assert not told_apart(first, first)


def test_two_seeds_rank_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels: dict[str, str | int] = {"mechanism": "gdn", "ratio": 1, "layers": 2, "task": "recall"}
    few = row(labels, seeds(900, 900), architecture="gdn + full")
    install(monkeypatch, tmp_path / "few", table("ratio", few))
    assert found("eva:V=16").ranked == ()


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["design", "--task", "seqcomp:L=2", "--task", "eva:V=16", "--context", "1024"]
    asked += ["--cache", "1GiB", "--layers", "8", "--bounded", "gdn", "--state", "32"]
    assert run([*asked, "--json"]) == 0
    plain: Any = json.loads(capsys.readouterr().out)
    assert run([*asked, "--evidence", "measured", "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    # what is proved is the same, and stands apart
    assert {key: value for key, value in data.items() if key != "measured"} == plain
    first = data["measured"]["ranked"][0]
    assert first["proved_sufficient"] is True
    assert first["evidence"][0]["rows"][0]["seeds"] == 3
    assert run([*asked, "--evidence", "measured"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "1 -> 2 full layers: +1 step proved, +0.69 measured accuracy (composition, 2 steps)" in text
    )
    assert "in the middle: 0.90" in text
    assert "not told apart from the one above: their intervals overlap" in text
    assert run([*asked, "--evidence", "mesured"]) == 2
    assert "Did you mean 'measured'?" in capsys.readouterr().err
