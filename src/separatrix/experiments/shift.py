"""What training finds on one way of drawing prompts, tested on others: worst-case against natural
distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, ClassVar

from separatrix.experiments.base import (
    LEAST_SEEDS,
    Cell,
    Experiment,
    Line,
    cell,
    claimed,
    grouped,
    parts,
)
from separatrix.practice.table import Longer, Row, Scale, Table, Trial
from separatrix.tasks.base.task import PLAIN
from separatrix.training.run import Run

DRAWS = {"recall": (PLAIN, "zipf", "few"), "parity": (PLAIN, "few")}
"""The draws of each task, the plain one first."""
STACKS = {
    "recall": (("gdn", "gdn*2 @ heads=1, head_dim=16"), ("full", "full*2 @ heads=2, head_dim=16")),
    "parity": (
        ("gdn(negative=true)", "gdn(negative=true) @ heads=1, head_dim=16"),
        ("gdn", "gdn @ heads=1, head_dim=16"),
        ("full", "full*2 @ heads=2, head_dim=16"),
    ),
}
RATES = (3e-3, 1e-2)
"""Learning rates of every stack."""
LEAST = Fraction(1, 20)
"""By how much accuracies differ where a sentence says so."""


@dataclass(frozen=True)
class Size:
    """A task at a scale, and how long it is trained."""

    task: str
    steps: int


SIZES: dict[Scale, dict[str, Size]] = {
    "smoke": {
        "recall": Size("recall:n=4,K=8,V=4,form=independent,queries=all", 20),
        "parity": Size("parity:n=8,queries=all", 20),
    },
    "laptop": {
        "recall": Size("recall:n=8,K=16,V=16,form=independent,queries=all", 1000),
        "parity": Size("parity:n=16,queries=all", 300),
    },
    "gpu": {
        "recall": Size("recall:n=32,K=64,V=64,form=independent,queries=all", 10_000),
        "parity": Size("parity:n=256,queries=all", 4_000),
    },
}


class Shift(Experiment):
    """Every stack is trained on each draw of a task, and tested on all of them."""

    name = "shift"
    title = "Worst-case and natural distributions"
    question = (
        "Does a stack that was trained on prompts of one distribution answer those of another?"
    )
    says = (
        "Verdicts are about all inputs, so that how prompts are drawn changes none of them; Theorem"
        " A's ceiling is about uniform facts, the plain draw, and bounds answers on it wherever the"
        " weights come from. What training on one draw gives on another, no theorem says."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "the token mixer of every layer",
        "task": "recall of independent facts, or parity after every bit",
        "trained": "the draw trained on: none is the plain one, with uniform values; zipf and few"
        " are shifts of the task",
    }
    x = "trained"
    x_title = "draw trained on, then tested on"
    series = ("mechanism",)
    panels = ("task",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        return tuple(
            cell(
                {"mechanism": mechanism, "task": task, "trained": draw},
                Run(
                    architecture=stack,
                    task=drawn(SIZES[scale][task].task, draw),
                    seed=0,
                    steps=SIZES[scale][task].steps,
                    batch=64,
                    width=32,
                    hidden=64,
                    tested=256 if scale == "laptop" else 64 if scale == "smoke" else 1024,
                    longer=tuple(f"shift={other}" for other in draws if other != draw),
                ),
                seeds=LEAST_SEEDS[scale],
                rates=RATES if scale != "smoke" else RATES[:1],
            )
            for task, draws in DRAWS.items()
            for mechanism, stack in STACKS[task]
            for draw in draws
        )

    def lines(self, table: Table) -> tuple[Line, ...]:
        """Chance on each draw that is tested, and Theorem A's ceilings on the plain one."""
        from separatrix.experiments.lines import DASHED, DOTTED, ceiling
        from separatrix.numbers.accuracy import WHOLE

        chances: dict[str, float] = {}
        ceilings: dict[str, dict[str, float]] = {}
        for row in table.rows:
            for draw in DRAWS[str(row.labels["task"])]:
                said = words(row, draw)
                tested = row.task.with_sizes({"shift": draw})
                chances[said] = float(tested.chance)
                found = ceiling(row, tested) if draw == PLAIN else None
                if found is not None and found.at_most < WHOLE:
                    name = self.line_of(row)
                    ceilings.setdefault(name, {})[said] = found.at_most / WHOLE
        guessed = Line(
            label="chance",
            points=tuple(chances.items()),
            dash=DOTTED,
            text="Chance is the best constant guess on the draw that is tested.",
        )
        bounds = (
            Line(
                label=f"no weights exceed it: {name}",
                points=tuple(points.items()),
                dash=DASHED,
                series=name,
                text="Dashed: no weights exceed it (Theorem A).",
            )
            for name, points in ceilings.items()
        )
        return (guessed, *bounds)

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        """A figure for each task: what each draw trained on gives on each draw tested."""
        from separatrix.experiments.drawing import (
            Series,
            chart,
            colours,
            mark,
            places,
            slug,
            subtitle,
        )

        found: dict[str, dict[str, Any]] = {}
        names = list(grouped(table.rows, self.line_of))
        for (task,), part in parts(self.panels, table):
            lines = self.lines(part)
            series = [
                Series(
                    name=name,
                    marks=tuple(
                        mark(row, trial, words(row, draw), one.accuracy)
                        for row in rows
                        for trial in row.trials
                        for draw, one in tests(row, trial)
                    ),
                )
                for name, rows in grouped(part.rows, self.line_of).items()
            ]
            order = [
                f"{trained}, {tested}"
                for trained in DRAWS[str(task)]
                for tested in DRAWS[str(task)]
            ]
            shown = {one.x for each in series for one in each.marks}
            found[slug(str(task))] = chart(
                f"{self.title}: {task}",
                subtitle(self.question, lines),
                x_title=self.x_title,
                at=places([said for said in order if said in shown]),
                series=series,
                lines=lines,
                colours=colours(names),
            )
        return found

    def findings(self, table: Table) -> tuple[str, ...]:
        drops: list[str] = []
        others: list[str] = []
        for row in table.rows:
            if not claimed([row]):
                continue
            own = median(one.accuracy for one in row.trials)
            solved = own >= Fraction(99, 100)
            for draw, accuracy in medians(row).items():
                name, task, trained = (row.labels[key] for key in ("mechanism", "task", "trained"))
                if draw == trained:
                    continue
                text = (
                    f"{name} on {task}, trained on {spoken(str(trained))}:"
                    f" {percent(own)} there, {percent(accuracy)} on {spoken(draw)}"
                    f" (medians of {len(row.trials)} seeds)."
                )
                if abs(accuracy - own) >= LEAST:
                    drops.append(text)
                elif solved:
                    others.append(text)
        if drops:
            return (*drops, *others)
        head = (
            "No stack loses 5 points or more where it is tested on another draw than it was trained"
            " on.",
        )
        return (*head, *others) if others else ()


def drawn(task: str, draw: str) -> str:
    return task if draw == PLAIN else f"{task},shift={draw}"


def words(row: Row, draw: str) -> str:
    """How a test is called along the axis."""
    return f"{row.labels['trained']}, {draw}"


def spoken(draw: str) -> str:
    return "the plain draw" if draw == PLAIN else f"shift={draw}"


def tests(row: Row, trial: Trial) -> Iterator[tuple[str, Longer]]:
    """What a seed gave on each draw, its own among them."""
    own = str(row.labels["trained"])
    yield own, Longer(f"shift={own}", trial.correct, trial.right, trial.due)
    for one in trial.longer:
        yield one.size.removeprefix("shift="), one


def medians(row: Row) -> dict[str, Fraction]:
    """The median accuracy on each draw, over the seeds that were tested on it."""
    found: dict[str, list[Fraction]] = {}
    for trial in row.trials:
        for draw, one in tests(row, trial):
            found.setdefault(draw, []).append(one.accuracy)
    return {draw: median(accuracies) for draw, accuracies in found.items()}


def percent(accuracy: Fraction) -> str:
    from separatrix.experiments.showing import share

    return share(accuracy)
