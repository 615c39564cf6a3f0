"""The picture of an experiment, steps until each seed solved the task, and the folder for it."""

from __future__ import annotations

from pathlib import Path

from separatrix.cards.measured.table import Table
from separatrix.core.document.plot import (
    FAILS,
    MUTED,
    SOLVES,
    Axis,
    Dot,
    Drawing,
    linear_axis,
)
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.folder import new_folder
from separatrix.findings.base import Experiment
from separatrix.findings.page import made, notes, section
from separatrix.findings.results import Results

KINDS = {
    "solved": ("circle", SOLVES),
    "not in all its steps": ("triangle", FAILS),
    "not trained to the end": ("cross", MUTED),
}
"""What a seed may be -> a shape beside a colour, so that it is seen without colours as well."""
_ROW = 24


def picture(experiment: Experiment, results: Results) -> Drawing:
    """A row for each cell, a mark for each seed."""
    cells = list(results.cells.values())
    marks: list[Dot] = []
    solved, short, cut = KINDS
    for row, cell in enumerate(cells):
        for place, seed in enumerate(cell.seeds):
            steps = seed.steps if seed.solved else cell.steps
            kind = cut if results.grey(cell) else solved if seed.solved else short
            shape, colour = KINDS[kind]
            told = f"{cell.name}, seed {seed.seed}: {kind}, {steps:,} steps"
            told += f", {float(seed.accuracy):.1%}"
            at = row + (place + 1) / (len(cell.seeds) + 1) - 0.5
            marks.append(Dot(steps, at, colour, told, shape, size=3.4))
    ticks = [(float(row), cell.name) for row, cell in enumerate(cells)]
    most = max((mark.x for mark in marks), default=1.0)
    return Drawing(
        x=linear_axis("steps until solved", most * 1.02),
        y=Axis("", len(cells) - 0.5, -0.5, ticks, log=False, grid=True),
        marks=marks,
        height=max(2, len(cells)) * _ROW,
        title=experiment.title,
        below=[experiment.question, f"circle: {solved}; triangle: {short}; cross: {cut}"],
    )


def write_picture(experiment: Experiment, results: Results, path: Path) -> None:
    """Draws it as SVG, in place of an older one. Raises OutputError."""
    drawing = picture(experiment, results)
    path.unlink(missing_ok=True)
    drawing.write(path)


def write_out(experiment: Experiment, table: Table, results: Results, out: Path) -> None:
    """A new folder with page, picture and numbers, whole or not at all. Raises what a claim raises
    that the rows do not bear.
    """
    name = f"experiment-{experiment.name}.svg"
    said = [*notes(results), made(table)]
    page = section(experiment, results, said, picture=name, heading="#")
    with new_folder(out) as folder:
        write_picture(experiment, results, folder / name)
        write_atomic(folder / f"{experiment.name}.md", page)
        write_atomic(folder / f"{experiment.name}.json", table.text())
