"""Which stacks of a sweep are compared, and what differs between them beside the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.core.errors import SizeError, UnknownNameError, first_line
from separatrix.training.compare import Allowance, allowance, unequal
from separatrix.training.run import Run


@dataclass(frozen=True)
class Unequal:
    """A training that differs from the one that it is compared with."""

    beside: str
    """The other's label; "" where it cannot be compared with any."""
    points: tuple[str, ...]
    """In what, in words: "steps 1,000 and 2,000"."""


@dataclass(frozen=True)
class Tried:
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
