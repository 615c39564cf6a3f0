"""IsTree: is the graph whose edges stand in the prompt a tree?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact, Sum
from separatrix.core.numbers.lazy import np
from separatrix.core.numbers.partitions import Partitions
from separatrix.tasks.base.layout import YES_OR_NO, Layout
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.trees import crossed, grown, joined, long_ones, shuffled

WORDS = Words(
    asks="IsTree: is the graph whose edges stand in the prompt a tree?",
    table="""
        n = 5:   position   0   1   2   3   4   5   6   7
                 input      2   0   4   1   0   3   1   2
                 target     .   .   .   .   .   .   .   1

        any n:   position   0     1     2     3     ...   2n-4      2n-3
                 input      u_1   v_1   u_2   v_2   ...   u_(n-1)   v_(n-1)
                 target     .     .     .     .     ...   .         0 or 1
    """,
    rules="""
        n vertices 0..n-1 and n - 1 edges, each as its two ends, in any order. The answer is 1 when
        the edges join all vertices, which n - 1 edges do only without a cycle. A loop (u u) and an
        edge given twice are cycles: every sequence of 2(n - 1) vertices is an instance.
    """,
    drawn="""
        n >= 3 vertices; drawn for n >= 64 (under a shift 7). Sampled so that both answers have
        probability 1/2 exactly.

        p = ceil(3n/4) of the vertices, the trunk, are a path; or, by a fair coin, a cycle of c of
        them, c uniform from floor(p/3) to p minus that, and a path of the others.
        One edge differs. Then every other vertex joins a uniform one of those that stand already.
        Vertices have uniform names, edges and ends of edges stand in uniform order, and no edge is
        a loop or given twice.

        So no cycle and no tree beside a cycle has fewer than floor(p/3) vertices, about n/4:
        whoever looks fewer steps than half of that round every vertex sees trees under both
        answers. What
        hangs on the trunk has a law that no exchange of its vertices changes, and s neighbours in a
        row on the trunk, s <= p/3, stand there equally often under both answers: p - s + 1 times.
        So whatever is counted of s neighbours in a row, with all that hangs on them, has one mean
        under both answers, and so have degrees, edges with the degrees of their ends, and walks.
        Cycles of all lengths from n/4 to n/2 occur. Whoever follows edges that far finds them, and
        has solved the task. How many walks of s edges end at each vertex, squared, is a matter of
        2s + 1 neighbours in a row, and from n = 64 on s = log2 n, rounded up, has 2s + 1 <= p/3:
        there such walks say nothing. Longer ones are a part of the task: at n = 64 those of 12
        edges tell 0.66, of 16 edges 0.85. (At n = 24 and 33 six edges told 0.75 and 0.61, at
        n = 48 0.52.)

        Shifts grow a tree vertex by vertex, which is shown, or by a fair coin with two of its edges
        a-b and c-d, on a path a, b, ..., c, d, exchanged for a-d and b-c, which leaves the degrees
        of all vertices and of their neighbours: short cycles tell there.
    """,
    counted="""
        S(n, b) + 1 for prefixes of n - b edges, S being the number of partitions of n vertices into
        b groups [here]; n log n + O(n log log n) bits, where [Wen25] has Omega(n).

        One class for prefixes that hold a cycle: their answer is 0 whatever follows. The others are
        forests with b trees; the answers depend on which vertices are joined, a partition into b
        groups, and every such partition has a forest. Of two partitions P != Q with b groups each,
        Q is no refinement of P, so some u, v are joined in Q and apart in P. The b - 1 edges still
        to come can be u v and others that make P's groups one: a tree after P, a cycle after Q. (b
        >= 2 for n >= 3; a loop at once shows that cycles occur.)

        It grows with n: S(n+1, b) >= b S(n, b) and S(n+1, b+1) >= S(n, b).
    """,
    origin="""
        [Wen25], IsTree: whether any two vertices of an undirected graph are joined by exactly one
        path, the graph told edge by edge. There the number of edges varies and every token is a
        vertex or a sign between; the fixed number n - 1, with which no edge count tells, is ours
    """,
)

_LEAST_DRAWN = 64
_LEAST_SHIFTED = 7
"""Where n < 7 no tree has two edges to exchange: b and c have two neighbours on the path, so d and
a have two as well, and the path goes on beyond them to seven vertices.
"""


@dataclass(frozen=True, kw_only=True)
class IsTree(Task):
    """Whether n - 1 edges between n vertices form a tree."""

    name: ClassVar[str] = "istree"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "IsTree: n - 1 edges between n vertices, end by end; answer 1 if they form a tree"
    )
    usage: ClassVar[str] = "n (vertices), shift=recursive|local"
    source: ClassVar[str] = "[Wen25]"
    shifts: ClassVar[dict[str, str]] = {
        "recursive": (
            "every vertex joins a uniform earlier one, as in the experiments of [Wen25]: short"
            " paths"
        ),
        "local": (
            "every vertex joins one of the two before it, and edges stand in that order: long"
            " chains, told from one end"
        ),
    }
    shortcuts: ClassVar[tuple[str, ...]] = ("cycles", "leaves")
    grid: ClassVar[tuple[str, ...]] = ("n=64", "n=80", "n=96", "n=129", "n=257")

    n: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        self._check_shift(self.shift)
        require(self.name, "n", self.n, 3, LARGEST_SIZE, drawn=self._least)

    def layout(self) -> Layout:
        """A prefix has 2 tokens for each of the n - b edges of a forest of b trees (`groups`)."""
        n, b = self.n, self.groups
        classes = Sum(((1, Partitions(n, b)), (1, Exact(1))))
        return Layout(2 * (n - 1), {"vertex": n}, YES_OR_NO, 2 * (n - b), classes)

    def family(self) -> Family[Self]:
        return self._growing("n vertices and n - 1 edges", 3)

    @property
    def groups(self) -> int:
        """Groups of vertices that are joined with each other after the prefix counted: about n / ln
        n, where most partitions lie.

        It is the largest b with 2 b len(b) <= 3 n, where len(b) is the number of binary digits. It
        never falls as n grows, and grows by at most 1 from one n to the next.
        """
        best = 1
        for digits in range(1, (3 * self.n).bit_length() + 1):
            b = min((1 << digits) - 1, 3 * self.n // (2 * digits))
            best = b if b >> (digits - 1) else best
        return best

    @property
    def _least(self) -> int:
        """The smallest n that is drawn."""
        return _LEAST_DRAWN if self.shift == PLAIN else _LEAST_SHIFTED

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if self.n < self._least:
            raise SizeError(
                f"{self.spec}: so few edges show every cycle at a look; n must be at least"
                f" {self._least}"
            )
        labels = rng.integers(2, size=batch)
        edges = self._long(labels, rng) if self.shift == PLAIN else self._exchanged(labels, rng)
        # without it they stand in the order of growth
        edges = shuffled(edges, rng, order=self.shift != "local")
        ends = rng.integers(2, size=(batch, self.n - 1, 1))
        return Batch(
            np.where(ends == 1, edges[..., ::-1], edges).reshape(batch, self.length), labels
        )

    def _long(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        """The edges (batch, n - 1, 2) of graphs with a trunk, as `words.drawn` has them."""
        trunk = self.n - self.n // 4
        least = trunk // 3
        cycle = rng.integers(least, trunk - least + 1, size=len(labels))
        return long_ones(
            len(labels), self.n, path=trunk, cycle=np.where(labels == 1, 0, cycle), rng=rng
        )

    def _exchanged(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        """The edges (batch, n - 1, 2) of trees grown under a shift, two of them exchanged where the
        answer is 0.
        """
        batch = len(labels)
        edges = np.empty((batch, self.n - 1, 2), np.int64)
        left = np.arange(batch)
        # the coin was thrown before, so that a tree without such edges says nothing about it
        while len(left):
            trees = grown(len(left), self.n, rng, chains=self.shift == "local")
            swapped, fits = crossed(*trees, labels[left] == 0, rng)
            edges[left[fits]] = swapped[fits]
            left = left[~fits]
        return edges

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return joined(tokens[:, 0::2], tokens[:, 1::2], self.n).astype(np.int64)
