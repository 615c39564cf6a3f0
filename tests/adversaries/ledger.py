"""What an adversary of Theorem VI or VII asserts and pays while it fixes caches and reads.

Fixing a message over a family of prefixes keeps those with its most frequent value. It costs the
bits of the message: the family shrinks by at most that many. A read may be fixed only when its
query is the same for all prefixes of the family. Source: theory.md, section 11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from adversaries.knowledge import Known
from adversaries.many_readings import Prefix
from adversaries.prices import Kind, Price, Prices
from separatrix.core.errors import CheckFailed


class StepBroken(CheckFailed):
    """A step of a proof does not go through: the protocol breaks the rules, or the proof is wrong.

    `law` is what was asserted: 'query', 'values', 'price', 'class', 'density', 'known' or 'causal'.
    """

    def __init__(self, law: str, what: str) -> None:
        self.law = law
        super().__init__(f"{what} ({law})")


class Ledger:
    """All that was asserted in one play, by law, and the messages that were fixed in one step."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.asserted: Counter[str] = Counter()
        self._allowed: Price = Counter()
        self._paid: Price = Counter()
        self._before = 1
        self.steps: list[tuple[Price, Price]] = []
        """Of each step what it fixed and what its price allows."""

    def require(self, law: str, good: bool, what: str, *numbers: int) -> None:
        """One assertion; `numbers` go into `what`. Raises StepBroken if it does not hold."""
        self.asserted[law] += 1
        if not good:
            raise StepBroken(law, what.format(*numbers))

    def open(self, allowed: Price, family: list[Prefix]) -> None:
        """Begins a step that may fix these messages over this family."""
        self._allowed = allowed
        self._paid = Counter()
        self._before = len(family)
        self.steps.append((self._paid, allowed))

    def cache(self, family: list[Prefix], j: int, of: Callable[[Prefix], Prefix]) -> list[Prefix]:
        """Fixes c_j at the cut that `of` leads a prefix of the family to."""
        return self._keep(family, ("cache", j), lambda prefix: of(prefix).cache(j))

    def read(
        self, family: list[Prefix], j: int, queries: Callable[[Prefix], Iterable[Known]]
    ) -> list[Prefix]:
        """Fixes what the prefixes of a family tell one query of layer j.

        `queries` gives the query for a prefix, once for each content that must not matter.
        """
        same: Known | None = None
        for prefix in family:
            for query in queries(prefix):
                same = query if same is None else same
                self.require(
                    "query",
                    query is same,
                    "a query of layer {} at place {} differs in the family",
                    j,
                    query.place,
                )
        assert same is not None
        query = same
        return self._keep(family, ("read", j), lambda prefix: prefix.read(j, query))

    def _keep(
        self, family: list[Prefix], kind: Kind, value: Callable[[Prefix], int]
    ) -> list[Prefix]:
        kept: dict[int, list[Prefix]] = {}
        for prefix in family:
            kept.setdefault(value(prefix), []).append(prefix)
        size = self.prices.size(kind)
        self.require(
            "values",
            len(kept) <= size and all(0 <= one < size for one in kept),
            f"a message {kind[0]} {{}} takes a value outside its {{}}",
            kind[1],
            size,
        )
        rest = max(kept.values(), key=len)
        self._paid[kind] += 1
        self.require(
            "price",
            self._paid[kind] <= self._allowed[kind],
            f"{{}} messages {kind[0]} {{}} are fixed in a step that pays for {{}}",
            self._paid[kind],
            kind[1],
            self._allowed[kind],
        )
        self.require(
            "price",
            len(rest) * self.prices.values(self._paid) >= self._before,
            "{} of {} prefixes are left, fewer than was paid for",
            len(rest),
            self._before,
        )
        return rest
