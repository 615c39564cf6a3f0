from __future__ import annotations

from separatrix.core.numbers.binomials import Partitions
from separatrix.core.numbers.counts import Exact, Sum
from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.described import size
from separatrix.tasks.base.layout import YES_OR_NO, Growth, Layout
from separatrix.tasks.base.task import Batch, Task, Tokens


def long_ones(cycle: Bools, n: int, rng: np.random.Generator) -> Tokens:
    """The edges (batch, n - 1, 2) of trees with a trunk: the first of the vertices are a path, and
    every other one joins a uniform earlier one.

    Where `cycle` (batch,) holds, some first vertices of the trunk are a cycle instead: the edge
    that leads on from the last of them leads back to the first.
    """
    batch = len(cycle)
    trunk = n - n // 4
    least = trunk // 3
    size = rng.integers(least, trunk - least + 1, size=batch)
    edges = np.empty((batch, n - 1, 2), np.int64)
    edges[:, :, 1] = np.arange(1, n)
    edges[:, : trunk - 1, 0] = np.arange(trunk - 1)
    edges[:, trunk - 1 :, 0] = rng.integers(np.arange(trunk, n), size=(batch, n - trunk))
    edges[np.flatnonzero(cycle), size[cycle] - 1, 1] = 0
    return edges


def shuffled(edges: Tokens, rng: np.random.Generator) -> Tokens:
    """Graphs (batch, edges, 2) renamed uniformly, edges in uniform order."""
    batch, number, _ = edges.shape
    names = rng.random((batch, number + 1)).argsort(axis=1, kind="stable")
    edges = np.take_along_axis(names, edges.reshape(batch, -1), axis=1).reshape(edges.shape)
    places = rng.random((batch, number)).argsort(axis=1, kind="stable")
    return np.take_along_axis(edges, places[..., None], axis=1)


def joined(u: Tokens, v: Tokens, n: int) -> Bools:
    """Whether the edges u-v, each (batch, edges), join all n vertices of their graph."""
    to = groups(u, v, n)
    return (to == to[:, :1]).all(axis=1)


def groups(u: Tokens, v: Tokens, n: int) -> Tokens:
    """A number of [batch n] for every vertex (batch, n), the same for those that edges join.

    Every vertex points to one of its group, at last to the smallest. Each group with an edge to a
    group with a smaller such vertex is hung on the smallest of those, and pointers are followed to
    their ends, until no edge runs between groups.
    """
    row = n * np.arange(len(u))[:, None]
    to = np.arange(row.size * n)
    ends = np.stack(((u + row).ravel(), (v + row).ravel()))
    while True:
        low, high = np.sort(to[ends], axis=0)
        between = low != high
        if not between.any():
            return to.reshape(len(u), n)
        ends = ends[:, between]
        np.minimum.at(to, high[between], low[between])
        while ((further := to[to]) != to).any():
            to = further


_LEAST_DRAWN = 64


class IsTree(Task):
    """IsTree: is the graph whose edges stand in the prompt a tree?

        n = 5:   position   0   1   2   3   4   5   6   7
                 input      2   0   4   1   0   3   1   2
                 target     .   .   .   .   .   .   .   1

        any n:   position   0     1     2     3     ...   2n-4      2n-3
                 input      u_1   v_1   u_2   v_2   ...   u_(n-1)   v_(n-1)
                 target     .     .     .     .     ...   .         0 or 1

    n vertices 0..n-1 and n - 1 edges, each as its two ends, in any order. The answer is 1 when the
    edges join all vertices, which n - 1 edges do only without a cycle. A loop (u u) and an edge
    given twice are cycles: every sequence of 2(n - 1) vertices is an instance.

    Drawn: n >= 64. Sampled so that both answers have probability 1/2 exactly.

    p = ceil(3n/4) of the vertices, the trunk, are a path; or, by a fair coin, a cycle of c of them,
    c uniform from floor(p/3) to p minus that, and a path of the others. One edge differs. Then
    every other vertex joins a uniform one of those that stand already. Vertices have uniform names,
    edges and ends of edges stand in uniform order, and no edge is a loop or given twice.

    So no cycle and no tree beside a cycle has fewer than floor(p/3) vertices, about n/4: whoever
    looks fewer steps than half of that round every vertex sees trees under both answers. What hangs
    on the trunk has a law that no exchange of its vertices changes, and s neighbours in a row on
    the trunk, s <= p/3, stand there equally often under both answers: p - s + 1 times. So whatever
    is counted of s neighbours in a row, with all that hangs on them, has one mean under both
    answers, and so have degrees, edges with the degrees of their ends, and walks. Cycles of all
    lengths from n/4 to n/2 occur. Whoever follows edges that far finds them, and has solved the
    task. How many walks of s edges end at each vertex, squared, is a matter of 2s + 1 neighbours in
    a row, and from n = 64 on s = log2 n, rounded up, has 2s + 1 <= p/3: there such walks say
    nothing. Longer ones are a part of the task.

    Counted: S(n, b) + 1 for prefixes of n - b edges, S being the number of partitions of n vertices
    into b groups [here]; n log n + O(n log log n) bits, where [Wen25] has Omega(n).

    One class for prefixes that hold a cycle: their answer is 0 whatever follows. The others are
    forests with b trees; the answers depend on which vertices are joined, a partition into b
    groups, and every such partition has a forest. Of two partitions P != Q with b groups each, Q is
    no refinement of P, so some u, v are joined in Q and apart in P. The b - 1 edges still to come
    can be u v and others that make P's groups one: a tree after P, a cycle after Q. (b >= 2 for n
    >= 3; a loop at once shows that cycles occur.)

    It grows with n: S(n+1, b) >= b S(n, b) and S(n+1, b+1) >= S(n, b).

    From: [Wen25], IsTree: whether any two vertices of an undirected graph are joined by exactly one
    path, the graph told edge by edge. There the number of edges varies and every token is a vertex
    or a sign between; the fixed number n - 1, with which no edge count tells, is ours
    """

    name = "istree"
    title = "IsTree: n - 1 edges between n vertices, end by end; answer 1 if they form a tree"
    source = "[Wen25]"
    shortcuts = measured = ("leaves",)
    grid = ("n=64", "n=80", "n=96", "n=129", "n=257")

    n: int = size(3, told="vertices")

    def layout(self) -> Layout:
        """A prefix has 2 tokens for each of the n - b edges of a forest of b trees (`groups`)."""
        n, b = self.n, self.groups
        classes = Sum(((1, Partitions(n, b)), (1, Exact(1))))
        return Layout(
            2 * (n - 1),
            {"vertex": n},
            YES_OR_NO,
            2 * (n - b),
            classes,
            grows=Growth("n vertices and n - 1 edges"),
        )

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

    def drawn_from(self, size: str) -> int:
        return _LEAST_DRAWN * (size == "n")

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        edges = shuffled(long_ones(labels == 0, self.n, rng), rng)
        ends = rng.integers(2, size=(batch, self.n - 1, 1))
        return Batch(
            np.where(ends == 1, edges[..., ::-1], edges).reshape(batch, self.length), labels
        )

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return joined(tokens[:, 0::2], tokens[:, 1::2], self.n).astype(np.int64)
