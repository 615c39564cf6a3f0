"""IsTree: is the graph whose edges stand in the prompt a tree?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from separatrix.errors import SizeError
from separatrix.numbers.counts import Count, Exact, Sum
from separatrix.numbers.partitions import Partitions
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Decision, Family, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.trees import crossed, grown, joined, shuffled, uniform_trees

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
        n >= 3 vertices; drawn for n >= 7. Sampled so that both answers have probability 1/2
        exactly.

        A uniform tree, and of 64 uniform pairs of its edges the first a-b and c-d with at least two
        steps from b to c on the path a, b, ..., c, d, with a of the degree of c, and b of that of d
        (where none of the pairs is such, another tree is drawn). The tree is shown, or by a fair
        coin the tree with a-d and b-c instead: a cycle through b and c, and a tree beside it that a
        and d belong to. Edges and ends of edges stand in uniform order, renaming the vertices
        changes no probability, and no edge is a loop or given twice.

        Every vertex keeps its degree, and its neighbours keep theirs: a and c lose and get a
        neighbour of one degree, b and d those of another. So the degrees of all vertices have the
        same law under both answers; so has any edge together with the degrees of its ends, and any
        two edges with those of theirs, since as many meet at vertices of the same degrees. What
        tells are at least three edges at once. (Where n < 7 no tree has such edges: b and c have
        two neighbours on the path, so d and a have two as well, and the path goes on beyond them to
        seven vertices.)

        Shifts grow the tree vertex by vertex under the same coin and exchange.
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

_LEAST_DRAWN = 7


@dataclass(frozen=True, kw_only=True)
class IsTree(Decision):
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
    grid: ClassVar[tuple[str, ...]] = ("n=8", "n=12", "n=20", "n=33", "n=65", "n=257")

    n: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 3, LARGEST_SIZE)
        self._check_shift(self.shift)

    @property
    def length(self) -> int:
        return 2 * (self.n - 1)

    @property
    def vocabulary(self) -> int:
        return self.n

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
    def prefix_length(self) -> int:
        """2 tokens for each of the n - b edges of a forest of b trees (`groups`)."""
        return 2 * (self.n - self.groups)

    def prefix_classes(self) -> Count:
        """The count that `words.counted` derives."""
        return Sum(((1, Partitions(self.n, self.groups)), (1, Exact(1))))

    def family(self) -> Family[IsTree]:
        return Family("n vertices and n - 1 edges", lambda n: IsTree(n=n), 3)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if self.n < _LEAST_DRAWN:
            raise SizeError(
                f"{self.spec}: no two edges of a tree on {self.n} vertices can be exchanged for a"
                f" cycle with all neighbours' degrees kept; n must be at least {_LEAST_DRAWN}"
            )
        edges = np.empty((batch, self.n - 1, 2), np.int64)
        left = np.arange(batch)
        labels = rng.integers(2, size=batch)
        # the coin was thrown before, so that a tree without such edges says nothing about it
        while len(left):
            trees = (
                uniform_trees(len(left), self.n, rng)
                if self.shift == PLAIN
                else grown(len(left), self.n, rng, chains=self.shift == "local")
            )
            swapped, fits = crossed(*trees, labels[left] == 0, rng)
            edges[left[fits]] = swapped[fits]
            left = left[~fits]
        # without it they stand in the order of growth, or of numbers now forgotten
        edges = shuffled(edges, rng, order=self.shift == "recursive")
        ends = rng.integers(2, size=(batch, self.n - 1, 1))
        return Batch(
            np.where(ends == 1, edges[..., ::-1], edges).reshape(batch, self.length), labels
        )

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return joined(tokens[:, 0::2], tokens[:, 1::2], self.n).astype(np.int64)
