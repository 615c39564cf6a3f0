"""What the experiment `length` trains, and what it says of tables made by hand."""

from __future__ import annotations

import pytest
from support.practice_tables import row, table, trial

from separatrix.experiments.length import Length, lengths
from separatrix.practice.table import Longer, Row


def cell(mechanism: str, own: int, twice: int, four: int) -> Row:
    longer = (
        Longer(size="n=32,queries=8", correct=0, right=twice, due=1000),
        Longer(size="n=64,queries=8", correct=0, right=four, due=1000),
    )
    labels = {"mechanism": mechanism, "task": "state tracking", "trained": 16}
    return row(
        labels,
        {0.01: [trial(seed, own, longer=longer) for seed in range(3)]},
        task="parity:n=16,queries=all",
    )


@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu"])
def test_every_cell_can_be_trained(scale: str) -> None:
    for one in Length().cells(scale):  # type: ignore[arg-type]
        run = one.runs[0]
        run.check()
        assert run.trained.length == one.labels["trained"]
        assert all(task.length > run.trained.length for task in run.longer_tasks)
        recurrent = [layer[0] for layer in run.stack.layers if layer[0].group == "recurrent"]
        # places of recurrent layers would be numbers that no training has seen
        assert all(part.seen_positions == "none" for part in recurrent)


def test_each_length_is_a_row_of_the_figure() -> None:
    shown = lengths(table("length", cell("gdn", 1000, 990, 500)))
    found = {row.labels["tested"]: row.median for row in shown.rows}
    assert {tokens: float(share) for tokens, share in found.items()} == {
        16: 1.0,
        32: 0.99,
        64: 0.5,
    }


def test_who_holds_and_who_does_not() -> None:
    rows = (
        cell("gdn", 1000, 990, 950),
        cell("full, rotated", 1000, 990, 520),
        cell("mamba2", 600, 500, 500),
    )
    said = Length().findings(table("length", *rows))
    assert "full, rotated beyond 32 tokens (at 64: 52.0 %)" in said[0]
    assert "kept up to 64 tokens, 4.0 times the trained length: gdn." in said[1]
    assert "not learned at 16 tokens in this budget, medians: mamba2 (60.0 %)" in said[2]
