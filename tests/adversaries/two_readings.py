"""The line protocol of Theorem IV: L = 2, two reading layers, bounded heads inside them and bounded
layers after them, none before or between.

    A = z_2 and the first m-t entries of z_1  |  B = the last t entries of z_1  |  z_0  |  w

Bounded are:

- the caches of layer 1's bounded heads at A|B and B|z_0;
- what a later token reads of A in layer 1, whose query knows the token and its place only;
- w's accumulator of layer 1 after A, B;
- what a later token reads of A in layer 2, whose query knows its output of layer 1;
- the caches of layer 2's bounded heads and of later layers at A|B and just before w.

The rest is free, as in
`one_reading`: w knows the layer-1 outputs of B and z_0. Source: theory.md, sections 5 (Theorem IV)
and 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from separatrix.core.errors import SizeError
from separatrix.protocols.one_reading import Entries, OneReadingSizes, Transcript
from separatrix.protocols.tables import Tables, Value
from separatrix.tasks import SeqComp


@dataclass(frozen=True, kw_only=True)
class TwoReadingsSizes:
    """The task (m, n_1), the cut (B has t entries) and numbers of values: `reads_1` = 2^h_1,
    `reads_2` = 2^h_2, `caches_1` = 2^sigma_1, `caches_2` = 2^sigma_2. Raises SizeError unless m >=
    2, 1 <= t <= m and every other size is at least 1.
    """

    m: int
    n_1: int
    t: int
    reads_1: int = 1
    reads_2: int = 1
    caches_1: int = 1
    caches_2: int = 1

    def __post_init__(self) -> None:
        if (
            self.m < 2
            or not 1 <= self.t <= self.m
            or min(self.n_1, self.reads_1, self.reads_2, self.caches_1, self.caches_2) < 1
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

    def holds(self, r: int, q: int, g: int) -> tuple[bool, bool]:
        """The two inequalities of Theorem IV for this t, 2 <= r <= q <= m and 1 <= g <= n_1, on
        numbers of values instead of bits.

        (a) q^t > (r-1)^t caches_1 reads_1^g; (b) N_1^(n_1 r) > caches_1 (reads_1 reads_2)^n_1
        reads_1^(qt + min(t, G)) caches_2^(G r), G the number of groups of g values of w.
        """
        if not (2 <= r <= q <= self.m and 1 <= g <= self.n_1):
            raise SizeError(
                f"r, q, g are {r}, {q}, {g}; Theorem IV takes 2 <= r <= q <= m = {self.m} and 1 <="
                f" g <= n_1 = {self.n_1}"
            )
        groups = -(-self.n_1 // g)
        # powers of integers, compared exactly: no logarithm is rounded
        a = q**self.t > (r - 1) ** self.t * self.caches_1 * self.reads_1**g
        right = (
            self.caches_1
            * (self.reads_1 * self.reads_2) ** self.n_1
            * self.reads_1 ** (q * self.t + min(self.t, groups))
        )
        return a, self.N_1 ** (self.n_1 * r) > right * self.caches_2 ** (groups * r)

    def failing(self) -> tuple[int, int, int] | None:
        """The first (r, q, g) with which Theorem IV shows that no protocol of these sizes is
        right everywhere; None if there is none.
        """
        triples = (
            (r, q, g)
            for q in range(2, self.m + 1)
            for r in range(2, q + 1)
            for g in range(1, self.n_1 + 1)
        )
        return next((triple for triple in triples if all(self.holds(*triple))), None)

    def prompts(self) -> Iterator[tuple[Entries, int]]:
        """Every prompt of the cut, entries of z_1 in A being 0, and its right answer."""
        return OneReadingSizes(m=self.m, n_1=self.n_1, t=self.t).prompts()


class TwoReadings(Generic[Value]):
    """A protocol of these sizes with these message functions; one method per message."""

    def __init__(self, sizes: TwoReadingsSizes, tables: Tables[Value]) -> None:
        self.sizes = sizes
        self._tables = tables

    def first(self, A: Entries) -> Value:
        """The caches of layer 1's bounded heads at A|B."""
        return self._tables("first", A, (), self.sizes.caches_1)

    def carried(self, first: Value, B: Entries) -> Value:
        """The same after B."""
        return self._tables("carried", B, (first,), self.sizes.caches_1)

    def entry_reads(self, place: int, entry: int, A: Entries) -> Value:
        """What an entry of B reads of A in layer 1."""
        return self._tables("entry reads", (place, entry, A), (), self.sizes.reads_1)

    def z_0_reads(self, z_0: int, A: Entries) -> Value:
        """What z_0 reads of A in layer 1."""
        return self._tables("z_0 reads", (z_0, A), (), self.sizes.reads_1)

    def w_reads(self, w: int, A: Entries) -> Value:
        """What w reads of A in layer 1."""
        return self._tables("w reads", (w, A), (), self.sizes.reads_1)

    def gathered(self, w: int, w_reads: Value, B: Entries) -> Value:
        """w's accumulator of layer 1 after A and B."""
        return self._tables("gathered", (w, B), (w_reads,), self.sizes.reads_1)

    def early(self, A: Entries) -> Value:
        """The caches of layer 2's bounded heads and of later layers at A|B."""
        return self._tables("early", A, (), self.sizes.caches_2)

    def outputs(self, B: Entries, z_0: int, A: Entries) -> tuple[Value, ...]:
        """What the layer-1 outputs of B and z_0 know of A beside the caches at A|B."""
        return (
            *(self.entry_reads(place, entry, A) for place, entry in enumerate(B)),
            self.z_0_reads(z_0, A),
        )

    def late(self, first: Value, B: Entries, z_0: int, A: Entries) -> Value:
        """The caches of layer 2's bounded heads and of later layers just before w."""
        if self.sizes.caches_2 == 1:
            return self._tables("late", (), (), 1)  # nobody passes the reads on
        outputs = self.outputs(B, z_0, A)
        size = self.sizes.reads_2
        second = [
            self._tables("entry reads again", (B[: j + 1], A), (first, outputs[j]), size)
            for j in range(len(B))
        ]
        second.append(self._tables("z_0 reads again", (B, z_0, A), (first, outputs[-1]), size))
        return self._tables(
            "late", (B, z_0), (first, self.early(A), *outputs, *second), self.sizes.caches_2
        )

    def w_reads_again(self, carried: Value, gathered: Value, z_0: int, w: int, A: Entries) -> Value:
        """What w reads of A in layer 2: its query knows w, z_0, the layer-1 caches after B and
        w's accumulator of layer 1.
        """
        return self._tables("w reads again", (z_0, w, A), (carried, gathered), self.sizes.reads_2)

    def run(self, tokens: Entries) -> Transcript:
        """Every message of a prompt, and the answer."""
        cut = len(tokens) - 2 - self.sizes.t
        A = tokens[:cut]
        B = tokens[cut:-2]
        z_0, w = tokens[-2:]
        first = self.first(A)
        carried = self.carried(first, B)
        gathered = self.gathered(w, self.w_reads(w, A), B)
        second = self.w_reads_again(carried, gathered, z_0, w, A)
        told = (first, self.late(first, B, z_0, A), gathered, second, *self.outputs(B, z_0, A))
        answer = self._tables("answer", (B, z_0, w), told, self.sizes.N_1)
        return Transcript((*told, B, z_0, w), answer)
