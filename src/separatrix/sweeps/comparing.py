"""Which stacks of a sweep are compared, and what differs between them beside the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.errors import SizeError, first_line
from separatrix.training.compare import Allowance, allowance, unequal
from separatrix.training.run import Run


@dataclass(frozen=True)
class Unequal:
    """A training that differs from the one that it is compared with."""

    beside: str
    """The other's label; "" where it cannot be compared with any."""
    points: tuple[str, ...]
    """In what, in words: "steps 1,000 and 2,000"."""


def differences(cells: Sequence[tuple[str, Run, int | None]]) -> list[Unequal | None]:
    """For each cell, given as label, run and parameters, in what its training differs from that of
    the first stack on the same task: None where nothing does, for the first stack itself, and
    before the parameters are known.

    Of the cells of that stack the one is taken from which it differs in the fewest points.
    """
    firsts: dict[str, list[tuple[str, Allowance]]] = {}
    found: list[Unequal | None] = []
    for label, run, parameters in cells:
        known = firsts.setdefault(run.task, [])
        if parameters is None:
            found.append(None)
            continue
        try:
            own = allowance(run, parameters)
        except SizeError as error:
            # trained by code whose models were others
            found.append(Unequal("", (first_line(error),)))
            continue
        if not known or known[0][1].run.architecture == run.architecture:
            known.append((label, own))
            found.append(None)
        else:
            said = [(other, unequal(theirs, own)) for other, theirs in known]
            other, least = min(said, key=lambda one: len(one[1]))
            found.append(Unequal(other, tuple(least)) if least else None)
    return found
