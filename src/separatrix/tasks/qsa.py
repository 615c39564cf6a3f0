from __future__ import annotations

from math import gcd

from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import SAME, ladder, size
from separatrix.tasks.base.layout import Growth, Layout, Part
from separatrix.tasks.base.task import Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import distinct, shuffled


class QSA(Task):
    """qSA: q-sparse averaging, each set of q places asks for the sum of the values that stand
    there.

        n = 4, q = 2, V = 3:   position   0   1   2   3   4   5   6   7
                               input      2   0   1   2   6   3   4   5
                               target     .   .   .   .   .   1   .   1

        any n, q, V:           position   0     ...   n-1       n     ...   n+q-1   n+q   ...
                               input      z_0   ...   z_(n-1)   y_1 (q tokens)      y_2   ...
                               target     .     .     .         .     .     s_1     .     s_2

    Values are the ids 0..V-1, place p is id V + p. Every set y_i holds q different places, in any
    order, and after its last token s_i = sum of z_p over p in y_i, modulo V, is due. Above: z_3 +
    z_0 = 2 + 2 = 1 mod 3 and z_1 + z_2 = 0 + 1.

    Drawn: n >= q V. (A set of one place asks for the value that stands there, which is index: any
    one value that is seen is asked for now and then.)

    All V values stand in the prompt about equally often: floor(n/V) or ceil(n/V) times (a uniform
    shift says which), in uniform order. Each answer is drawn first, uniform; then the set, uniform
    among those with that sum. So an answer is uniform whatever the values are. That also holds for
    any one set and any numbers of times that the values occur. For all orders of the values are
    equally likely, and as many of them give one sum as another, each divided by the number of sets
    that have the sum. Hence counts, any one place, and the set by itself say nothing; only values
    and set together do. (Who looks up some of a set's values gains a little before the last, since
    of the values left fewer are equal to it, less for larger n: "looked up".)

    Counted: V^n / gcd(q, V) for q < n, V for q = n, for the n values [here].

    Two value vectors are equivalent when their difference d sums to 0 modulo V over every set of q
    places. Where q < n, sets that differ in one place show that all d_i are equal, and q d = 0 has
    gcd(q, V) solutions d modulo V. Where q = n there is one set, and the sum is all that counts.

    From: [San23], q-sparse averaging: N inputs (z_i; y_i; i) with vectors z_i in the unit ball and
    sets y_i of q of the N places; output i is (1/q) sum of z_p over p in y_i. Its structure is
    kept: one set for every place unless the size sets says otherwise, any set allowed. Ours are
    whole numbers for vectors; the sum for the average, modulo V so that answers can be uniform; and
    that all values stand before all sets, since a causal model cannot look ahead
    """

    name = "qsa"
    title = (
        "q-sparse averaging: n values, then sets of q places; answer the sum of each set's values"
        " modulo V"
    )
    source = "[San23]"
    several = True
    shortcuts = measured = ("looked up",)
    grid = ladder("""
        n=8,q=3,V=2 n=10,q=2,V=4 n=12,q=2,V=6,sets=10 n=64,q=4,V=8,sets=32 n=128,q=8,V=16,sets=32
        n=512,q=8,V=32,sets=64
    """)

    n: int = size(2)
    q: int = size(2, lambda task: task.n)
    V: int = size(2)
    sets: int = size(1, default=SAME)

    def drawn_from(self, size: str) -> int:
        """From q V values on every sum is sure to have a set."""
        return self.q * self.V if size == "n" else 0

    def layout(self) -> Layout:
        kept = f"q = {self.q:,}, V = {self.V:,}, "
        return Layout(
            length=self.n + self.sets * self.q,
            ids={"value": self.V, "place": self.n},
            answers={"value": self.V},
            prefix=self.n,
            classes=self._classes(),
            written={"place": "@{}"},
            spelling="Place p, counted from 0, is written @p.",
            parts={"z": Part("value", slice(self.n)), "a set": Part("place", slice(self.n, None))},
            grows=Growth(f"{kept}as many sets as values", {"sets": (1, 0)})
            if self.sets == self.n
            else Growth(f"{kept}{self.sets:,} sets"),
        )

    def _classes(self) -> Count:
        common = gcd(self.q, self.V)
        if self.q == self.n:
            return Exact(self.V)
        if self.V & (self.V - 1) == 0:
            # a power of two, which is compared with other powers of two exactly
            return Power(2, (self.V.bit_length() - 1) * self.n - (common.bit_length() - 1))
        return (
            Power(self.V, self.n)
            if common == 1
            else Product((Exact(self.V // common), Power(self.V, self.n - 1)))
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        n = self.n
        q = self.q
        V = self.V
        # slot j stands at places[j] and holds value start + j
        places = shuffled(batch, n, rng)
        start = rng.integers(V, size=batch)
        values = np.empty((batch, n), np.int64)
        np.put_along_axis(values, places, (start[:, None] + np.arange(n)) % V, axis=1)
        sums = rng.integers(V, size=(batch, self.sets))
        slots = self._slots((sums - q * start[:, None]).ravel(), rng)
        sets = np.take_along_axis(places, slots.reshape(batch, self.sets * q), axis=1)
        return Batch(self.write(values, sets), self.targets(batch, self._due, sums))

    def _slots(self, sums: Tokens, rng: np.random.Generator) -> Tokens:
        """(sets, q): uniform among rows of different slots of [n] with that sum modulo V."""
        slots = np.empty((len(sums), self.q), np.int64)
        left = np.arange(len(sums))
        while len(left):
            first = distinct(len(left), self.q - 1, self.n, rng)
            # all slots of a residue alike, those beyond n drawn again: no row of slots is favoured
            last = (sums[left] - first.sum(1)) % self.V + self.V * rng.integers(
                -(-self.n // self.V), size=len(left)
            )
            good = (last < self.n) & (first != last[:, None]).all(1)
            slots[left[good]] = np.column_stack((first, last))[good]
            left = left[~good]
        return slots

    @property
    def _due(self) -> slice:
        return slice(self.n + self.q - 1, None, self.q)

    def answer(self, tokens: Tokens) -> Tokens:
        values, sets = self.read(tokens)
        each = (len(sets), self.sets, self.q)
        self._differ(
            sets.reshape(each),
            f"a set holds a place twice; its q = {self.q} tokens must be different places",
        )
        sums = np.take_along_axis(values, sets, axis=1).reshape(each).sum(axis=2) % self.V
        return self.targets(len(values), self._due, sums)
