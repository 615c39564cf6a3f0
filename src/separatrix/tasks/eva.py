"""Eva: evaluate a function that stands in the prompt.

    position   0      1      ...   n-1    n
    input      f(0)   f(1)   ...   f(n-1) x
    target     .      .      ...   .      f(x)

Values are the ids 0..V-1, arguments the ids 0..n-1; both share one vocabulary. Source: [Ye26], definition of function evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from separatrix.bits import Count, Power
from separatrix.errors import SizeError
from separatrix.tasks._base import LARGEST_SIZE, Batch, Task, Tokens, check_names, require


@dataclass(frozen=True, kw_only=True)
class Eva(Task):
    """f: [n] -> [V] uniform, x uniform; answer f(x). n >= 1, V >= 2 (SizeError otherwise)."""

    name: ClassVar[str] = "eva"
    title: ClassVar[str] = "function evaluation: f(0), ..., f(n-1), x; answer f(x)"
    usage: ClassVar[str] = "n, V (default n)"
    source: ClassVar[str] = "[Ye26]"

    n: int
    V: int

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 1, LARGEST_SIZE)
        require(self.name, "V", self.V, 2, LARGEST_SIZE)

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        check_names(cls.name, sizes, ("n", "V"), needed=("n",))
        return cls(n=sizes["n"], V=sizes.get("V", sizes["n"]))

    @property
    def length(self) -> int:
        return self.n + 1

    @property
    def vocabulary(self) -> int:
        return max(self.n, self.V)

    @property
    def answers(self) -> int:
        return self.V

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.V)

    @property
    def prefix_length(self) -> int:
        return self.n

    def prefix_classes(self) -> Count:
        """V^n: two functions that differ at x are told apart by x (theory.md, section 3)."""
        return Power(self.V, self.n)

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = np.empty((self._batch(batch), self.length), np.int64)
        tokens[:, :-1] = rng.integers(self.V, size=(batch, self.n))
        tokens[:, -1] = rng.integers(self.n, size=batch)
        return Batch(tokens, self._look_up(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if tokens.size and (tokens[:, :-1].max() >= self.V or tokens[:, -1].max() >= self.n):
            raise SizeError(f"{self.spec}: values must lie in [0, {self.V}) and the last token in [0, {self.n})")
        return self._look_up(tokens)

    def _look_up(self, tokens: Tokens) -> Tokens:
        return np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0]
