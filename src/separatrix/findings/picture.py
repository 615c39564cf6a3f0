"""The pictures of an experiment, and the folder for them and its page."""

from __future__ import annotations

import fnmatch
from itertools import cycle
from pathlib import Path

from separatrix.cards.measured.table import Table
from separatrix.core.document.plot import (
    DASHED,
    DOTTED,
    FAILS,
    MUTED,
    SOLVES,
    Axis,
    Dot,
    Drawing,
    Mark,
    Stroke,
    linear_axis,
    share_axis,
)
from separatrix.core.evidence.folder import new_folder, write_atomic
from separatrix.findings.base import Experiment, Picture
from separatrix.findings.page import made, pictures, section
from separatrix.findings.results import Cell, Results, shown

KINDS = {
    "solved": ("circle", SOLVES),
    "ended unsolved": ("triangle", FAILS),
    "not trained to the end": ("cross", MUTED),
}
"""What a seed may be -> a shape beside a colour, so that it is seen without colours as well."""
_ROW = 24
_LINES = ((SOLVES, ""), (FAILS, DASHED), (MUTED, DOTTED))


def picture(one: Picture, results: Results) -> Drawing:
    """Steps to solve, a row for each cell and a mark for each seed; or curves, a line a seed."""
    found = {name: fnmatch.filter(results.cells, name) for name in one.cells or "*"}
    cells = [results.cells[name] for names in found.values() for name in names]
    return _curves(one, cells) if one.curves else _steps(one, cells, results)


def _steps(one: Picture, cells: list[Cell], results: Results) -> Drawing:
    marks: list[Dot] = []
    solved, short, cut = KINDS
    for row, cell in enumerate(cells):
        for place, seed in enumerate(cell.seeds):
            kind = cut if results.grey(cell) else solved if seed.solved else short
            shape, colour = KINDS[kind]
            steps = seed.steps_done
            told = f"{cell.name}, seed {seed.seed}: {kind}, {steps:,} steps, {shown(seed.accuracy)}"
            at = row + (place + 1) / (len(cell.seeds) + 1) - 0.5
            marks.append(Dot(steps, at, colour, told, shape, size=3.4))
    ticks = [(float(row), cell.name) for row, cell in enumerate(cells)]
    most = max((mark.x for mark in marks), default=1.0)
    return Drawing(
        x=linear_axis("steps until solved, or the end", most * 1.02),
        y=Axis("", len(cells) - 0.5, -0.5, ticks, log=False, grid=True),
        marks=marks,
        height=max(2, len(cells)) * _ROW,
        title=one.title,
        below=[f"circle: {solved}; triangle: {short}; cross: {cut}"],
    )


def _curves(one: Picture, cells: list[Cell]) -> Drawing:
    marks: list[Mark] = []
    looks = dict(zip((cell.name for cell in cells), cycle(_LINES), strict=False))
    for cell in cells:
        colour, dash = looks[cell.name]
        for seed in cell.seeds:
            told = f"{cell.name}, seed {seed.seed}"
            marks.append(Stroke(cell.curves.get(seed.seed, ()), colour, dash, 1.4, told))
    curves = [curve for cell in cells for curve in cell.curves.values()]
    most = max((step for curve in curves for step, _ in curve), default=1)
    dashes = {"": "whole lines", DASHED: "dashed", DOTTED: "dotted"}
    return Drawing(
        x=linear_axis("steps", most * 1.02),
        y=share_axis("running accuracy"),
        marks=marks,
        title=one.title,
        below=[f"{dashes[dash]}: {name}" for name, (_, dash) in looks.items()],
    )


def write_pictures(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Draws them as SVG, in place of older ones. Raises OutputError."""
    written: list[Path] = []
    for file, one in pictures(experiment).values():
        path = folder / file
        path.unlink(missing_ok=True)
        picture(one, results).write(path)
        written.append(path)
    return written


def write_out(one: Experiment, table: Table, results: Results, out: Path, *said: str) -> None:
    """A new folder with page (`said` closes it), pictures and numbers, whole or not at all. Raises
    what a claim raises that the rows do not bear.
    """
    page = section(one, results, *said, made(table), folder="", heading="#")
    with new_folder(out) as folder:
        write_pictures(one, results, folder)
        write_atomic(folder / f"{one.name}.md", page)
        write_atomic(folder / f"{one.name}.json", table.text())
