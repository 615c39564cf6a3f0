"""An experiment: a grid of runs, an axis of layouts, and one page of text.

Its page is a Markdown file. Between two lines `---` at its head stand, as YAML: `title` and
`question`; `baseline`, `grid` and `seeds` as in the file of a sweep; `layouts`, the axis, by name
(a stack, or a mapping with `architecture` and what else is the layout's own, such as its
`learning_rate`); and `contrasts`, pairs of cells named before the first run, or lists of them by
question. Without `layouts` the recorded results name its runs. `pictures` are named, each with a
`title` and either `cells` or `curves`, names of cells, `*` for any letters. Below stands the text,
with claims (`claims.py`) and, in the same braces, `table` (`table a-* !*-b` of those cells),
`contrasts` (of one question, where it is named) and pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from separatrix.cards.measured.table import Label, Row, read
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.core.evidence.canonical import json_object
from separatrix.models.stored.run import Run

LEAST_SEEDS = 8
"""With fewer, no contrast of several can be shown."""
BESIDE = ("seed", "learning_rate")
"""Fields in which the runs of a cell differ."""
_SWEEP = ("baseline", "grid", "seeds")
_KEYS = ("title", "question", *_SWEEP, "layouts", "contrasts", "pictures")


class Planned(NamedTuple):
    """What is measured with several seeds."""

    labels: dict[str, Label]
    runs: tuple[Run, ...]


TESTS = ("steps", "solved", "longer")


class Contrast(NamedTuple):
    """Two cells that are compared, named before the first run."""

    one: str
    other: str
    test: Literal["steps", "solved", "longer"] = "steps"
    """Steps to solve, paired by seed; how many seeds solved it; or the share of right answers at
    the longest size of seeds that solved both, paired.
    """
    question: str = ""
    """Holm is over the contrasts of one question."""


class Picture(NamedTuple):
    """What a picture shows: steps until each seed solved the task, or running accuracies."""

    title: str
    cells: tuple[str, ...] = ()
    """Their names, `*` for any letters; all where none are given."""
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
    text: str = ""
    """With claims, behind as many empty lines as the page's head has; "" where nothing is said."""

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
    from yaml import safe_load

    begin, *rest = path.read_text(encoding="utf-8").split("---\n", 2)
    head = None if begin or len(rest) != 2 else json_object(safe_load(rest[0]))
    for key in head or {}:
        if key not in _KEYS:
            raise UnknownNameError.of("key", str(key)[:60], _KEYS, where=f" of {path.name}")
    if head is None or not {"title", "question"} <= head.keys():
        raise SpecError(
            f"{path.name}: a page begins with `---`, title and question, other keys of"
            f" {', '.join(_KEYS)}, and `---`"
        )
    named = head.get("contrasts") or []
    asked = named if isinstance(named, dict) else {"": named}
    if any(one[2:] not in ([], *([test] for test in TESTS)) for of in asked.values() for one in of):
        raise SpecError(f"{path.name}: a contrast is of two cells, and of one of {TESTS}")
    return Experiment(
        name=path.stem,
        title=head["title"],
        question=head["question"],
        layouts=head.get("layouts", {}),
        sweep={name: head[name] for name in _SWEEP if name in head},
        contrasts=tuple(
            Contrast(*one)._replace(question=question)
            for question, every in asked.items()
            for one in every
        ),
        pictures={
            name: Picture(one["title"], (*one.get("cells", ()), *curves), bool(curves))
            for name, one in head.get("pictures", {}).items()
            for curves in [one.get("curves", ())]
        },
        text="\n" * (rest[0].count("\n") + 2) + rest[1],
    )
