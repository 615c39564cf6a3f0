"""Which stacks are compared, and what differs between their trainings beside the stack: whoever
compares two reads that first. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError, UnknownNameError, first_line
from separatrix.training.flops import training_flops
from separatrix.training.run import Run

APART = 0.03
"""Parameters and operations of two stacks may differ by this share of the larger and count as
equal: sizes are whole numbers.
"""


BESIDE = ("architecture", "hidden", "seed", "learning_rate", "weight_decay", "formats")
"""Fields in which two stacks may differ and be compared at equal budgets: the stack, the hidden
units that even its parameters out, what is chosen for each stack anew, and further tests.
"""


def unequal(one: Run, parameters: int, other: Run, others: int) -> list[str]:
    """In what two trainings of models of so many parameters differ that a comparison of their
    stacks takes to be equal, in words: "steps 1,000 and 2,000"; empty where nothing does. Raises
    SizeError for fewer parameters than a model has.
    """
    found: list[str] = []
    if _apart(parameters, others):
        found.append(f"parameters {parameters:,} and {others:,}")
    flops = training_flops(one, parameters), training_flops(other, others)
    if _apart(*flops):
        found.append(f"FLOPs {flops[0]:.3g} and {flops[1]:.3g}")
    # of all prompts that a training may take, whether or not it ends early
    tokens = [
        run.batch * sum(count * task.length for task, count in run.stretches)
        for run in (one, other)
    ]
    if tokens[0] != tokens[1]:
        found.append(f"tokens {tokens[0]:,} and {tokens[1]:,}")
    first = one.canonical().to_json()
    second = other.canonical().to_json()
    return found + [
        f"{name} {_said(first[name])} and {_said(second[name])}"
        for name in first
        if name not in BESIDE and first[name] != second[name]
    ]


def _apart(one: int, other: int) -> bool:
    return abs(one - other) > APART * max(one, other)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "none"
    return f"{value:,}" if type(value) in (int, float) else str(value)


@dataclass(frozen=True)
class Unequal:
    """A training that differs from the one that it is compared with."""

    beside: str
    """The other's label; "" where it cannot be compared with any."""
    points: tuple[str, ...]
    """In what, in words: "steps 1,000 and 2,000"."""


class Tried(NamedTuple):
    """A cell, as far as it is compared."""

    label: str
    run: Run
    parameters: int | None
    """None before they are known."""
    rates: int
    """Learning rates of which the best is shown: more of them flatter more."""
    seeds: int
    """At the rate with the most."""


def differences(cells: Sequence[Tried]) -> list[Unequal | None]:
    """For each cell, in what its training differs from that of the first stack on the same task:
    None where nothing does, for the first stack itself, and before the parameters are known.

    Of the cells of that stack the one is taken from which it differs in the fewest points.
    """
    firsts: dict[str, list[Tried]] = {}
    found: list[Unequal | None] = []
    for cell in cells:
        known = firsts.setdefault(cell.run.task, [])
        points: Unequal | None = None
        if cell.parameters is not None:
            try:
                points = _beside(known, cell, cell.parameters)
            except UnknownNameError as error:
                unknown = str(error).partition(" at position")[0]
                points = Unequal("", (f"{unknown}, so nothing is compared; --import names it",))
            except SizeError as error:
                # trained by code whose models were others
                points = Unequal("", (first_line(error),))
        found.append(points)
    return found


def _beside(known: list[Tried], cell: Tried, parameters: int) -> Unequal | None:
    """A cell beside those of the first stack on its task, one of which it becomes if it is one."""
    if not known or known[0].run.architecture == cell.run.architecture:
        # of models that are others nothing is compared
        training_flops(cell.run, parameters)
        known.append(cell)
        return None
    said = [
        (
            other.label,
            unequal(other.run, other.parameters or 0, cell.run, parameters) + _chosen(other, cell),
        )
        for other in known
    ]
    label, least = min(said, key=lambda one: len(one[1]))
    return Unequal(label, tuple(least)) if least else None


def _chosen(one: Tried, other: Tried) -> list[str]:
    """In what the choice of the best differs: it is one among more learning rates or seeds."""
    found: list[str] = []
    if one.rates != other.rates:
        found.append(f"learning rates to choose from {one.rates:,} and {other.rates:,}")
    if one.seeds != other.seeds:
        found.append(f"seeds {one.seeds:,} and {other.seeds:,}")
    return found
