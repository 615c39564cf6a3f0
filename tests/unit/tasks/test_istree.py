"""IsTree: answers by hand, uniform trees, what closes a cycle in one that grows, classes of
prefixes at every length.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx
import numpy as np
import pytest
from flint import arb, ctx
from support.counted_classes import counted_classes
from support.each import each
from support.short_looks import cycles

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.binomials import Partitions
from separatrix.tasks import IsTree
from separatrix.tasks.audits.probes import best_column
from separatrix.tasks.audits.run import above
from separatrix.tasks.audits.shortcuts import regressed
from separatrix.tasks.istree import joined


def graph(prompt: list[int]) -> networkx.MultiGraph:
    return networkx.MultiGraph(list(zip(prompt[::2], prompt[1::2], strict=True)))


def test_counts_never_fall_and_groups_grow_one_by_one() -> None:
    tasks = [IsTree(n=n) for n in range(3, 200)]
    counts = [counted_classes(task).exact() for task in tasks]
    assert all(low <= high for low, high in itertools.pairwise(counts))
    assert {high.groups - low.groups for low, high in itertools.pairwise(tasks)} == {0, 1}
    assert all(0 < task.prefix_length < task.length for task in tasks)
    for n in (10**6, 10**12 - 1):
        assert IsTree(n=n + 1).groups - IsTree(n=n).groups in (0, 1)


def partitions(things: int, groups: int) -> int:
    """S(n, b) = b S(n - 1, b) + S(n - 1, b - 1)."""
    row = [1] + [0] * groups
    for _ in range(things):
        row = [0] + [b * row[b] + row[b - 1] for b in range(1, groups + 1)]
    return row[groups]


@each("things, groups", [(3, 2), (7, 7), (9, 1), (30, 11), (300, 72), (1000, 187)])
def test_the_number_of_partitions_by_its_recursion(things: int, groups: int) -> None:
    count = Partitions(things, groups)
    right = partitions(things, groups)
    assert count.exact() == right
    for precision in (64, 256):
        with ctx.workprec(precision):
            ball = count.log2_ball()
            log = arb(right).log() / arb.const_log2()
            assert ball.overlaps(log)
            assert ball.rad() < 1e-6
    assert (count.exceeds_bits(right.bit_length() - 1), count.exceeds_bits(right.bit_length())) == (
        right.bit_count() > 1,
        False,
    )


def test_a_number_of_partitions_that_cannot_be_written() -> None:
    """n log2(n/b) is less than log2 S, which is at most n log2 b."""
    task = IsTree(n=10**12)
    count = Partitions(task.n, task.groups)
    assert count.exceeds_bits(4 * 10**12)
    assert not count.exceeds_bits(36 * 10**12)
    with pytest.raises(Undecided, match="too large"):
        count.exact()
    with pytest.raises(SizeError, match="as many as things"):
        Partitions(3, 4)


@pytest.mark.parametrize(
    "task",
    [
        IsTree(n=64),
        IsTree(n=97),
    ],
    ids=str,
)
def test_what_is_drawn(task: IsTree) -> None:
    """Simple graphs on all vertices: a tree, or a cycle with what hangs on it and a tree beside
    it.
    """
    for prompt, target in zip(
        *(part.tolist() for part in task.sample(60, np.random.default_rng(1))), strict=True
    ):
        drawn = graph(prompt)
        assert drawn.number_of_nodes() == task.n
        assert networkx.Graph(drawn).number_of_edges() == task.n - 1
        assert all(u != v for u, v in drawn.edges())
        parts = [drawn.subgraph(part) for part in networkx.connected_components(drawn)]
        assert sorted(part.number_of_edges() - part.number_of_nodes() for part in parts) == (
            [-1] if target else [-1, 0]
        )
        if not target:
            (cycle,) = networkx.cycle_basis(networkx.Graph(drawn))
            assert min(len(cycle), *map(len, parts)) >= task.n // 4


@pytest.mark.slow
def test_no_pair_of_places_tells() -> None:
    """Whether two tokens are equal, for all pairs of places: as often under both answers, and as
    often as the degrees say.
    """
    tokens, targets = IsTree(n=64).sample(40_000, np.random.default_rng(3))
    for i, j in itertools.combinations([0, 1, *range(5, 126, 5)], 2):
        equal = tokens[:, i] == tokens[:, j]
        if i // 2 == j // 2:
            assert not equal.any()
        else:
            assert (
                abs(equal[targets == 0].mean() - equal[targets == 1].mean())
                < 5 * (0.25 / 10_000) ** 0.5
            )
    share = np.apply_along_axis(np.bincount, 0, tokens, minlength=64) / len(tokens)
    assert abs(share - 1 / 64).max() < 0.004


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [IsTree(n=64), IsTree(n=80)],
    ids=str,
)
def test_neither_edges_apart_nor_vertices_with_two_leaves_tell(task: IsTree) -> None:
    """Whether an edge meets no other, and how many pairs of edges meet at a vertex of degree 3
    with one other end a leaf's and one of degree 2.
    """
    total = 8_000
    tokens, targets = task.sample(total, np.random.default_rng(7))
    rows = np.arange(total)[:, None]
    u = tokens[:, 0::2]
    v = tokens[:, 1::2]
    degrees = (tokens[:, :, None] == np.arange(task.n)).sum(1)
    apart = ((degrees[rows, u] == 1) & (degrees[rows, v] == 1)).any(1)
    beside = np.zeros((2, total, task.n), int)
    for one, other in ((u, v), (v, u)):
        for degree in (1, 2):
            np.add.at(beside[degree - 1], (rows, one), degrees[rows, other] == degree)
    meet = (beside.prod(0) * (degrees == 3)).sum(1)
    assert not apart.any()
    error = (meet.var() * 4 / total) ** 0.5
    assert abs(meet[targets == 0].mean() - meet[targets == 1].mean()) <= 4.5 * error
    assert error > 0


@pytest.mark.parametrize("n", [2, 64, 300])
def test_connectedness_against_networkx(n: int) -> None:
    rng = np.random.default_rng(5)
    u, v = rng.integers(n, size=(2, 60, 4 * n))
    v[:30] = np.where(v[:30] % 2 == u[:30] % 2, v[:30], u[:30])  # two groups at least
    right = []
    for one, other in zip(u.tolist(), v.tolist(), strict=True):
        drawn = networkx.Graph(list(zip(one, other, strict=True)))
        drawn.add_nodes_from(range(n))
        right.append(networkx.is_connected(drawn))
    assert joined(u, v, n).tolist() == right
    assert 0 < sum(right) < 60


@pytest.mark.parametrize("n", [3, 63])
def test_too_small_to_draw(n: int) -> None:
    with pytest.raises(SizeError, match="n of at least 64"):
        IsTree(n=n).sample(1, np.random.default_rng(0))


@pytest.mark.parametrize("n", [pytest.param(129, marks=pytest.mark.slow), 64])
def test_a_short_look_round_every_vertex_tells_nothing(n: int) -> None:
    """No cycle and no group of at most five vertices, where short ones told 0.66 to 1.00; nor does
    how many walks of up to log2 n edges there are (up to six
    edges told 0.75 at n = 24 and 0.61 at n = 33).
    """
    tokens, targets = IsTree(n=n).sample(2000, np.random.default_rng(8))
    seen = cycles(IsTree(n=n), tokens)
    for learner in (best_column, regressed):
        guess = learner(seen[:1000], targets[:1000], 2, seen[1000:])
        assert above(guess.right(targets[1000:]), 1000, Fraction(1, 2)) < 3
    assert not seen[:, :6].any()


def test_what_a_short_look_sees_by_hand() -> None:
    """A triangle with a tail of one edge beside an edge; a path. Walks of two edges: ordered pairs
    of edges that meet, 3 + 2 more at the corner of the tail, twice; of the path 4 and back.
    """
    seen = cycles(
        IsTree(n=6), np.array([[0, 1, 1, 2, 2, 0, 0, 3, 4, 5], [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]])
    )
    assert seen[:, :6].tolist() == [[3, 3, 3, 2, 2, 2], [0, 0, 0, 0, 0, 0]]
    assert seen[:, 8].tolist() == [10, 8]
