"""The line protocol of Theorem III: L = 2, one reading layer, bounded layers before and after it.

    A = z_2 and the first m-t entries of z_1  |  B = the last t entries of z_1  |  z_0  |  w

The prompt is cut where the proof cuts it, and only there are messages bounded:

- the caches of the group before the reading layer at A|B and at B|z_0;
- the caches of the group after it at A|B and just before w;
- what each later token reads of A in the reading layer once its query is fixed.

Everything else is free. Tokens of B know all of B before them. w knows B, z_0 and the first cache
at A|B (their keys and values know no more). Message functions are arbitrary. Every model of the
theorem, of whatever weights, is such a protocol. Source: theory.md, sections 5 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, NamedTuple

from separatrix.core.errors import SizeError
from separatrix.protocols.tables import Tables, Value
from separatrix.tasks import SeqComp

Entries = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class OneReadingSizes:
    """The task (m, n_1), the cut (B has t entries) and numbers of values: `caches_0` = 2^sigma_0,
    `reads` = 2^h, `caches_1` = 2^sigma_1.

    Raises SizeError unless m >= 2, 1 <= t <= m and every other size is at least 1.
    """

    m: int
    n_1: int
    t: int
    caches_0: int = 1
    reads: int = 1
    caches_1: int = 1

    def __post_init__(self) -> None:
        if (
            self.m < 2
            or not 1 <= self.t <= self.m
            or min(self.n_1, self.caches_0, self.reads, self.caches_1) < 1
        ):
            raise SizeError(
                "a protocol needs m >= 2, 1 <= t <= m and at least one value per message; these"
                f" are {self}"
            )

    @property
    def task(self) -> SeqComp:
        return SeqComp(L=2, m=self.m, branching=(self.n_1,))

    @property
    def N_1(self) -> int:
        return self.n_1 * self.m

    def holds(self, r: int) -> tuple[bool, bool]:
        """The two inequalities of Theorem III for this t and an r in 1..m, on numbers of values
        instead of bits.

        (a) r = 1 or m^t > (r-1)^t caches_0; (b) N_1^(n_1 r) > caches_0 reads^n_1 min(caches_1^r,
        caches_1 reads^(rt+1)).
        """
        if not 1 <= r <= self.m:
            raise SizeError(f"r is {r}; Theorem III takes r from 1 to m = {self.m}")
        # powers of integers, compared exactly: no logarithm is rounded
        a = r == 1 or self.m**self.t > (r - 1) ** self.t * self.caches_0
        after = min(self.caches_1**r, self.caches_1 * self.reads ** (r * self.t + 1))
        return a, self.N_1 ** (self.n_1 * r) > self.caches_0 * self.reads**self.n_1 * after

    def failing(self) -> int | None:
        """The smallest r with which Theorem III shows that no protocol of these sizes is right
        everywhere; None if there is none.
        """
        return next((r for r in range(1, self.m + 1) if all(self.holds(r))), None)

    def contents(self) -> Iterator[Entries]:
        """Every B."""
        return product(range(self.m), repeat=self.t)

    def prompts(self) -> Iterator[tuple[Entries, int]]:
        """Every prompt of the cut, entries of z_1 in A being 0, and its right answer."""
        for z_2 in product(range(self.N_1), repeat=self.N_1):
            for B in self.contents():
                for place, w in product(range(self.t), range(self.n_1)):
                    yield prompt(self.m, z_2, B, place, w), z_2[w * self.m + B[place]]


def prompt(m: int, z_2: Entries, B: Entries, place: int, w: int) -> Entries:
    """The tokens of an instance whose z_1 is 0 ... 0 and then B, with z_0 the place in B,
    counted from B's start.
    """
    lead = m - len(B)
    return (*z_2, *(0,) * lead, *B, lead + place, w)


class Transcript(NamedTuple):
    """One run of a protocol: what the last token gets from all others (`view`, its own token
    included) and its answer.
    """

    view: tuple[Any, ...]
    answer: Any


class OneReading(Generic[Value]):
    """A protocol of these sizes with these message functions; one method per message."""

    def __init__(self, sizes: OneReadingSizes, tables: Tables[Value]) -> None:
        self.sizes = sizes
        self._tables = tables

    def first(self, A: Entries) -> Value:
        """The caches of the first group at A|B."""
        return self._tables("first", A, (), self.sizes.caches_0)

    def carried(self, first: Value, B: Entries) -> Value:
        """The caches of the first group after B."""
        return self._tables("carried", B, (first,), self.sizes.caches_0)

    def early(self, A: Entries) -> Value:
        """The caches of the last group at A|B."""
        return self._tables("early", A, (), self.sizes.caches_1)

    def entry_reads(self, first: Value, B: Entries, A: Entries) -> tuple[Value, ...]:
        """What each entry of B reads of A."""
        return tuple(
            # causal: an entry knows B up to itself
            self._tables("entry reads", (B[: j + 1], A), (first,), self.sizes.reads)
            for j in range(len(B))
        )

    def z_0_reads(self, carried: Value, z_0: int, A: Entries) -> Value:
        """What z_0 reads of A: its query knows z_0 and the caches after B."""
        return self._tables("z_0 reads", (z_0, A), (carried,), self.sizes.reads)

    def late(self, first: Value, B: Entries, z_0: int, A: Entries) -> Value:
        """The caches of the last group just before w."""
        if self.sizes.caches_1 == 1:
            return self._tables("late", (), (), 1)  # nobody passes the reads on
        reads = (*self.entry_reads(first, B, A), self.z_0_reads(self.carried(first, B), z_0, A))
        return self._tables("late", (B, z_0), (first, self.early(A), *reads), self.sizes.caches_1)

    def w_reads(self, carried: Value, z_0: int, w: int, A: Entries) -> Value:
        """What w reads of A: its query knows w, z_0 and the caches after B."""
        return self._tables("w reads", (z_0, w, A), (carried,), self.sizes.reads)

    def run(self, tokens: Entries) -> Transcript:
        """Every message of a prompt, and the answer."""
        cut = len(tokens) - 2 - self.sizes.t
        A = tokens[:cut]
        B = tokens[cut:-2]
        z_0, w = tokens[-2:]
        first = self.first(A)
        carried = self.carried(first, B)
        # w sees the caches only: what B and z_0 read of A reaches it through the late ones
        told = (first, self.late(first, B, z_0, A), self.w_reads(carried, z_0, w, A))
        answer = self._tables("answer", (B, z_0, w), told, self.sizes.N_1)
        return Transcript((*told, B, z_0, w), answer)
