"""The adversary of Theorem VI: R = L-1 reading layers, bounded groups anywhere. Its own part of the
proof is D(2); the rest is in `many_steps`. Source: theory.md, section 11.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from typing import ClassVar

from adversaries.many_readings import ManyReadings, Prefix
from adversaries.many_steps import Adversary, Functions, Play
from adversaries.prices import Choice
from separatrix.protocols.one_reading import Entries


class AdversaryVI(Adversary):
    """One run of the proof of Theorem VI."""

    theorem: ClassVar[str] = "VI"

    def _first_family(self, family: list[Prefix]) -> list[Prefix]:
        ledger = self.ledger
        contents = self.contents
        ledger.open(self.prices.start(), family)
        family = ledger.cache(family, 0, lambda P: P)
        for gamma in range(self.choice.G):
            contents.spreads.append(self._spread(gamma, family))
        # one cache after all z_1 of a group, so that no query of w in layer 1 knows z_1
        for gamma, spread in enumerate(contents.spreads):
            for place, w in product(spread.places, contents.ws(gamma)):
                asked = [(z_1, *contents.tail(place, w)) for z_1 in spread.contents]
                family = ledger.read(family, 1, self._queries(asked, -1, 0, 0))
        # the group-1 cache before w, or all that leads to it
        if not self.prices.flag(2):
            return self._fix_before_w(family, 1, 2)
        family = ledger.cache(family, 1, lambda P: P)
        for content in contents.several():
            for i in range(self.sizes.t):
                family = ledger.read(family, 1, self._queries([content], 0, i, 0))
        for asked in contents.of_z_0(joined=True):
            family = ledger.read(family, 1, self._queries(asked, 1, 0, 0))
        return family

    def _state(self, prefix: Prefix, gamma: int, z_1: Entries) -> Hashable:
        """The group-0 cache."""
        content = (z_1, *self.contents.tail(0, self.contents.ws(gamma)[0]))
        return self.line.along(prefix, content, 1).cache(0)


def adversary_vi(
    line: ManyReadings, choice: Choice, functions: Sequence[Functions] | None = None
) -> Play:
    """Two prompts of one view and two right answers, checked, by the proof of Theorem VI.

    `functions` are the z_L, ..., z_2 to try (all, if None). Raises StepBroken where an assertion
    fails, AdversaryFailed where too little survives, and SizeError for another theorem's sizes, a
    choice that does not fit, or too many functions.
    """
    return AdversaryVI(line, choice, functions).play()
