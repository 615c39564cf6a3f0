"""What the experiment `zoology` trains, and what it says of tables made by hand."""

from __future__ import annotations

import pytest
from support.practice_tables import row, table, trial

from separatrix.experiments.zoology import Zoology
from separatrix.practice.table import Row


def cell(mechanism: str, width: int, *right: int) -> Row:
    labels = {"mechanism": mechanism, "width": width, "length": 64, "pairs": 8}
    return row(labels, {0.01: [trial(seed, count) for seed, count in enumerate(right)]})


@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu"])
def test_every_cell_can_be_trained(scale: str) -> None:
    for one in Zoology().cells(scale):  # type: ignore[arg-type]
        run = one.runs[0]
        run.check()
        assert run.width == one.labels["width"]
        assert run.trained.length == one.labels["length"]
        assert len(run.stack) == 2


def test_the_published_shape_is_recognised() -> None:
    rows = (
        cell("full", 8, 950, 960, 940),
        cell("full", 16, 990, 990, 990),
        cell("gdn", 8, 300, 300, 300),
        cell("gdn", 16, 950, 960, 940),
        cell("linear", 16, 100, 200, 300),
    )
    said = Zoology().findings(table("zoology", *rows))
    assert "full first at 8, gdn first at 16, linear at none" in said[0]
    assert "linear 20.0 %" in said[0]
    assert "order of attention before all others holds" in said[1]


def test_what_contradicts_it_comes_first() -> None:
    rows = (
        cell("full", 8, 300, 300, 300),
        cell("full", 16, 990, 990, 990),
        cell("gdn", 8, 950, 960, 940),
    )
    said = Zoology().findings(table("zoology", *rows))
    assert "full attention reaches 90% first at width 16, not at 8" in said[0]
    assert "gdn reach it at no larger width than full attention" in said[1]
    assert not any("holds at this scale" in sentence for sentence in said)
    failed = (cell("full", 8, 300, 300, 300), cell("gdn", 8, 200, 200, 200))
    first = Zoology().findings(table("zoology", *failed))[0]
    assert "it failed to train, which is not that it cannot" in first


def test_equal_at_the_smallest_width_is_no_order() -> None:
    rows = (
        cell("full", 8, 990, 990, 990),
        cell("gdn", 8, 990, 990, 990),
        cell("linear", 8, 300, 300, 300),
    )
    said = Zoology().findings(table("zoology", *rows))
    assert "gdn reach it at the smallest width that was tried, as full attention does" in said[-1]
    assert not any("order" in sentence for sentence in said)
