"""The adversary of Theorem VII: R = L reading layers, no bounded layer before the second. Its own
part of the proof is D'(2); the rest is in `many_steps`. Source: theory.md, section 11.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from typing import ClassVar

from adversaries.many_readings import ManyReadings, Prefix
from adversaries.many_steps import Adversary, Functions, Play
from adversaries.prices import Choice
from separatrix.protocols.one_reading import Entries


class AdversaryVII(Adversary):
    """One run of the proof of Theorem VII."""

    theorem: ClassVar[str] = "VII"

    def _first_family(self, family: list[Prefix]) -> list[Prefix]:
        ledger = self.ledger
        contents = self.contents
        ledger.open(self.prices.start(), family)
        family = ledger.cache(family, 1, lambda P: P)
        # a query of layer 1 is its token: those of w can be fixed before z_1 is chosen
        for w in range(self.sizes.W):
            family = ledger.read(family, 1, self._queries([contents.any(w=w)], -1, 0, 0))
        for gamma in range(self.choice.G):
            contents.spreads.append(self._spread(gamma, family))
        for content in contents.several():
            for i in range(self.sizes.t):
                family = ledger.read(family, 1, self._queries([content], 0, i, 0))
        for place in sorted({place for one in contents.spreads for place in one.places}):
            family = ledger.read(family, 1, self._queries([contents.any(place=place)], 1, 0, 0))
        # w has gathered the same of all z_1 of a group, so that no query in layer 2 knows z_1
        for gamma, spread in enumerate(contents.spreads):
            for place, w in product(spread.places, contents.ws(gamma)):
                asked = [(z_1, *contents.tail(place, w)) for z_1 in spread.contents]
                family = ledger.read(family, 2, self._queries(asked, -1, 0, 1))
        # the group-2 cache before w, or all that leads to it
        if not self.prices.flag(2):
            return self._fix_before_w(family, 2, 2)
        family = ledger.cache(family, 2, lambda P: P)
        for content in contents.several():
            for i in range(self.sizes.t):
                family = ledger.read(family, 2, self._queries([content], 0, i, 1))
        for asked in contents.of_z_0(joined=False):
            family = ledger.read(family, 2, self._queries(asked, 1, 0, 1))
        return family

    def _state(self, prefix: Prefix, gamma: int, z_1: Entries) -> Hashable:
        """The cache of the heads in layer 1, and what each w of the group has gathered there."""
        gathered: list[int] = []
        for w in self.contents.ws(gamma):
            content = (z_1, *self.contents.tail(0, w))
            (query,) = self._queries([content], -1, 0, 0)(prefix)
            gathered.append(self.line.along(prefix, content, 1).read(1, query))
        return self.line.along(prefix, (z_1, *self.contents.tail(0, 0)), 1).cache(1), *gathered


def adversary_vii(
    line: ManyReadings, choice: Choice, functions: Sequence[Functions] | None = None
) -> Play:
    """Two prompts of one view and two right answers, checked, by the proof of Theorem VII.

    Arguments and errors as in `adversary_vi`.
    """
    return AdversaryVII(line, choice, functions).play()
