"""Inputs that meet the queries at which a proof is closest to failing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.proofs.derivations.parts.queries import Lead
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


def nearest(
    task: Task, hops: Sequence[Any], near: list[Near], ids: list[int], rng: np.random.Generator
) -> Tokens:
    """One input for each, drawn but for the last token, the values on the way to the hop, and its
    rival places, which hold another value than the right one. `ids` are the ids of each position.
    """
    inputs = task.sample(len(near), rng).tokens.copy()
    for row, wish in zip(inputs, near, strict=True):
        if wish.token is not None:
            row[-1] = hops[0].first + wish.token
        value = 0
        for number, hop in enumerate(hops[: wish.hop + 1]):
            place = int(hop.place(hop.part[row[-1] - hops[0].first], value))
            # the hop before the one in question must fetch the value it was close to failing at
            if number == wish.hop - 1 and wish.value is not None:
                row[place] = wish.value
            if number == wish.hop:
                if wish.answer is not None:
                    row[place] = wish.answer
                for rival in wish.rivals:
                    if rival not in (place, len(row) - 1):
                        row[rival] = _other(int(row[place]), ids[rival])
            value = int(row[place])
    return inputs


def _other(value: int, ids: int) -> int:
    """Of ids 0..ids-1 the complement of `value`, or the last that is another; 0 where there is but
    one.
    """
    complement = ids - 1 - value
    if complement >= 0 and complement != value:
        return complement
    return ids - 1 if ids - 1 != value else max(0, ids - 2)
