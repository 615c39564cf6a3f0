"""The trial that measures what `design` leaves open: a command for two or three of its layouts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice

from separatrix.cards.design import DesignResult, Layout
from separatrix.core.errors import SeparatrixError
from separatrix.findings.trial import trial
from separatrix.stacks.architecture import Architecture, mechanism
from separatrix.stacks.mechanisms import Mechanism

MOST = 3
ALIKE = {"eva": "recall"}
"""Task -> the one that a trial trains in its place."""
_PLACEMENTS = 3


def trial_command(result: DesignResult) -> str:
    """The command, for layouts that no theorem forbids and a task that a trial trains: the cheapest
    proved one, cheaper ones that are open, other placements. "" where there are not two of them.
    """
    for task in dict.fromkeys(ALIKE.get(task.name, task.name) for task in result.tasks):
        found: dict[str, Architecture] = {}
        for text, one in _candidates(result):
            if len(found) < MOST and (not found or _trains({**found, text: one}, task)):
                found[text] = one
        if len(found) > 1:
            return shlex.join(["separatrix", "trial", *found, "--task", task])
    return ""


def _candidates(result: DesignResult) -> Iterator[tuple[str, Architecture]]:
    proved = result.proved[:1] or ([result.beyond_proved] if result.beyond_proved else [])
    points = [*proved, *result.not_excluded]
    layouts = [point.layout for point in points]
    layouts += [layout for point in points for layout in islice(point.layouts, 1, _PLACEMENTS)]
    for layout in layouts:
        try:
            one = _without_sizes(layout)
        except SeparatrixError:
            # a size that its mechanism needs: it has no rule by which a trial scales it
            continue
        yield one.spec, one


def _without_sizes(layout: Layout) -> Architecture:
    """What of a layout a trial keeps: layers in order, their convolutions, and what makes another
    recurrence.
    """
    return Architecture(tuple(tuple(map(_bare, layer)) for layer in layout.layers))


def _bare(part: Mechanism) -> Mechanism:
    kept = {name: getattr(part, name) for name in part.another_recurrence}
    if conv := getattr(part, "conv", 0):
        kept["conv"] = conv
    return mechanism(part.name, **kept)


def _trains(layouts: dict[str, Architecture], task: str) -> bool:
    """Whether a trial of these can be run."""
    try:
        trial(layouts, task, seeds=1)
    except SeparatrixError:
        return False
    return True
