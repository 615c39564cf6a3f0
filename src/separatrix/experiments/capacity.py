"""How many facts a trained state holds: bits learned against numbers of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from separatrix.experiments.base import (
    LEAST_SEEDS,
    Cell,
    Experiment,
    Line,
    ShownTable,
    cell,
    grouped,
)
from separatrix.experiments.bits import (
    FORMAT,
    TRAINED_BITS,
    allowed,
    asked_said,
    rounded_bits,
    said,
)
from separatrix.experiments.lines import DOTTED
from separatrix.practice.capacity import best, bits_learned, facts, kept, numbers
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

if TYPE_CHECKING:
    from separatrix.experiments.drawing import Heights, Mark

RATES = (1e-2, 2e-2)
"""Searched for every mechanism and optimiser."""
Optimiser = Literal["muon", "adamw"]
OPTIMISERS: tuple[Optimiser, ...] = ("muon", "adamw")

Stack = Callable[[int], str]
"""The stack of one layer whose state holds d^2 numbers, or nearly so."""


def _matrix(name: str) -> Stack:
    return lambda d: f"{name} @ heads=1, head_dim={d}"


STACKS: dict[str, Stack] = {
    # a normaliser takes a row of the matrix
    "linear": lambda d: f"linear @ heads=1, head_dim={d}, value_dim={d - 1}",
    "lightning": _matrix("lightning"),
    "retnet": _matrix("retnet"),
    "gla": _matrix("gla"),
    "hgrn2": _matrix("hgrn2"),
    "deltanet": _matrix("deltanet"),
    "gdn": _matrix("gdn"),
    "deltaproduct": _matrix("deltaproduct"),
    "kda": _matrix("kda"),
    # normaliser and running maximum
    "mlstm": lambda d: f"mlstm @ heads=1, head_dim={d - 1}, value_dim={d}",
    # four buckets, or five, of 8 to 31 tokens
    "loglinear": lambda d: f"loglinear @ heads=1, head_dim={d // 2}",
    "mamba": lambda d: f"mamba @ width={d}, state={d}",
    "mamba2": lambda d: f"mamba2 @ heads=1, head_dim={d}, state={d}",
    "rglru": lambda d: f"rglru @ width={d * d}",
    "window": lambda d: f"window @ heads=1, head_dim={d // 2}, size={d}",
}
"""Every mechanism with a bounded state that trains, by name; RWKV, whose state holds the model's
width beside, is made for each width.
"""


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One line of cells: mechanisms at a size of state and of task."""

    mechanisms: Iterable[str]
    side: int
    """d, where the state holds d^2 numbers."""
    facts: int
    values: int
    steps: int
    by_key: bool = False
    """Whether facts are found by a key that stands before each, else by their places."""
    optimiser: Optimiser = "muon"
    width: int = 32
    batch: int = 16

    def task(self, mechanism: str) -> str:
        # a window forgets the facts while others are asked for: it is asked once
        queries = 1 if mechanism == "window" else "all"
        if self.by_key:
            sizes = f"n={self.facts},K={self.facts},V={self.values},form=independent"
            return f"recall:{sizes},queries={queries}"
        return f"eva:n={self.facts},V={self.values},queries={queries}"

    def stack(self, mechanism: str) -> str:
        if mechanism == "rwkv":
            return f"rwkv @ heads=1, head_dim={self.side}, width={self.width}"
        text = STACKS[mechanism](self.side)
        # a value token must know the key before it
        return f"{text}, conv=2" if self.by_key else text

    def cells(self, seeds: int) -> list[Cell]:
        return [self._cell(mechanism, seeds) for mechanism in self.mechanisms]

    def _cell(self, mechanism: str, seeds: int) -> Cell:
        run = Run(
            architecture=self.stack(mechanism),
            task=self.task(mechanism),
            seed=0,
            steps=self.steps,
            batch=self.batch,
            optimiser=self.optimiser,
            width=self.width,
            hidden=2 * self.width,
            stop_at=2.0,
            tested=512,
            formats=(FORMAT,),
        )
        layer = run.stack.layers[0][0]
        labels = {
            "mechanism": layer.measured_as,
            "numbers": kept(layer, run.trained),
            "values": self.values,
            "facts": self.facts,
            "by": "key" if self.by_key else "place",
            "optimiser": self.optimiser,
        }
        return cell(labels, run, seeds=seeds, rates=RATES)


EVERY = (*STACKS, "rwkv")
SOME = ("gdn", "linear", "mamba2", "rglru", "window")
"""One of each kind: a delta rule, sums, decay, numbers each by itself, stored tokens."""

FEW = ("gdn", "linear", "mamba2")

_SCALES: dict[Scale, tuple[int, tuple[_Asked, ...]]] = {
    "smoke": (
        LEAST_SEEDS["smoke"],
        (_Asked(mechanisms=("gdn", "linear", "window"), side=4, facts=8, values=8, steps=250),),
    ),
    "laptop": (
        LEAST_SEEDS["laptop"],
        (
            _Asked(mechanisms=EVERY, side=4, facts=12, values=16, steps=700),
            _Asked(mechanisms=(*FEW, "window"), side=8, facts=20, values=64, steps=700),
            _Asked(mechanisms=("gdn",), side=4, facts=24, values=4, steps=700),
            _Asked(mechanisms=("gdn",), side=4, facts=8, values=64, steps=700),
            _Asked(mechanisms=FEW, side=4, facts=12, values=16, steps=700, optimiser="adamw"),
            _Asked(mechanisms=FEW, side=4, facts=8, values=16, steps=700, by_key=True),
        ),
    ),
    "gpu": (
        LEAST_SEEDS["gpu"],
        tuple(
            _Asked(
                mechanisms=EVERY if optimiser == "muon" else SOME,
                side=side,
                facts=number,
                values=values,
                steps=3000,
                optimiser=optimiser,
                by_key=by_key,
                width=64,
                batch=128,
            )
            for optimiser in OPTIMISERS
            for by_key in (False, True)
            for side, number, values in (
                (4, 12, 16),
                (8, 48, 16),
                (8, 24, 256),
                (16, 192, 16),
                (16, 96, 256),
            )
        ),
    ),
}
"""Seeds, and what is asked. Facts hold two to three bits for each number of a state of 16 numbers
by place: more than was ever learned, so that no row ends at its facts.
"""


class Capacity(Experiment):
    """Recall of independent facts by one layer with a bounded state, many answers a prompt."""

    name: ClassVar[str] = "capacity"
    title: ClassVar[str] = "How many facts a trained state holds, at least"
    question: ClassVar[str] = (
        "How many bits of a prompt's facts does a trained state hold for each of its numbers, and"
        " does the number of facts follow c x numbers / log V?"
    )
    says: ClassVar[str] = (
        "Theorem A: a state of n numbers in fp32 tells at most 32 n bits of independent facts, and"
        " an accuracy above what so many bits allow is impossible. It allows far more than training"
        " finds, and nothing is proved about what training finds. Shown is a lower bound of what"
        " trained states hold: N (log2 V - cross entropy), less what the last tokens tell."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "the only layer",
        "numbers": "that the state holds after the facts, without a convolution's buffer",
        "values": "V: values that a fact may have, all equally likely",
        "facts": "N: facts that a prompt lists",
        "by": "what facts are asked for by: their place, or a key that stands before each",
        "optimiser": "Muon for the matrices and AdamW for the rest, or AdamW alone",
    }
    x: ClassVar[str] = "numbers"
    x_title: ClassVar[str] = "numbers of the state"
    series: ClassVar[tuple[str, ...]] = ("mechanism",)
    panels: ClassVar[tuple[str, ...]] = ("by", "values", "optimiser")

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        seeds, asked = _SCALES[scale]
        return tuple(one for line in asked for one in line.cells(seeds))

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        return {"": _bits_figure(self, table), "accuracy": _accuracy_figure(self, table)}

    def lines(self, table: Table) -> tuple[Line, ...]:
        text = (
            f"Theorem A allows {TRAINED_BITS} bits per number, far above the figure; guessing"
            " learns 0."
        )
        return (*super().lines(table), Line(label="Theorem A", text=text))

    def tables(self, table: Table) -> list[ShownTable]:
        bits = tuple(_line(row) for row in table.rows)
        columns = (
            "mechanism",
            "numbers",
            "facts",
            "by",
            "optimiser",
            "bits of each seed at the best rate",
            "learned at least, best of all",
            "per number",
            f"in {FORMAT}",
            "Theorem A allows",
        )
        shown = ShownTable(title="Bits learned, at least", columns=columns, rows=bits)
        return [shown, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        return said(table.rows)


def _line(row: Row) -> tuple[str, ...]:
    """A line of the table of bits."""
    chosen = best([row])
    seeds = " ".join(f"{bits_learned(row, trial).bits:.1f}" for trial in row.trials)
    if chosen is None:
        return ()
    carried = numbers(row)
    learned = chosen.learned
    rounded = chosen.trial.rounded(FORMAT)
    listed = facts(row)
    return (
        str(row.labels["mechanism"]),
        f"{carried:,}",
        f"{listed.number} of {listed.values}",
        str(row.labels["by"]),
        str(row.labels["optimiser"]),
        seeds,
        f"{learned.bits:.1f} [{learned.low:.1f}, {learned.high:.1f}]",
        f"{learned.bits / carried:.2f}",
        "-" if rounded is None else f"{rounded_bits(chosen):.1f}",
        f"{allowed(row):,} bits",
    )


def _bits_figure(experiment: Experiment, table: Table) -> dict[str, Any]:
    """Bits per number of every seed at the best rate, by mechanism; a line for each size and task.
    Raises MissingExtraError.
    """
    from separatrix.experiments.drawing import Heights, Mark

    def bits(row: Row) -> tuple[Mark, ...]:
        carried = numbers(row)
        learned = [bits_learned(row, trial, len(row.every)) for trial in row.trials]
        return tuple(
            Mark(
                x=row.labels["mechanism"],
                height=one.bits / carried,
                low=one.low / carried,
                high=one.high / carried,
                seed=trial.seed,
                told=f"{trial.stopped} after {trial.steps:,} steps, rate {row.best_rate:g}",
            )
            for trial, one in zip(row.trials, learned, strict=True)
        )

    highest = max((mark.high for row in table.rows for mark in bits(row)), default=1.0)
    heights = Heights(title="bits learned per number, at least", low=0.0, high=1.1 * highest)
    # of accuracies, the lines of chance and of Theorem A mean nothing here
    lines = [line for line in experiment.lines(table) if not line.points]
    return _by_mechanism(experiment, table, bits, lines=lines, heights=heights)


def _accuracy_figure(experiment: Experiment, table: Table) -> dict[str, Any]:
    """Accuracy by mechanism, of the question that most of them were asked: there states are of one
    size. Raises MissingExtraError.
    """
    from separatrix.experiments.drawing import ACCURACY, marks

    rows = max(grouped(table.rows, asked_said).values(), key=len)
    part = replace(table, rows=tuple(rows))
    chance = tuple((row.labels["mechanism"], float(row.chance)) for row in rows)
    lines = [
        Line(label="chance", points=chance, dash=DOTTED),
        *(line for line in experiment.lines(part) if not line.points),
    ]
    return _by_mechanism(
        experiment,
        part,
        lambda row: marks(row, row.labels["mechanism"]),
        lines=lines,
        heights=ACCURACY,
    )


def _by_mechanism(
    experiment: Experiment,
    table: Table,
    marks: Callable[[Row], tuple[Mark, ...]],
    *,
    lines: Sequence[Line],
    heights: Heights,
) -> dict[str, Any]:
    from separatrix.experiments.drawing import Series, chart, colours, places, subtitle

    found = {
        name: [mark for row in rows for mark in marks(row)]
        for name, rows in grouped(table.rows, asked_said).items()
    }
    return chart(
        experiment.title,
        subtitle(experiment.question, lines),
        x_title="mechanism",
        at=places([row.labels["mechanism"] for row in table.rows]),
        series=[Series(name=name, marks=tuple(of)) for name, of in found.items()],
        lines=lines,
        heights=heights,
        colours=colours(list(found)),
    )
