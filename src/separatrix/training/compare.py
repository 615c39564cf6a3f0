"""Which stacks are compared, and what differs between their trainings beside the stack: whoever
compares two reads that first. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from separatrix.core.errors import SizeError, UnknownNameError, first_line
from separatrix.training.flops import training_flops
from separatrix.training.run import Run

APART = 0.03
"""Parameters and operations of two stacks may differ by this share of the larger and count as
equal: sizes are whole numbers.
"""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What training of one model may take, whether or not it ends early."""

    run: Run
    parameters: int
    tokens: int
    """Tokens of all prompts, curriculum included."""
    flops: int


def allowance(run: Run, parameters: int) -> Allowance:
    """Of a run whose model has so many parameters. Raises SizeError for fewer than it has."""
    tokens = run.batch * sum(count * task.length for task, count in run.stretches())
    flops = training_flops(run, parameters)
    return Allowance(run=run, parameters=parameters, tokens=tokens, flops=flops)


BESIDE = ("architecture", "hidden", "seed", "learning_rate", "weight_decay", "formats")
"""Fields in which two stacks may differ and be compared at equal budgets: the stack, the hidden
units that even its parameters out, what is chosen for each stack anew, and further tests.
"""


def unequal(one: Allowance, other: Allowance) -> list[str]:
    """In what two trainings differ that a comparison of their stacks takes to be equal, in words:
    "steps 1,000 and 2,000"; empty where nothing does.
    """
    found: list[str] = []
    if _apart(one.parameters, other.parameters):
        found.append(f"parameters {one.parameters:,} and {other.parameters:,}")
    if _apart(one.flops, other.flops):
        found.append(f"FLOPs {one.flops:.3g} and {other.flops:.3g}")
    if one.tokens != other.tokens:
        found.append(f"tokens {one.tokens:,} and {other.tokens:,}")
    first = one.run.canonical().to_json()
    second = other.run.canonical().to_json()
    return found + [
        f"{name} {_said(first[name])} and {_said(second[name])}"
        for name in first
        if name not in BESIDE and first[name] != second[name]
    ]


def _apart(one: int, other: int) -> bool:
    return abs(one - other) > APART * max(one, other)


def _said(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
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
    firsts: dict[str, list[tuple[Tried, Allowance]]] = {}
    found: list[Unequal | None] = []
    for cell in cells:
        known = firsts.setdefault(cell.run.task, [])
        if cell.parameters is None:
            found.append(None)
            continue
        try:
            own = allowance(cell.run, cell.parameters)
        except UnknownNameError as error:
            unknown = str(error).partition(" at position")[0]
            found.append(Unequal("", (f"{unknown}, so nothing is compared; --import names it",)))
            continue
        except SizeError as error:
            # trained by code whose models were others
            found.append(Unequal("", (first_line(error),)))
            continue
        if not known or known[0][1].run.architecture == cell.run.architecture:
            known.append((cell, own))
            found.append(None)
        else:
            said = [
                (other.label, unequal(theirs, own) + _chosen(other, cell))
                for other, theirs in known
            ]
            label, least = min(said, key=lambda one: len(one[1]))
            found.append(Unequal(label, tuple(least)) if least else None)
    return found


def _chosen(one: Tried, other: Tried) -> list[str]:
    """In what the choice of the best differs: it is one among more learning rates or seeds."""
    found: list[str] = []
    if one.rates != other.rates:
        found.append(f"learning rates to choose from {one.rates:,} and {other.rates:,}")
    if one.seeds != other.seeds:
        found.append(f"seeds {one.seeds:,} and {other.seeds:,}")
    return found
