from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.layout import Layout, Part, Table
from separatrix.tasks.base.task import Batch, Composition, Task, Tokens
from separatrix.tasks.drawing.distinct import avoiding, balanced


def leading(asked: Tokens, start: Tokens, P: int, K: int, rng: np.random.Generator) -> Tokens:
    """K swaps (batch, K) of P pointers, uniform among those that bring what stands at `start` to
    `asked`.

    From the last swap back: a uniform one keeps what stands at a pointer there with probability
    1 - 2/P. j uniform ones lead from a pointer to itself with probability e_j, to any other d_j.
    """
    ids = np.zeros((P, P), np.int64)
    one, two = swapped(P)
    ids[one, two] = ids[two, one] = np.arange(len(one))
    swaps = np.empty((len(asked), K), np.int64)
    at = asked
    for left in range(K - 1, -1, -1):
        home, away = (float(share) for share in ways(P, left))
        there = at == start
        # weights of staying, of going to the start, and of going anywhere else
        stays = (P - 2) * np.where(there, home, away)
        comes = np.where(there, 0.0, 2 * home / (P - 1))
        goes = 2 * away * np.where(there, 1.0, (P - 2) / (P - 1))
        drawn = rng.random(len(at)) * (stays + comes + goes)
        one = (at + rng.integers(1, P, size=len(at))) % P
        two = avoiding(P, np.column_stack((at, np.where(there, one, start))), 1, rng)[:, 0]
        stayed = drawn < stays
        to = np.where(drawn < stays + comes, start, np.where(there, one, two))
        third = avoiding(P, np.column_stack((at, one)), 1, rng)[:, 0]
        swaps[:, left] = np.where(stayed, ids[one, third], ids[at, to])
        at = np.where(stayed, at, to)
    return swaps


@lru_cache(maxsize=4096)
def ways(P: int, swaps: int) -> tuple[Fraction, Fraction]:
    """(e_j, d_j) for j swaps: from a pointer to itself, to another; beyond 256 as for 256."""
    left = (1 - Fraction(2, P - 1)) ** min(swaps, 256)
    return (1 + (P - 1) * left) / P, (1 - left) / P


@lru_cache
def swapped(P: int) -> tuple[Tokens, Tokens]:
    """The two pointers that each swap exchanges."""
    one, two = np.triu_indices(P, 1)
    return one, two


def exchanged(pointer: Tokens, swap: Tokens, P: int) -> Tokens:
    """What a swap makes of a pointer: the other one of the two, itself where it takes no part."""
    one, two = (ends[swap] for ends in swapped(P))
    return np.where(one == pointer, two, np.where(two == pointer, one, pointer))


MOST_POINTERS = 64
MOST_SWAPS = 1 << 16


class StateRecall(Composition, Task):
    """State-based recall: pointers into a memory are exchanged, then what one of them points to is
    recalled.

        n = 4, V = 2, P = 3, K = 2:   position   0   1   2   3   4    5    6    7     8     9
                                      input      1   0   0   1   @2   @0   @3   0~1   1~2   ?1
                                      target     .   .   .   .   .    .    .    .     .     1
        the pointer asked for, 1, was 2 before the swaps; it points to cell 3, which holds 1

        by position:   n values of [V]; then P different cells, where the pointers point;
                       then K swaps, each of two pointers; then the pointer asked for

    Ids are those of the V values, then of the n cells @, of the P(P-1)/2 swaps i~j in the order
    0~1, 0~2, ..., 1~2, ..., and of the P queries ?.

    Drawn: n cells, V values, P pointers, K swaps.

    Tracking alone gives the cell and not what it holds, retrieval cannot begin before the cell is
    known. All values are equally likely answers:

    - The memory holds all values equally often (n a multiple of V), in uniform order, and the cell
    asked for is uniform and independent of it. So counts say nothing, and whatever is read off the
    memory alone is right with probability 1/V. The other tokens know no values. If n = rV + e with
    e > 0, e uniform values stand in one cell more: to count them is worth (r+1)/n, and a single
    cell 1/n + (1 - 1/n) P(two cells agree).
    - The pointer asked for is uniform, and where what it points to in the end was at the beginning
    is a uniform one of the P pointers, whatever is asked. The swaps are uniform among all that lead
    from there to there: one by one from the last, each with the probability that swaps drawn at
    random would have. So what is asked for is where it was at the beginning with probability 1/P
    exactly, and no swap is special.

    Who follows the swaps but the first j is right about a pointer with probability a little above
    (1 + (P - 1) x^j)/P, x = 1 - 2/(P - 1), which is why the sizes below have K >= 3 P.

    What is asked for is one of the P values pointed to, each with probability 1/P. So the most
    frequent of these, with no swap followed, is right more often than others ("pointed"); no
    sampler avoids it, since any P values have a mode. Where V divides n and every cell is pointed
    to, P = n, that is 1/V, as in all but the last of the sizes below.

    The chain goes back from the question: the pointer that stood for the one asked for before the
    last swap, ..., before the first, then its cell, then the value there.

    Counted: V^n, for the memory [here]: two memories differ in some cell, and the continuation that
    lets a pointer point there and asks for it tells them apart. After the pointers only their P
    cells matter.

    From: Merrill et al., arXiv 2604.03444 (a bit array, five pointers, swaps; theory.md, section
    8), here with any V and P, one token a swap
    """

    name = "state-recall"
    title = "state-based recall: P pointers into n cells are exchanged K times, then one is read"
    source = "arXiv 2604.03444"
    shortcuts = measured = ("pointed",)
    grid = ladder("""
        n=6,V=2,K=24,P=6 n=8,V=4,K=32,P=8 n=12,V=6,K=48,P=12 n=32,V=8,K=96,P=32 n=64,V=16,K=192,P=64
        n=512,V=32,K=128,P=32
    """)

    n: int = size(lambda task: task.P, told="cells")
    V: int = size(2, told="values")
    K: int = size(1, MOST_SWAPS, told="swaps")
    P: int = size(3, MOST_POINTERS, default=5, told="pointers")

    def layout(self) -> Layout:
        """The cells are the facts; where the pointers stand decides which one is asked for."""
        swap = f"swap of two of {self.P} pointers"
        set_to = self.n + self.P
        twice = f"two pointers point to one cell; the {self.P} ids of cells must differ"
        return Layout.listing(
            Table(self.n, self.V, question=self.P + self.K + 1),
            {"value": self.V, "cell": self.n, swap: self.swaps, "pointer": self.P},
            parts={
                "the memory": Part("value", slice(self.n)),
                "a pointer": Part("cell", slice(self.n, set_to), different=twice),
                "a swap": Part(swap, slice(set_to, -1)),
                "the question": Part("pointer", -1),
            },
            steps=self.K + 2,
            written={"cell": "@{}", "pointer": "?{}"},
            spelling=(
                "Cell c is written @c, the swap of pointers i and j as i~j, the pointer asked for"
                " as ?i; all are counted from 0."
            ),
        )

    def word(self, token: int) -> str:
        _, _, swaps, _ = self.token_ids.values()
        if token not in swaps:
            return super().word(token)
        one, two = swapped(self.P)
        return f"{one[token - swaps.start]}~{two[token - swaps.start]}"

    @property
    def swaps(self) -> int:
        return self.P * (self.P - 1) // 2

    def law(self, step: int) -> tuple[tuple[range, Fraction], ...]:
        values, cells, _, pointers = self.token_ids.values()
        ids = pointers if step <= self.K else cells if step == self.K + 1 else values
        return ((ids, Fraction(1, len(ids))),)

    def level(self, probe: str) -> Fraction:
        each, more = divmod(self.n, self.V)
        if probe == "counts":
            return Fraction(each + bool(more), self.n)
        if probe == "position":
            # two different cells hold the same value
            agree = each * (each - 1) * (self.V - more) + (each + 1) * each * more
            return Fraction(1, self.n) + Fraction(agree, self.n**2)
        return self.chance

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        rows = np.arange(batch)
        memory = balanced(batch, self.n, self.V, rng)
        pointers = self._different(batch, rng)
        asked = rng.integers(self.P, size=batch)
        swaps = leading(asked, rng.integers(self.P, size=batch), self.P, self.K, rng)
        first = self._traced(swaps, asked)[:, -1]
        return Batch(
            self.write(memory, pointers, swaps, asked), memory[rows, pointers[rows, first]]
        )

    def _different(self, batch: int, rng: np.random.Generator) -> Tokens:
        """(batch, P): different uniform cells, one after the other."""
        pointers = np.empty((batch, self.P), np.int64)
        for chosen in range(self.P):
            pointers[:, [chosen]] = avoiding(self.n, pointers[:, :chosen], 1, rng)
        return pointers

    def _traced(self, swaps: Tokens, pointer: Tokens) -> Tokens:
        """(batch, K): where what a pointer points to stood before each swap, from the last on."""
        chain = np.empty(swaps.shape, np.int64)
        for place in range(swaps.shape[1]):
            chain[:, place] = pointer = exchanged(pointer, swaps[:, -1 - place], self.P)
        return chain

    def chain(self, tokens: Tokens) -> Tokens:
        """Ids of pointers, last swap first, the cell, the value: (batch, K + 2), or SizeError."""
        memory, pointers, swaps, asked = self.read(tokens)
        rows = np.arange(len(memory))
        traced = self._traced(swaps, asked)
        cell = pointers[rows, traced[:, -1]]
        _, cells, _, names = self.token_ids.values()
        return np.column_stack((names.start + traced, cells.start + cell, memory[rows, cell]))
