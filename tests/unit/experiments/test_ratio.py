"""What the experiment `ratio` trains, and what it says of tables made by hand."""

from __future__ import annotations

import pytest
from support.practice_tables import row, table, trial

from separatrix.architecture import Architecture
from separatrix.experiments.ratio import ALL_FULL, NO_FULL, Ratio
from separatrix.practice.shape import Shape
from separatrix.practice.table import Row


def cell(mechanism: str, ratio: int, *right: int, task: str = "recall") -> Row:
    labels = {"mechanism": mechanism, "ratio": ratio, "layers": 4, "task": task}
    return row(labels, {0.01: [trial(seed, count) for seed, count in enumerate(right)]})


@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu"])
def test_stacks_have_the_depth_and_ratio_of_their_labels(scale: str) -> None:
    for one in Ratio().cells(scale):  # type: ignore[arg-type]
        stack = Architecture.parse(one.runs[0].architecture)
        one.runs[0].check()
        full = sum(layer[0].name == "full" for layer in stack.layers)
        assert len(stack) == one.labels["layers"]
        ratio = one.labels["ratio"]
        if ratio in (ALL_FULL, NO_FULL):
            assert full == (len(stack) if ratio == ALL_FULL else 0)
            continue
        # what a card looks up is what stands here
        shape = Shape.of(stack)
        assert shape is not None
        assert shape.ratio == ratio
        assert shape.kind == one.labels["mechanism"]
        assert stack.layers[-1][0].name == "full"


def test_a_ratio_that_loses_recall_is_named() -> None:
    rows = (
        cell("none", ALL_FULL, 1000, 1000, 990),
        cell("gdn", 3, 950, 940, 960),
        cell("linear", 1, 920, 930, 910),
        cell("linear", 3, 500, 600, 400),
        cell("gdn", NO_FULL, 300, 200, 100),
        cell("linear", NO_FULL, 400, 500, 450),
    )
    said = Ratio().findings(table("ratio", *rows))
    assert "(100.0 %) are, in the median, linear from 3:1 on" in said[0]
    assert "without a full layer: linear 45.0 %" in said[1]
    assert "against the published order" in said[1]
    assert said[1].endswith("; none of them learned half of it.")
    assert "at 3:1: gdn 95.0 %" in said[2]
    assert "half of it" not in said[2]
    assert "a delta rule leads, as published" in said[2]


def test_recall_kept_everywhere_contradicts_the_published_study() -> None:
    full = cell("none", ALL_FULL, 1000, 1000, 1000)
    said = Ratio().findings(table("ratio", full, cell("gdn", 7, 999, 999, 999)))
    assert "no mechanism loses up to 7 recurrent layers per full one" in said[0]
    assert "The published study saw recall fall" in said[0]
    # down to one full layer in seven it did not fall there either
    for ratio in (3, 6):
        said = Ratio().findings(table("ratio", full, cell("gdn", ratio, 999, 999, 999)))
        assert "published" not in said[0]


def test_mechanisms_whose_seeds_overlap_have_no_order() -> None:
    for linear in ((1000, 1000, 1000), (999, 1000, 1000), (998, 1000, 1000)):
        rows = (cell("gdn", 3, 999, 999, 1000), cell("linear", 3, *linear))
        (said,) = Ratio().findings(table("ratio", *rows))
        assert "overlap" in said
        assert "leads" not in said


def test_two_seeds_say_nothing() -> None:
    rows = [cell("none", ALL_FULL, 1000, 1000), cell("gdn", 3, 10, 10)]
    assert Ratio().findings(table("ratio", *rows)) == ()


def test_a_ratio_is_not_lost_beyond_one_that_keeps_it() -> None:
    full = cell("none", ALL_FULL, 1000, 1000, 1000)
    kept = (cell("gdn", 1, 500, 500, 500), cell("gdn", 3, 999, 999, 999))
    said = Ratio().findings(table("ratio", full, *kept, cell("gdn", 7, 400, 400, 400)))
    assert said[0].endswith("are, in the median, gdn at 1:1 and 7:1.")


def test_what_full_layers_did_not_learn_no_ratio_loses() -> None:
    full = cell("none", ALL_FULL, 300, 310, 290)
    said = Ratio().findings(table("ratio", full, cell("gdn", 15, 300, 300, 300)))
    assert "full layers alone reach 30.0 % in this budget" in said[0]
    assert "no mechanism loses" not in said[0]


def test_chance_is_one_line_for_stacks_with_and_without_recurrent_layers() -> None:
    rows = (cell("none", ALL_FULL, 1000, 1000, 1000), cell("gdn", 3, 999, 999, 999))
    chance = [line for line in Ratio().lines(table("ratio", *rows)) if line.label == "chance"]
    assert [line.points for line in chance] == [((0, 1 / 16), (3, 1 / 16))]
