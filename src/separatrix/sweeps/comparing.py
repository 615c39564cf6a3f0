"""Which stacks of a sweep are compared, and what differs between them beside the stack."""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.training.compare import Allowance, allowance, unequal
from separatrix.training.run import Run


def differences(cells: Sequence[tuple[str, Run, int | None]]) -> list[tuple[str, ...]]:
    """For each cell, given as label, run and parameters, in what its training differs from that of
    the first stack on the same task: empty where nothing does, for the first stack itself, and
    before the parameters are known.

    Of the cells of that stack the one is taken from which it differs in the fewest points.
    """
    allowed = [
        None if parameters is None else allowance(run, parameters) for _, run, parameters in cells
    ]
    firsts: dict[str, list[tuple[str, Allowance]]] = {}
    found: list[tuple[str, ...]] = []
    for (label, run, _), own in zip(cells, allowed, strict=True):
        known = firsts.setdefault(run.task, [])
        if own is None:
            found.append(())
        elif not known or known[0][1].run.architecture == run.architecture:
            known.append((label, own))
            found.append(())
        else:
            said = [(other, unequal(theirs, own)) for other, theirs in known]
            other, least = min(said, key=lambda one: len(one[1]))
            found.append(tuple(f"{line} (beside {other})" for line in least))
    return found
