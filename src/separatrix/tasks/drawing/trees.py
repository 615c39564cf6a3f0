"""Many small graphs at once, in NumPy: trees with a long path or cycle, random trees, an exchange
of two edges that makes a cycle and keeps all degrees, connectedness.
"""

from __future__ import annotations

from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.task import Tokens

_PAIRS = 64
_AT_ONCE = 16
"""Pairs of edges tried per tree, and in one go."""


def long_ones(batch: int, n: int, *, path: int, cycle: Tokens, rng: np.random.Generator) -> Tokens:
    """The edges (batch, n - 1, 2) of trees whose first `path` vertices are a path, and every other
    vertex joins a uniform earlier one.

    Where `cycle` (batch,) is not 0 the path's first so many vertices are a cycle instead: the edge
    that leads on from the last of them leads back to the first.
    """
    rows = np.flatnonzero(cycle)
    edges = np.empty((batch, n - 1, 2), np.int64)
    edges[:, :, 1] = np.arange(1, n)
    edges[:, : path - 1, 0] = np.arange(path - 1)
    edges[:, path - 1 :, 0] = rng.integers(np.arange(path, n), size=(batch, n - path))
    edges[rows, cycle[rows] - 1, 1] = 0
    return edges


def grown(batch: int, n: int, rng: np.random.Generator, *, chains: bool) -> tuple[Tokens, Tokens]:
    """Parents and roots (all 0) of trees to which vertex v > 0 is joined at a uniform earlier
    one, or in `chains` at one of the two before it.
    """
    earlier = np.arange(n)
    parents = rng.integers(np.maximum(earlier, 1), size=(batch, n))
    if chains:
        parents = np.maximum(earlier - rng.integers(1, 3, size=(batch, n)), 0)
    return parents, np.zeros(batch, np.int64)


def crossed(
    parents: Tokens, roots: Tokens, cross: Bools, rng: np.random.Generator
) -> tuple[Tokens, Bools]:
    """The edges (batch, n - 1, 2) of trees, by number of the lower end, and whether one of 64
    uniform pairs of them can be exchanged. Edges a-b and c-d can where the path a, b, ..., c, d has
    at least two steps from b to c, a has the degree of c, and b that of d. Where a pair can and
    `cross` holds, a-d and b-c stand in the places of the first such pair.
    """
    batch, n = parents.shape
    lower = np.tile(np.arange(n - 1), (batch, 1))
    lower += lower >= roots[:, None]
    edges = np.stack((lower, np.take_along_axis(parents, lower, axis=1)), axis=2)
    cells = (edges.reshape(batch, -1) + n * np.arange(batch)[:, None]).ravel()
    degrees = np.bincount(cells, minlength=batch * n).reshape(batch, n)
    one_end, other_end = degrees.ravel()[cells].reshape(batch, n - 1, 2).transpose(2, 0, 1)
    low = np.minimum(one_end, other_end)
    # b and c have two edges or more, so a and d do: an edge with an end of degree 1 fits none (0)
    kinds = np.where(low > 1, n * low + np.maximum(one_end, other_end), 0)
    fits = np.zeros(batch, bool)
    left = np.arange(batch)
    for _ in range(_PAIRS // _AT_ONCE):
        row, one, two, ends = _exchanges(left, parents, edges, degrees, kinds, rng)
        row, first = np.unique(row, return_index=True)
        # before `cross` is looked at: which trees fit says nothing about the label
        fits[row] = True
        first = first[cross[row]]
        row, (a, b, c, d) = row[cross[row]], ends[:, first]
        edges[row, one[first]] = np.stack((a, d), axis=1)
        edges[row, two[first]] = np.stack((b, c), axis=1)
        left = left[~fits[left]]
        if not len(left):
            break
    return edges, fits


def _exchanges(
    rows: Tokens,
    parents: Tokens,
    edges: Tokens,
    degrees: Tokens,
    kinds: Tokens,
    rng: np.random.Generator,
) -> tuple[Tokens, Tokens, Tokens, Tokens]:
    """Of 16 uniform pairs of edges for each of the rows those that can be exchanged: their rows,
    the two edges' numbers, and the ends (4, pairs).
    """
    number = edges.shape[1]
    row = np.repeat(rows, _AT_ONCE)
    one = rng.integers(number, size=len(row))
    two = (one + rng.integers(1, number, size=len(row))) % number
    kind = kinds[row, one]
    alike = (kind > 0) & (kind == kinds[row, two])
    row = row[alike]
    one = one[alike]
    two = two[alike]
    (a, b), (d, c) = edges[row, one].T, edges[row, two].T
    # an end above the other edge is the one from which the path leaves downward
    above = _above(parents, row, a, d)
    below = _above(parents, row, d, a)
    a, b = np.where(above, b, a), np.where(above, a, b)
    d, c = np.where(below, c, d), np.where(below, d, c)
    kept = (b != c) & (parents[row, b] != c) & (parents[row, c] != b)
    kept &= (degrees[row, a] == degrees[row, c]) & (degrees[row, b] == degrees[row, d])
    return row[kept], one[kept], two[kept], np.stack((a, b, c, d))[:, kept]


def _above(parents: Tokens, rows: Tokens, top: Tokens, vertex: Tokens) -> Bools:
    """Whether `top` is an ancestor of `vertex` in the tree of each row."""
    found = np.zeros(len(top), bool)
    left = np.arange(len(top))
    while len(left):
        step = parents[rows[left], vertex]
        met = step == top[left]
        ended = step == vertex
        found[left[met & ~ended]] = True
        left = left[~met & ~ended]
        vertex = step[~met & ~ended]
    return found


def shuffled(edges: Tokens, rng: np.random.Generator, *, order: bool) -> Tokens:
    """The graphs (batch, edges, 2) with vertices renamed uniformly, and edges in uniform order
    where that is asked for.
    """
    batch, number, _ = edges.shape
    names = rng.random((batch, number + 1)).argsort(axis=1, kind="stable")
    edges = np.take_along_axis(names, edges.reshape(batch, -1), axis=1).reshape(edges.shape)
    if not order:
        return edges
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
    their ends. The next round takes larger and largest, and so on in turn until no edge runs
    between groups.
    """
    batch = len(u)
    row = n * np.arange(batch)[:, None]
    to = np.arange(batch * n)
    one = (u + row).ravel()
    other = (v + row).ravel()
    down = True
    while True:
        one = to[one]
        other = to[other]
        between = one != other
        if not between.any():
            return to.reshape(batch, n)
        one = one[between]
        other = other[between]
        low = np.minimum(one, other)
        high = np.maximum(one, other)
        if down:
            np.minimum.at(to, high, low)
        else:
            np.maximum.at(to, low, high)
        down = not down
        while ((further := to[to]) != to).any():
            to = further
