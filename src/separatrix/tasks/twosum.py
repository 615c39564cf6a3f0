"""2-Sum modulo M, per query (Match2) or as a decision.

    per query:   position   0     1     ...   n-1     n          decision:   position   0     ...   n-1
                 input      x_1   x_2   ...   x_n     q                      input      x_1   ...   x_n
                 target     .     .     ...   .       0 or 1                 target     .     ...   0 or 1

Per query the answer is 1 when some x_j + q = 0 mod M; as a decision, when x_i + x_j = 0 mod M for some i != j. Values may repeat.
Source: [San23] (Match2), [Ye26]; theory.md, sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, ClassVar, Literal, Self

import numpy as np

from separatrix.bits import BinomialSum, Count, Exact, Sum
from separatrix.errors import UnknownNameError
from separatrix.tasks._base import LARGEST_SIZE, Batch, Task, Tokens, check_names, require

Form = Literal["query", "decision"]


@dataclass(frozen=True, kw_only=True)
class TwoSum(Task):
    """Sampled so that both answers have probability 1/2 exactly. n >= 1 (2 as a decision), M >= 3 (SizeError otherwise).

    Per query: q is uniform, the label a fair coin; the x_j are uniform over the values that do not cancel q, and for label 1 one uniform
    place is overwritten with -q. So q alone says nothing, and neither does any x_j alone.
    As a decision: every class {x, -x} gets one fair sign per instance and the tokens are drawn from the signed classes, so that nothing
    cancels; for label 1 one place is overwritten with the negative of another. Each token alone is uniform over the values that are not
    their own negatives, whatever the label.
    """

    name: ClassVar[str] = "twosum"
    title: ClassVar[str] = "2-Sum modulo M: does some earlier token cancel the last (query), or do any two cancel (decision)"
    usage: ClassVar[str] = "n, M, form=query|decision (default query)"
    source: ClassVar[str] = "[San23], [Ye26]"

    n: int
    M: int
    form: Form = "query"

    def __post_init__(self) -> None:
        if self.form not in ("query", "decision"):
            raise UnknownNameError.of("form of twosum", str(self.form), ("query", "decision"))
        require(self.name, "n", self.n, 1 if self.form == "query" else 2, LARGEST_SIZE)
        require(self.name, "M", self.M, 3, LARGEST_SIZE)

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        check_names(cls.name, sizes, ("n", "M", "form"), needed=("n", "M"))
        return cls(n=sizes["n"], M=sizes["M"], form=sizes.get("form", "query"))

    @property
    def length(self) -> int:
        return self.n + (self.form == "query")

    @property
    def vocabulary(self) -> int:
        return self.M

    @property
    def answers(self) -> int:
        return 2

    @property
    def chance(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def prefix_length(self) -> int:
        return self.n if self.form == "query" else self.n - 1

    @property
    def pairs(self) -> int:
        """Classes {x, -x} with x != -x: floor((M-1)/2)."""
        return (self.M - 1) // 2

    def prefix_classes(self) -> Count:
        """Per query: the sets of 1 to n values, sum_{j=1..min(n,M)} binomial(M, j) (theory.md, section 3).

        As a decision, for n-1 tokens: the cancellation-free sets that n-1 tokens can have as their set of values, told apart by the last
        token, and one class for prefixes that already hold a pair. A set has j signed classes and e of the s values that are their own
        negatives, each of which occurs once.
        """
        if self.form == "query":
            return BinomialSum(self.M, min(self.n, self.M))
        t, own = self.n - 1, 2 - self.M % 2
        terms: list[tuple[int, Count]] = []
        for e in range(own + 1):
            if t - e >= 1:
                terms.append((comb(own, e), BinomialSum(self.pairs, min(self.pairs, t - e), base=2)))
        rest = comb(own, t) + (t >= 2)
        return Sum((*terms, (1, Exact(rest)))) if rest else Sum(tuple(terms))

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=self._batch(batch))
        return self._sample_query(labels, rng) if self.form == "query" else self._sample_decision(labels, rng)

    def _sample_query(self, labels: Tokens, rng: np.random.Generator) -> Batch:
        batch, rows = len(labels), np.arange(len(labels))
        tokens = np.empty((batch, self.length), np.int64)
        query = rng.integers(self.M, size=batch)
        target = -query % self.M
        x = rng.integers(self.M - 1, size=(batch, self.n))
        x += x >= target[:, None]
        place = rng.integers(self.n, size=batch)
        x[rows, place] = np.where(labels == 1, target, x[rows, place])
        tokens[:, :-1], tokens[:, -1] = x, query
        return Batch(tokens, labels)

    def _sample_decision(self, labels: Tokens, rng: np.random.Generator) -> Batch:
        batch, rows = len(labels), np.arange(len(labels))
        size = rng.integers(1, self.pairs + 1, size=(batch, self.n))
        signs = rng.integers(2, size=(batch, self.pairs))
        tokens = np.where(np.take_along_axis(signs, size - 1, axis=1) == 1, size, self.M - size)
        first = rng.integers(self.n, size=batch)
        second = (first + rng.integers(1, self.n, size=batch)) % self.n
        tokens[rows, second] = np.where(labels == 1, self.M - tokens[rows, first], tokens[rows, second])
        return Batch(tokens, labels)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if self.form == "query":
            return ((tokens[:, :-1] + tokens[:, -1:]) % self.M == 0).any(axis=1).astype(np.int64)
        own = (2 * tokens) % self.M == 0
        ordered, negatives = np.sort(tokens, axis=1), -tokens % self.M
        row = np.arange(len(tokens))[:, None] * self.M
        partner = np.isin(negatives + row, ordered + row) & ~own
        repeated = (ordered[:, 1:] == ordered[:, :-1]) & ((2 * ordered[:, 1:]) % self.M == 0)
        return (partner.any(axis=1) | repeated.any(axis=1)).astype(np.int64)
