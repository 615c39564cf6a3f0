"""An experiment: a grid of runs, an axis of layouts, and one page of text.

Its page is a Markdown file. Between two lines `---` at its head stand, as YAML: `title` and
`question`; `baseline`, `grid` and `seeds` as in the file of a sweep; `layouts`, the axis, by name
(a stack, or a mapping with `architecture` and what else is the layout's own, such as its
`learning_rate`); and `contrasts`, pairs of cells named before the first run. Without `layouts` the
recorded results name its runs. `pictures` are named, each with a `title` and either `cells` or
`curves`, names of cells. Below stands the text, with claims (`claims.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from separatrix.cards.measured.table import Label, Row, read
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.training.run import Run

LEAST_SEEDS = 8
"""With fewer, no contrast of several can be shown."""
BESIDE = ("seed", "learning_rate")
"""Fields in which the runs of a cell differ."""
_SWEEP = ("baseline", "grid", "seeds")
_KEYS = ("title", "question", *_SWEEP, "layouts", "contrasts", "pictures")
_TESTS = ("steps", "solved")


class Planned(NamedTuple):
    """What is measured with several seeds."""

    labels: dict[str, Label]
    runs: tuple[Run, ...]


class Contrast(NamedTuple):
    """Two cells that are compared, named before the first run."""

    one: str
    other: str
    test: str = "steps"
    """Steps to solve, paired by seed; or how many seeds solved it."""


class Picture(NamedTuple):
    """What a picture shows: steps until each seed solved the task, or running accuracies."""

    title: str
    cells: tuple[str, ...] = ()
    """All where none are named. One that is not trained yet is left out."""
    curves: bool = False


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question that training answers."""

    name: str
    title: str
    question: str
    layouts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Name -> fields of the runs of that layout; none where recorded results name the runs."""
    sweep: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`baseline`, `grid` and `seeds`, as the file of a sweep has them."""
    contrasts: tuple[Contrast, ...] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict[str, Picture])
    """By name; where there are none, one of all cells."""
    text: str = ""
    """With claims; "" where nothing is said."""
    first: int = 1
    """The line of the page's file at which the text begins."""

    def cells(self) -> tuple[Planned, ...]:
        """What is trained. Raises what a sweep raises for fields that are wrong, and SpecError for
        an experiment that says no runs.
        """
        if self.layouts:
            return tuple(one for name in self.layouts for one in self._cells(name))
        table = read(self.name)
        if table is None:
            raise SpecError(f"{self.name}: the package holds no results that name its runs")
        return tuple(
            Planned(
                dict(row.labels),
                tuple(
                    recorded_run(row, rate.learning_rate, one.seed)
                    for rate in row.rates
                    for one in rate.trials
                ),
            )
            for row in table.rows
        )

    def _cells(self, name: str) -> list[Planned]:
        from separatrix.training.sweeps.cells import cells, label, varied
        from separatrix.training.sweeps.file import python_sweep

        own = self.layouts[name]
        fields = json_object(own) or {"architecture": own}
        source = {**self.sweep, "baseline": {**self.sweep.get("baseline", {}), **fields}}
        found = cells(python_sweep(source, name=f"{self.name}: {name}").runs)
        differ = varied(found)
        said = [f"{name}, {label(cell, differ)}" if differ else name for cell in found]
        return [
            Planned({"layout": name, "cell": each, "stack": cell.architecture}, tuple(runs))
            for each, (cell, runs) in zip(said, found.items(), strict=True)
        ]


def recorded_run(row: Row, rate: float, seed: int) -> Run:
    """The run of a recorded row, at a learning rate and with a seed. Raises SpecError,
    UnknownNameError or SizeError for one that this version cannot train.
    """
    return Run.from_json({**row.run, "seed": seed, "learning_rate": rate})


def read_page(path: Path) -> Experiment:
    """The experiment of a page. Raises SpecError, or UnknownNameError for a misspelt key."""
    from yaml import YAMLError, safe_load

    begin, *rest = path.read_text(encoding="utf-8").split("---\n", 2)
    if begin or len(rest) != 2:
        raise SpecError(f"{path.name}: a page begins with `---`, its grid and axis, and `---`")
    try:
        head = json_object(safe_load(rest[0]))
    except YAMLError as error:
        raise SpecError(f"{path.name}: {' '.join(str(error).split())}") from None
    if head is None:
        raise SpecError(f"{path.name}: its head is a mapping with {', '.join(_KEYS)}")
    for key in head:
        if key not in _KEYS:
            raise UnknownNameError.of("key", str(key)[:60], _KEYS, where=f" of {path.name}")
    text = all(isinstance(head.get(key), str) for key in ("title", "question"))
    layouts = json_object(head.get("layouts", {}))
    if not text or layouts is None or (not layouts and any(key in head for key in _SWEEP)):
        raise SpecError(f"{path.name}: needs a title, a question, and with a grid layouts by name")
    pictures = json_object(head.get("pictures")) or {}
    return Experiment(
        name=path.stem,
        title=head["title"],
        question=head["question"],
        layouts=layouts,
        sweep={name: head[name] for name in _SWEEP if name in head},
        contrasts=tuple(_contrast(x, path.name) for x in json_list(head.get("contrasts")) or ()),
        pictures={
            name: _picture(one, f"{path.name}: the picture {name}")
            for name, one in pictures.items()
        },
        text=rest[1].strip("\n"),
        first=rest[0].count("\n") + 3 + len(rest[1]) - len(rest[1].lstrip("\n")),
    )


def _contrast(one: object, where: str) -> Contrast:
    match json_list(one):
        case [cell, other, *test] if test in ([], *([x] for x in _TESTS)):
            return Contrast(str(cell), str(other), *map(str, test))
        case _:
            raise SpecError(
                f"{where}: a contrast is a list of two cells, and of what is compared:"
                f" {' or '.join(_TESTS)}"
            )


def _picture(said: object, where: str) -> Picture:
    match json_object(said):
        case {"title": str(title), "cells": [*cells]}:
            return Picture(title, tuple(map(str, cells)))
        case {"title": str(title), "curves": [*cells]}:
            return Picture(title, tuple(map(str, cells)), curves=True)
        case _:
            raise SpecError(f"{where} needs a title, and names of cells as `cells` or `curves`")
