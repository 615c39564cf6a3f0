"""The rule of stopping, stated here and nowhere else; a run that says `rule: study` is held to it.

- A run is solved when its running accuracy of `WINDOW` steps reaches `STOP_AT` and then at least
  `SOLVED` of fresh answers are right. A loss that has stopped moving is no end: curves here are a
  plateau and then a jump.
- A run that is not solved ends at N steps, and N is at least `LONGER` times the steps of the
  slowest solved seed of its comparison: all runs that differ in `OWN` alone.
- Warm-up is a number of steps, the same whatever N is.

So "not solved in N steps" is a finding about training; where N is smaller, it is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import SOLVED

WINDOW = 20
"""Steps whose mean is the running loss and accuracy; losses are read once in as many steps."""
STOP_AT = 0.995
LONGER = 4
OWN = ("architecture", "learning_rate", "seed")
"""Fields in which runs of one comparison may differ."""


def broken(settings: Mapping[str, Any]) -> str:
    """In what settings of a run are not the rule's; "" where they are."""
    if settings["stop_at"] != STOP_AT:
        return f"stop_at is {settings['stop_at']:g}, and it takes {STOP_AT}"
    if settings["plateau"] or settings["seconds"]:
        return "plateau and seconds end a run that is not solved; it has its steps alone"
    if not settings["warmup"]:
        return "warmup is a share of the steps; it takes a number of them, such as 50"
    return ""


def solved(stopped: str, accuracy: Fraction) -> bool:
    """Of a run that ended so, right on this share of fresh answers."""
    return stopped == "solved" and accuracy >= SOLVED


def comparison(run: Mapping[str, Any]) -> str:
    """What runs that are compared have in common, from a run's JSON."""
    return canonical({name: run[name] for name in run if name not in OWN})


def needed(steps: Iterable[int]) -> int:
    """N, from the steps of all solved seeds of a comparison; 0 where none is."""
    return LONGER * max(steps, default=0)
