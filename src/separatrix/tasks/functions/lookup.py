"""A table of n entries in [V] and a place in it: shared by Eva and index lookup."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.tasks.base.facts import Facts, Table
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.levels import lookup_level
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.task import PLAIN, Task
from separatrix.tasks.drawing.distinct import LOOKUP_SHIFTS, lookup_chance, near, occurring


@dataclass(frozen=True, kw_only=True)
class Lookup(Task):
    """n entries, then the place asked for."""

    shifts: ClassVar[dict[str, str]] = LOOKUP_SHIFTS

    n: int
    V: int
    shift: str = PLAIN

    def _laid(self, ids: dict[str, int], answers: str, middle: int, **written: str) -> Layout:
        """The layout, where id `middle` asks for the place at which two runs meet.

        V^n prefixes: two tables that differ at a place are told apart by asking for it (theory.md,
        section 3).
        """
        return Layout(
            length=self.n + 1,
            ids=ids,
            answers={answers: self.V},
            prefix=self.n,
            classes=Power(self.V, self.n),
            table=Table(self.n, self.V),
            runs=TwoRuns.halves(self.n, (((middle,), 1),)),
            written=written,
        )

    @property
    def chance(self) -> Fraction:
        return lookup_chance(self.V, self.shift)

    def level(self, probe: str) -> Fraction:
        return lookup_level(probe, self.n, self.V)

    def prompts(self) -> Count:
        """Every table, and every place asked for."""
        return Product((Power(self.V, self.n), Exact(self.n)))

    def facts(self) -> Facts | None:
        """The entries that may be asked for; Zipf-distributed ones are not uniform."""
        if self.shift == "zipf":
            return None
        return Facts(near(self.n, self.shift), occurring(self.V, self.shift))
