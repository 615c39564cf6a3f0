"""Index lookup: a sequence, then a position in it, which has an id of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, Batch, Family, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import LOOKUP_SHIFTS, check_zipf, lookup
from separatrix.tasks.functions.lookup import Lookup

WORDS = Words(
    asks="Index lookup: a sequence, then a position in it, which has an id of its own.",
    table="""
        n = 4, V = 4:   position   0   1   2   3   4    position   0     1     ...   n-1       n
                        input      2   0   3   0   6    input      x_0   x_1   ...   x_{n-1}   V + i
                        target     .   .   .   .   3    target     .     .     ...   .         x_i
    """,
    rules="Values are the ids 0..V-1, positions the ids V..V+n-1.",
    drawn="""
        x_0, ..., x_{n-1} in [V] uniform, i in [n] uniform; answer x_i. n >= 1, V >= 2.

        The same as eva, but no id is both a value and an argument. Its levels are those of eva;
        what stands behind the largest value is an entry like any other. Boosted trees on raw
        tokens solve small sizes as they do there: 0.79 at n = 12, V = 4, and nothing above the
        levels at n = 256, V = 4.
    """,
    counted="""
        V^n: two tables that differ at a place are told apart by asking for it (theory.md, section
        3).
    """,
    origin="[Wen25], Index; theory.md, sections 2 and 3",
)


@dataclass(frozen=True, kw_only=True)
class Index(Lookup):
    """Index lookup: n entries of V values; positions have ids of their own."""

    name: ClassVar[str] = "index"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "index lookup: x_0, ..., x_{n-1}, then a position i; answer x_i"
    usage: ClassVar[str] = f"n, V, shift={'|'.join(LOOKUP_SHIFTS)}"
    source: ClassVar[str] = "[Wen25]"
    grid: ClassVar[tuple[str, ...]] = (
        "n=6,V=6",
        "n=12,V=4",
        "n=24,V=8",
        "n=64,V=64",
        "n=256,V=64",
        "n=1024,V=64",
    )

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 1, LARGEST_SIZE)
        require(self.name, "V", self.V, 2, LARGEST_SIZE)
        self._check_shift(self.shift)
        check_zipf(self.name, "V with shift=zipf", self.V, self.shift)

    def layout(self) -> Layout:
        ids = {"value": self.V, "position": self.n}
        laid = self._laid(ids, "value", self.V + self.n // 2, position="@{}")
        return laid._replace(spelling="Position i, counted from 0, is written @i.")

    def family(self) -> Family[Self]:
        return self._growing(f"V = {self.V:,}", 1)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        x, i = lookup(batch, self.n, self.V, self.shift, rng)
        return Batch(np.column_stack((x, self.V + i)), x[np.arange(batch), i])

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        self._are("value", the_sequence=tokens[:, :-1])
        self._are("position", the_last_token=tokens[:, -1])
        return np.take_along_axis(tokens, tokens[:, -1:] - self.V, axis=1)[:, 0]
