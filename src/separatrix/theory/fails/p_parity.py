"""Theorem P: recurrences that only move one way, without positions, fail where one token more or
less in a long run of equal tokens matters.
"""

from __future__ import annotations

from typing import NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.tasks import Task
from separatrix.theory.base import FAILS, Theorem, first_failing, number
from separatrix.theory.words import SHARED

UNPLACED = SHARED["unplaced"]
STEPS = "token by token, as in decoding: a parallel form that rounds elsewhere is another model"


class Standstill(NamedTuple):
    """After how many equal tokens a whole stack stands still, from whatever state."""

    tokens: int
    """T."""
    kinds: tuple[tuple[int, int], ...]
    """How many layers there are of each kind, and the c of such a layer."""


class TheoremP(Theorem):
    key = "P"
    shows = FAILS
    anywhere = True
    after_thought = True
    # runs of a longer prompt are no shorter (tests/unit/tasks/test_two_runs.py), and T stays
    larger_fail_too = True

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        still = standstill(architecture)
        runs = task.two_runs()
        if still is None or runs is None:
            return None
        fails = runs.shorter >= still.tokens
        least = self._least(task, still.tokens, here=fails)
        if least is None:
            return None
        n, since = self.since(task, least)
        declared = _declared(architecture)
        found = f"here runs have {number(runs.shorter)}"
        if fails:
            found = f"{runs.shown} leave one state and have different answers"
        sentence = (
            f"{declared}after {number(still.tokens)} equal tokens all layers stand still, from any"
            f" state; {found}; {since}, with or without chain of thought"
        )
        numbers = {"T": still.tokens}
        for place, (times, after) in enumerate(still.kinds, 1):
            numbers |= {f"layers_{place}": times, f"c_{place}": after}
        numbers["shortest_run"] = runs.shorter
        status, granted = "FAILS" if fails else "OPEN", (UNPLACED, STEPS)
        return self.verdict(
            architecture, task, status, sentence, n=n, numbers=numbers, assumptions=granted
        )

    def _least(self, task: Task, T: int, *, here: bool) -> Task | None:
        def long_enough(larger: Task) -> bool:
            runs = larger.two_runs()
            return runs is not None and runs.shorter >= T

        limit = task.sizes()[task.family().grows] if here else None
        return first_failing(task, long_enough, limit)


def standstill(architecture: Architecture) -> Standstill | None:
    """T of a stack and the c of its layers; None where a layer turns, reads the whole prompt or
    looks at places, or where tokens enter the stack with their places.
    """
    if architecture.positions != "none":
        return None
    kinds: list[tuple[int, int]] = []
    for layer, times in architecture.counted():
        after = layer_settles(layer)
        if after is None:
            return None
        kinds.append((times, after))
    return Standstill(1 + sum(times * after for times, after in kinds), tuple(kinds))


def layer_settles(layer: Layer) -> int | None:
    """c of a layer: of heads side by side the largest. Convolutions are added to it, since files
    list so what stands before or behind the other heads.
    """
    afters = [(part.settles_after, part.group == "convolution") for part in layer]
    known = [(after, beside) for after, beside in afters if after is not None]
    if len(known) < len(afters):
        return None
    return max((after for after, beside in known if not beside), default=0) + sum(
        after for after, beside in known if beside
    )


def _declared(architecture: Architecture) -> str:
    """The condition that a verdict rests on where a mechanism is somebody's own: its author says
    that it only moves one way, and a test of that is no proof.
    """
    names = sorted(
        {p.name for layer, _ in architecture.counted() for p in layer if p.origin and p.monotone}
    )
    if not names:
        return ""
    own = " and ".join(f"'{name}'" for name in names)
    return f"if, as its author declares, the state of {own} only moves one way: "
