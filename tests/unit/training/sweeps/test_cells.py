"""Cells: what seeds and learning rates share."""

from __future__ import annotations

from dataclasses import replace

from separatrix.models.stored.run import Run
from separatrix.training.sweeps.cells import cells, label, varied

RUNS = [
    Run(architecture=stack, task="eva:n=4,V=4", seed=seed, learning_rate=rate, width=width)
    for stack, width in (("full", 16), ("full + full", 32), ("gdn", 32))
    for rate in (1e-3, 1e-2)
    for seed in (0, 5)
]


def test_seeds_and_learning_rates_are_one_cell() -> None:
    found = cells(RUNS)
    assert [*found.values()] == [RUNS[at : at + 4] for at in (0, 4, 8)]
    assert varied(found) == ("architecture", "width")
    assert [label(cell, varied(found)) for cell in found] == [
        "full, width 16",
        "full*2, width 32",  # as canonical texts write it
        "gdn, width 32",
    ]


def test_other_fields_are_other_cells() -> None:
    run = RUNS[0]
    others = [
        replace(run, weight_decay=0.0),
        replace(run, seed=9),
        replace(run, optimiser="adamw"),
    ]
    found = cells([run, *others])
    assert [len(runs) for runs in found.values()] == [2, 1, 1]
    assert varied(found) == ("optimiser", "weight_decay")
    assert label(next(iter(found)), ("weight_decay",)) == "weight_decay 0.01"


def test_one_cell_is_named_by_its_stack() -> None:
    (cell,) = cells(RUNS[:4])
    assert label(cell, varied([cell])) == "full"
    assert label(cell, ("longer",)) == "longer none"
