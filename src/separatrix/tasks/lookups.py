"""A table of n entries in [V] and a place in it: as a function (eva), or a sequence (index)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import SAME, require, size
from separatrix.tasks.base.layout import (
    LARGEST_SIZE,
    Facts,
    Growth,
    Layout,
    Part,
    Table,
    TwoRuns,
    ranges,
)
from separatrix.tasks.base.levels import lookup_level
from separatrix.tasks.base.task import Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import (
    LOOKUP_SHIFTS,
    check_zipf,
    independent,
    lookup_chance,
    near,
    occurring,
)


class Lookup(Task):
    """n entries, then the place asked for."""

    measured = ("counts",)
    shifts: ClassVar[dict[str, str]] = LOOKUP_SHIFTS

    n: int = size(1)
    V: int = size(2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_zipf(self.name, "V with shift=zipf", self.V, self.shift)

    def _laid(self, ids: dict[str, int], **others: Any) -> Layout:
        """The layout; what is asked for is the place at which two runs meet."""
        value, place = next(iter(ids)), next(reversed(ids))
        middle = ranges(ids)[place].start + self.n // 2
        return Layout.listing(
            Table(self.n, self.V),
            ids,
            answers=value,
            runs=TwoRuns.halves(self.n, (((middle,), 1),)),
            parts={
                "the sequence": Part(value, slice(self.n), self.V),
                "the last token": Part(place, -1, self.n),
            },
            **others,
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

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        entries = independent(batch, self.n, self.V, self.shift, rng)
        last = near(self.n, self.shift)
        place = self.n - last + rng.integers(last, size=batch)
        return Batch(self.write(entries, place), entries[np.arange(batch), place])

    def answer(self, tokens: Tokens) -> Tokens:
        entries, place = self.read(tokens)
        return entries[np.arange(len(entries)), place]


class Eva(Lookup):
    """Eva: evaluate a function that stands in the prompt.

        position   0   1   2   3   4        position   0      1      ...   n-1      n
        input      2   0   3   0   2        input      f(0)   f(1)   ...   f(n-1)   x
        target     .   .   .   .   3        target     .      .      ...   .        f(x)

    Values are the ids 0..V-1, arguments the ids 0..n-1; both share one vocabulary.

    Drawn: f: [n] -> [V] uniform, x uniform; answer f(x).

    The answer is uniform, so a constant guess is right with probability 1/V exactly; f alone or x
    alone says nothing about a fixed value. Since f may repeat values, naming the most frequent
    value of the prompt is right with probability E[max_v |f^-1(v)|]/n, which is more than 1/V: no
    retrieval is needed for that. Naming any one entry is right with probability 1/V + (1 - 1/V)/n.
    No sampler with f and x uniform can avoid either, so they are the levels to beat, beside chance.

    Boosted trees on raw tokens look up in small sizes, and find nothing above the levels at n =
    256, V = 4.

    Counted: V^n: two tables that differ at a place are told apart by asking for it (theory.md,
    section 3).

    From: [Ye26], definition of function evaluation
    """

    name = "eva"
    title = "function evaluation: f(0), ..., f(n-1), x; answer f(x)"
    source = "[Ye26]"
    grid = ("n=6,V=6", "n=12,V=4", "n=24,V=8", "n=64", "n=256", "n=1024")

    V: int = size(2, default=SAME)

    def __post_init__(self) -> None:
        if self.V is SAME:
            require(self.name, "n", self.n, 2, LARGEST_SIZE)
        super().__post_init__()

    def layout(self) -> Layout:
        """Values and arguments share their ids. V = n stays so; any other V stays."""
        grows = {"grows": Growth("V = n", {"V": (1, 0)})} if self.n == self.V else {}
        return self._laid({"number": max(self.n, self.V)}, **grows)


class Index(Lookup):
    """Index lookup: a sequence, then a position in it, which has an id of its own.

        n = 4, V = 4:   position   0   1   2   3   4    position   0     1     ...   n-1       n
                        input      2   0   3   0   6    input      x_0   x_1   ...   x_{n-1}   V + i
                        target     .   .   .   .   3    target     .     .     ...   .         x_i

    Values are the ids 0..V-1, positions the ids V..V+n-1.

    Drawn: x_0, ..., x_{n-1} in [V] uniform, i in [n] uniform; answer x_i.

    The same as eva, levels included, but no id is both a value and an argument.

    Counted: V^n, as of eva.

    From: [Wen25], Index; theory.md, sections 2 and 3
    """

    name = "index"
    title = "index lookup: x_0, ..., x_{n-1}, then a position i; answer x_i"
    source = "[Wen25]"
    grid = ("n=6,V=6", "n=12,V=4", "n=24,V=8", "n=64,V=64", "n=256,V=64", "n=1024,V=64")

    def layout(self) -> Layout:
        ids = {"value": self.V, "position": self.n}
        spelling = "Position i, counted from 0, is written @i."
        return self._laid(ids, written={"position": "@{}"}, spelling=spelling)
