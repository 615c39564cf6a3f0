"""Eva: evaluate a function that stands in the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.sizes import check_names, require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Family, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import LOOKUP_SHIFTS, check_zipf, lookup
from separatrix.tasks.functions.lookup import Lookup

WORDS = Words(
    asks="Eva: evaluate a function that stands in the prompt.",
    table="""
        position   0   1   2   3   4        position   0      1      ...   n-1      n
        input      2   0   3   0   2        input      f(0)   f(1)   ...   f(n-1)   x
        target     .   .   .   .   3        target     .      .      ...   .        f(x)
    """,
    rules="Values are the ids 0..V-1, arguments the ids 0..n-1; both share one vocabulary.",
    drawn="""
        f: [n] -> [V] uniform, x uniform; answer f(x). n >= 1, V >= 2; V is n unless given.

        The answer is uniform, so a constant guess is right with probability 1/V exactly; f alone or
        x alone says nothing about a fixed value. Since f may repeat values, naming the most
        frequent value of the prompt is right with probability E[max_v |f^-1(v)|]/n, which is more
        than 1/V: no retrieval is needed for that. Naming any one entry is right with probability
        1/V + (1 - 1/V)/n. No sampler with f and x uniform can avoid either, so they are the levels
        to beat, beside chance.

        Small sizes are solved by boosted trees on raw tokens, since a split on the argument and one
        on a place are a look-up: fitted to 4,000 prompts, 0.90 at n = 12, V = 4, 0.34 of 0.24 at n
        = 24, V = 8, and nothing above the levels at n = 256, V = 4.
    """,
    counted="""
        V^n: two tables that differ at a place are told apart by asking for it (theory.md, section
        3).
    """,
    origin="[Ye26], definition of function evaluation",
)


@dataclass(frozen=True, init=False)
class Eva(Lookup):
    """Function evaluation at n arguments and V values; V is n unless given."""

    name: ClassVar[str] = "eva"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "function evaluation: f(0), ..., f(n-1), x; answer f(x)"
    usage: ClassVar[str] = f"n, V (default n), shift={'|'.join(LOOKUP_SHIFTS)}"
    source: ClassVar[str] = "[Ye26]"
    grid: ClassVar[tuple[str, ...]] = ("n=6,V=6", "n=12,V=4", "n=24,V=8", "n=64", "n=256", "n=1024")

    def __init__(self, *, n: int, V: int | None = None, shift: str = PLAIN) -> None:
        object.__setattr__(
            self, "n", require(self.name, "n", n, 1 if V is not None else 2, LARGEST_SIZE)
        )
        object.__setattr__(
            self, "V", require(self.name, "V", n if V is None else V, 2, LARGEST_SIZE)
        )
        object.__setattr__(self, "shift", shift)
        self._check_shift(shift)
        check_zipf(self.name, "V with shift=zipf", self.V, shift)

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        check_names(cls, sizes, ("n", "V", "shift"), needed=("n",))
        return cls(**sizes)

    def layout(self) -> Layout:
        """Values and arguments share their ids."""
        return self._laid({"number": max(self.n, self.V)}, "number", self.n // 2)

    def family(self) -> Family[Self]:
        """V = n stays so; any other V stays."""
        if self.n == self.V:
            return self._growing("V = n", 2, V=lambda n: n)
        return self._growing(f"V = {self.V:,}", 1)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        f, x = lookup(batch, self.n, self.V, self.shift, rng)
        return Batch(np.column_stack((f, x)), f[np.arange(batch), x])

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        self._within(tokens[:, :-1], "f", 0, self.V)
        self._within(tokens[:, -1], "x", 0, self.n)
        return np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0]
