"""Inputs that meet the queries at which a proof is closest to failing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.derivations.parts.queries import Lead
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens


@dataclass(frozen=True, kw_only=True)
class Near:
    """Where one hop is closest to failing: at a last token and a value fetched before it, with a
    rival place, or at an answer to be read off. What is None is free.
    """

    hop: int = 0
    token: int | None = None
    value: int | None = None
    rivals: range = range(0)
    answer: int | None = None

    @classmethod
    def of(cls, lead: Lead, block: int = 1) -> Near:
        """Keys of the lead are blocks of that many places."""
        rivals = range(lead.rival * block, lead.rival * block + block)
        return cls(token=lead.token, value=lead.value, rivals=rivals)

    def at(self, hop: int) -> Near:
        return replace(self, hop=hop)


def nearest(task: Task, hops: Sequence[Any], near: list[Near], rng: np.random.Generator) -> Tokens:
    """One input for each, drawn but for the last token, the values on the way to the hop, and its
    rival places, which hold another value than the right one.
    """
    inputs = task.sample(len(near), rng).tokens.copy()
    for row, wish in zip(inputs, near, strict=True):
        if wish.token is not None:
            row[-1] = wish.token
        value = 0
        for number, hop in enumerate(hops[: wish.hop + 1]):
            place = int(hop.place(hop.part[row[-1]], value))
            # the hop before the one in question must fetch the value it was close to failing at
            if number == wish.hop - 1 and wish.value is not None:
                row[place] = wish.value
            if number == wish.hop:
                if wish.answer is not None:
                    row[place] = wish.answer
                for rival in wish.rivals:
                    if rival not in (place, len(row) - 1):
                        row[rival] = _other(row[place], row[rival], hop.values)
            value = int(row[place])
    return inputs


def _other(value: int, found: int, values: int) -> int:
    """The id farthest from `value`; what was found where that would be no value of the hop."""
    other = values - 1 - value
    return other if 0 <= other < values and other != value else found
