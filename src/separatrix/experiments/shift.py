"""What training finds on one way of drawing prompts, tested on others: worst-case against natural
distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, ClassVar

from separatrix.evidence.records import SOLVED
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
from separatrix.experiments.saying import listed
from separatrix.experiments.showing import share
from separatrix.practice.table import Longer, Row, Scale, Table, Trial
from separatrix.tasks.base.task import PLAIN
from separatrix.tasks.drawing.distinct import FEW
from separatrix.training.run import Run

DRAWS = {"eva": (PLAIN, "zipf", "few"), "parity": (PLAIN, "few")}
"""The draws of each task, the plain one first."""
STACKS = {
    "eva": (("gdn", "gdn*2 @ heads=1, head_dim=8"), ("full", "full*2 @ heads=2, head_dim=16")),
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
        "eva": Size("eva:n=4,V=8,queries=all", 20),
        "parity": Size("parity:n=8,queries=all", 20),
    },
    "laptop": {
        "eva": Size("eva:n=24,V=16,queries=all", 400),
        "parity": Size("parity:n=16,queries=all", 300),
    },
    "gpu": {
        "eva": Size("eva:n=128,V=64,queries=all", 10_000),
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
        "task": "look-up of independent facts (eva), or parity after every bit",
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
        rows = [row for row in table.rows if claimed([row])]
        lost = [row for row in rows if _loss(row) >= LEAST]
        others = [row for row in rows if row not in lost]
        kept = [row for row in others if medians(row)[_own(row)] >= SOLVED]
        weak = [row for row in others if row not in kept]
        found = [_told(row) for row in (*lost, *weak)]
        if any(_own(row) == "few" and "V" in row.task.sizes() for row in lost):
            found.append(
                f"shift=few shows the first {FEW} values only, so that training never saw the"
                " others answered: what is lost there is no surprise."
            )
        if kept:
            named = listed([f"{row.labels['mechanism']} on {row.labels['task']}" for row in kept])
            found.append(
                f"{len(kept)} of {len(rows)} rows solve the draw they trained on and lose less than"
                f" {100 * LEAST} points on any other: {named}."
            )
        return tuple(found)


def _own(row: Row) -> str:
    return str(row.labels["trained"])


def _loss(row: Row) -> Fraction:
    """How much less is right on the draw where least is than on the draw trained on."""
    found = medians(row)
    return found[_own(row)] - min(found.values())


def _told(row: Row) -> str:
    """A row's medians, its own draw first."""
    found = medians(row)
    others = ", ".join(
        f"{share(accuracy)} on {spoken(draw)}"
        for draw, accuracy in found.items()
        if draw != _own(row)
    )
    return (
        f"{row.labels['mechanism']} on {row.labels['task']}, trained on {spoken(_own(row))}:"
        f" {share(found[_own(row)])} there, {others} (medians of {len(row.trials)} seeds)."
    )


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
