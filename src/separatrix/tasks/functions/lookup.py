"""A table of n entries in [V] and a place in it: shared by Eva and index lookup."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.tasks.base.facts import Facts, Table
from separatrix.tasks.base.levels import lookup_level
from separatrix.tasks.base.task import PLAIN, Task
from separatrix.tasks.drawing.distinct import LOOKUP_SHIFTS, lookup_chance, near, occurring


@dataclass(frozen=True, kw_only=True)
class Lookup(Task):
    """n entries, then the place asked for."""

    shifts: ClassVar[dict[str, str]] = LOOKUP_SHIFTS

    n: int
    V: int
    shift: str = PLAIN

    @property
    def length(self) -> int:
        return self.n + 1

    @property
    def answers(self) -> int:
        return self.V

    @property
    def chance(self) -> Fraction:
        return lookup_chance(self.V, self.shift)

    def level(self, probe: str) -> Fraction:
        return lookup_level(probe, self.n, self.V)

    @property
    def prefix_length(self) -> int:
        return self.n

    def prefix_classes(self) -> Count:
        """V^n: two tables that differ at a place are told apart by asking for it (theory.md,
        section 3).
        """
        return Power(self.V, self.n)

    def prompts(self) -> Count:
        """Every table, and every place asked for."""
        return Product((Power(self.V, self.n), Exact(self.n)))

    def table(self) -> Table:
        return Table(self.n, self.V)

    def facts(self) -> Facts | None:
        """The entries that may be asked for; Zipf-distributed ones are not uniform."""
        if self.shift == "zipf":
            return None
        return Facts(near(self.n, self.shift), occurring(self.V, self.shift))
