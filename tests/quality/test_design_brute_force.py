"""`design` against brute force: every stack written out, judged by `judge` itself, the Pareto
fronts by their definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import cycle, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paper_sizes import paper_sizes

from separatrix.cards.design.search import design
from separatrix.cards.design.space import Space
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.tasks import Task, parse_task
from separatrix.theory import judge

Costs = tuple[int, int, int]


def layers(text: str) -> tuple[Layer, ...]:
    return Architecture.parse(text).layers


@cache
def statuses(stack: tuple[Layer, ...], task: Task) -> frozenset[str]:
    return frozenset(verdict.status for verdict in judge(Architecture(stack), task))


def stacks(space: Space) -> dict[tuple[Layer, ...], set[tuple[int, int]]]:
    """Every stack of the space, with (number of bounded layers before the second reader, its
    depth) for each way to write it.
    """
    found: dict[tuple[Layer, ...], set[tuple[int, int]]] = {}
    for reads in (
        mask for number in space.depths for mask in product((False, True), repeat=number)
    ):
        depth = len(reads)
        if space.readings is not None and sum(reads) not in space.readings:
            continue
        if (any(reads) and not space.readers) or (not all(reads) and not space.fills):
            continue
        for reader, fill in product(space.readers or ((),), space.fills or ((),)):
            bounded = cycle(fill)
            stack = tuple(reader if read else next(bounded) for read in reads)
            readers = [i for i, read in enumerate(reads) if read]
            second = readers[1] if len(readers) > 1 else depth
            found.setdefault(stack, set()).add((sum(not read for read in reads[:second]), depth))
    return found


def front(stacks: Sequence[tuple[Layer, ...]], context: int) -> dict[Costs, set[tuple[Layer, ...]]]:
    """The stacks that no other one beats, by their costs."""
    costs = {
        stack: (a.cache_bits(context), a.flops(context), len(a.reading))
        for stack in stacks
        for a in [Architecture(stack)]
    }
    beaten = {
        cost
        for cost in set(costs.values())
        for other in set(costs.values())
        if other != cost and all(map(int.__le__, other, cost))
    }
    kept: dict[Costs, set[tuple[Layer, ...]]] = {}
    for stack, cost in costs.items():
        if cost not in beaten:
            kept.setdefault(cost, set()).add(stack)
    return kept


def told_apart(stack: tuple[Layer, ...]) -> object:
    """Stacks that the theorems cannot tell apart have the same answer: with three readers and
    more, which bounded layers stand first.
    """
    readers = [i for i, layer in enumerate(stack) if any(part.reading for part in layer)]
    if len(readers) <= 2:
        return stack
    bounded = [layer for i, layer in enumerate(stack) if i not in readers]
    return (
        frozenset(stack[i] for i in range(readers[1]) if i != readers[0]),
        len(stack),
        stack[readers[0]],
        tuple(bounded),
    )


def check(space: Space, tasks: Sequence[Task], context: int, budget: int) -> None:
    found = design(tasks, context=context, cache_bits=budget, space=space)
    every = stacks(space)
    said = {stack: [statuses(stack, task) for task in tasks] for stack in every}
    allowed = [stack for stack in every if not any("FAILS" in status for status in said[stack])]
    solved = [stack for stack in every if all("SOLVABLE" in status for status in said[stack])]
    for points, whole, beyond in (
        (found.not_excluded, allowed, found.beyond),
        (found.proved, solved, found.beyond_proved),
    ):
        fitting = [stack for stack in whole if Architecture(stack).cache_bits(context) <= budget]
        expected = front(fitting, context)
        got = {
            (p.cost.cache_bits, p.cost.flops, p.cost.reading): {
                layout.architecture.layers for layout in p.layouts
            }
            for p in points
        }
        assert set(got) == set(expected)
        for cost, members in expected.items():
            assert got[cost] <= members
            assert {told_apart(stack) for stack in got[cost]} == {
                told_apart(stack) for stack in members
            }
        if expected:
            assert beyond is None
        else:
            least = min((Architecture(stack).cache_bits(context) for stack in whole), default=None)
            assert (beyond and beyond.cost.cache_bits) == least


FULL = layers("full(heads=1, head_dim=16, format=bf16)")
ONE_WAY = layers("gla(heads=1, head_dim=2, format=p2, positions=none)")
BESIDES = layers("shortconv(width=2, conv=2, positions=none)")
NARROW = layers("full(heads=1, head_dim=6, format=p8)")
TINY = layers("full(heads=1, head_dim=4, format=p8)")
SPARSE = layers("sparse(heads=1, head_dim=16, block=4, topk=1)")
FEW_BITS = layers("sparse(heads=1, head_dim=1, block=8, topk=1, format=p4)")
BESIDE = layers("full(heads=1, head_dim=16, format=bf16)|gdn(heads=1, head_dim=8, format=bf16)")
GDN = layers("gdn(heads=1, head_dim=8, format=bf16)")
SMALL = layers("gdn(heads=1, head_dim=2, format=p8)")
BIT = layers("gdn(heads=1, head_dim=1, format=p4)")
WINDOW = layers("window(heads=1, head_dim=8, size=4, format=bf16)")
INDEXED = layers(
    "indexed(heads=1, head_dim=16, index_dim=16, topk=2) + indexed(heads=1, head_dim=4,"
    " index_dim=2, topk=1)"
)
# 8 bits a token, 8 more a block; a fact takes 9
LATE = layers("sparse(heads=1, head_dim=1, block=4, topk=1, format=p4)")
# 64 log2 64 = 384 = 8 x 48 bits
EXACT = tuple(layers(f"rglru(width={width}, format=p8)") for width in (23, 24, 47, 48))
GRIDS = {
    "recall": (
        Space((1, 2, 3, 4), (FULL[0], NARROW[0]), (GDN, SMALL, WINDOW)),
        ("eva:n=64,V=64",),
        65,
        1 << 20,
    ),
    "recall by blocks": (
        Space((1, 3), (SPARSE[0],), (GDN, SMALL)),
        ("eva:n=60,V=16",),
        61,
        1 << 20,
    ),
    "recall in a cycle": (
        Space((3, 4), (FULL[0],), ((*SMALL, *WINDOW), (*SMALL, *SMALL))),
        ("eva:n=40,V=8",),
        64,
        1 << 20,
    ),
    "composition": (
        Space((1, 2, 3, 4, 5), (FULL[0],), (GDN, BIT)),
        ("seqcomp:L=2,m=16,n_1=1",),
        64,
        1 << 20,
    ),
    "composition that one layer fails": (
        Space((1, 2, 3), (TINY[0], FULL[0]), (BIT, GDN)),
        ("seqcomp:L=2,m=40,n_1=8",),
        400,
        1 << 22,
    ),
    "head-wise": (
        Space((2, 3, 4), (BESIDE[0], FULL[0]), (BIT,)),
        ("seqcomp:L=2,m=16,n_1=1",),
        64,
        1 << 22,
    ),
    "deeper composition": (
        Space((4, 5), (FULL[0],), (BIT, (*WINDOW, *BIT)), readings=(0, 1, 3, 4, 5)),
        ("seqcomp:L=3,m=8,n_1=2,n_2=1",),
        64,
        1 << 22,
    ),
    "pairs": (
        Space((1, 2, 3), (FULL[0], SPARSE[0]), (GDN, SMALL)),
        ("twosum:n=48,M=22",),
        64,
        1 << 20,
    ),
    "any pair": (
        Space((1, 2, 3), (FULL[0], NARROW[0]), (GDN, BIT)),
        ("twosum:n=30,M=64,form=decision",),
        64,
        1 << 20,
    ),
    "pairs by blocks": (Space((1,), (*SPARSE, *FEW_BITS), ()), ("twosum:n=64,M=64",), 80, 1 << 22),
    "a shorter prefix decides": (Space((1, 2), LATE, (BIT, GDN)), ("eva:n=60,V=512",), 61, 1 << 20),
    "states as wide as needed": (
        Space((1, 2), FULL, EXACT, readings=(0,)),
        ("eva:n=64,V=64",),
        65,
        1 << 20,
    ),
    "states against readers": (
        Space((1,), FULL, (layers("gdn(heads=8, head_dim=32)"),)),
        ("eva:n=64,V=64",),
        65,
        1 << 20,
    ),
    "two strings": (
        Space((1, 2, 3), (FULL[0], NARROW[0]), (GDN, BIT)),
        ("equality:n=200",),
        400,
        1 << 20,
    ),
    "nested brackets": (
        Space((1, 2, 3), FULL, (SMALL, BIT, GDN)),
        ("dyck:n=60,k=4,D=20",),
        64,
        1 << 20,
    ),
    "indexed": (Space((1, 2), INDEXED, (BIT, GDN)), ("eva:n=60,V=60",), 64, 1 << 20),
    "several tasks": (
        Space((1, 2, 3, 4), (FULL[0],), (GDN, WINDOW)),
        ("eva:n=60,V=60", "seqcomp:L=2,m=16,n_1=2"),
        64,
        1 << 18,
    ),
    "too little memory": (Space((2, 3), (FULL[0],), (GDN,)), ("eva:n=60,V=60",), 64, 1 << 8),
    "layers that only move one way": (
        # one layer alone stands still after 4 tokens, 2 T + 1 = 9; two, or one that turns, do not
        Space((1, 2, 3), (FULL[0],), ((*ONE_WAY, *BESIDES), (*BESIDES, *GDN), ONE_WAY)),
        ("parity:n=9",),
        16,
        1 << 20,
    ),
    "nothing at all": (Space((2, 3), (), (SMALL, BIT)), ("eva:n=1000,V=1000",), 1024, 1 << 20),
}

SLOW = ("head-wise", "composition", "composition that one layer fails", "deeper composition")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in GRIDS],
)
def test_the_fronts_are_those_of_the_definition(name: str) -> None:
    space, tasks, context, budget = GRIDS[name]
    check(space, [parse_task(task) for task in tasks], context, budget)


ONE = paper_sizes(1, 1, 8)
READS_LITTLE = layers(f"full({ONE})")
ITS_CONVOLUTIONS = layers(f"full({ONE}, conv=3) + full({ONE}, conv=9)")
ITS_NEIGHBOURS = layers(f"full({ONE})|gdn(heads=1, head_dim=4, format=p8)")
STATES = tuple(layers(f"gdn(heads=1, head_dim={d}, format=p8)") for d in (2, 4, 6))
TWO_READ = layers(f"full({paper_sizes(1, 2, 4)})")
BESIDE_ONE = layers(f"full({paper_sizes(1, 2, 4)})|rglru(width=1, format=p4)")
NUMBER = layers("rglru(width=1, format=p4)")
DECISIVE = {
    "III": (Space((1, 2, 3, 4), READS_LITTLE, STATES, readings=(0, 1)), "seqcomp:L=2,m=24,n_1=8"),
    "III, convolutions": (
        Space((1, 2, 3), (*ITS_CONVOLUTIONS, *READS_LITTLE), STATES[:1], readings=(0, 1)),
        "seqcomp:L=2,m=24,n_1=8",
    ),
    "III, head-wise": (
        Space((1, 2, 3), ITS_NEIGHBOURS, STATES, readings=(0, 1)),
        "seqcomp:L=2,m=24,n_1=8",
    ),
    "III, windows and states": (
        Space((4,), READS_LITTLE, ((*STATES[0], *WINDOW), STATES[1]), readings=(1,)),
        "seqcomp:L=2,m=24,n_1=8",
    ),
    "IV": (
        Space((2, 3), (*TWO_READ, *BESIDE_ONE), (NUMBER, layers("mlp")), readings=(2,)),
        "seqcomp:L=2,m=24,n_1=200",
    ),
    "V": (Space((2, 3), TWO_READ, (NUMBER,), readings=(2,)), "seqcomp:L=3,m=24,n_1=1,n_2=300"),
    "V, head-wise": (
        Space((2, 3), (*TWO_READ, *BESIDE_ONE), (NUMBER, layers("mlp")), readings=(2,)),
        "seqcomp:L=3,m=24,n_1=1,n_2=300",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DECISIVE)
def test_theorems_of_depth_decide_the_front(name: str) -> None:
    space, text = DECISIVE[name]
    task = parse_task(text)
    check(space, [task], task.length, 1 << 30)
    decided = [
        (
            stack,
            {
                verdict.theorem
                for verdict in judge(Architecture(stack), task)
                if verdict.status == "FAILS"
            },
        )
        for stack in stacks(space)
    ]
    # it alone excludes some stack, and none excludes another one
    alone = {name.partition(",")[0]}
    assert any(theorems == alone for _, theorems in decided)
    assert any(not theorems for _, theorems in decided)


SIZES = st.sampled_from((1, 2, 4, 8, 12))
FORMATS = st.sampled_from(("p1", "p4", "p8", "bf16", "fp32"))
READERS = st.builds(
    lambda d, p: layers(f"full(heads=1, head_dim={d}, format={p})")[0], SIZES, FORMATS
)
BOUNDED = st.one_of(
    st.builds(lambda d, p: layers(f"gdn(heads=1, head_dim={d}, format={p})")[0], SIZES, FORMATS),
    st.builds(
        lambda d, p, s: layers(f"window(heads=1, head_dim={d}, format={p}, size={s})")[0],
        SIZES,
        FORMATS,
        SIZES,
    ),
    st.builds(lambda p: layers(f"loglinear(heads=1, head_dim=1, format={p})")[0], FORMATS),
    st.just(layers("mlp")[0]),
)
FILLS = st.lists(BOUNDED, min_size=1, max_size=2).map(tuple)
TASKS = st.one_of(
    st.builds(lambda n, V: f"eva:n={n},V={V}", st.integers(1, 60), st.integers(2, 60)),
    st.builds(lambda m, n_1: f"seqcomp:L=2,m={m},n_1={n_1}", st.integers(2, 12), st.integers(1, 4)),
    st.builds(lambda n, M: f"twosum:n={n},M={M}", st.integers(1, 60), st.integers(3, 60)),
    st.builds(lambda n: f"equality:n={n}", st.integers(1, 30)),
    st.builds(
        lambda n, k, D: f"dyck:n={2 * n},k={k},D={D}",
        st.integers(1, 30),
        st.integers(1, 4),
        st.integers(1, 12),
    ),
)


GRID = given(
    depths=st.lists(st.integers(1, 3), min_size=1, max_size=2, unique=True).map(tuple),
    readers=st.lists(READERS, min_size=1, max_size=2).map(tuple),
    fills=st.lists(FILLS, min_size=1, max_size=2).map(tuple),
    tasks=st.lists(TASKS, min_size=1, max_size=2),
    budget=st.integers(0, 1 << 16),
)


@settings(deadline=None, max_examples=12, derandomize=True)
@GRID
@pytest.mark.slow
def test_random_grids(depths, readers, fills, tasks, budget) -> None:
    check(Space(depths, readers, fills), [parse_task(task) for task in tasks], 64, budget)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, derandomize=True)
@GRID
def test_more_random_grids(depths, readers, fills, tasks, budget) -> None:
    check(Space(depths, readers, fills), [parse_task(task) for task in tasks], 64, budget)


def test_places_are_what_they_are_called() -> None:
    space = Space((6,), FULL, (SMALL,), readings=(2,), places=("even", "start", "end"))
    (family,) = space.arrangements()
    spelled = {
        "".join("f" if part.reading else "." for (part,) in layout.architecture)
        for layout in family.layouts()
    }
    assert spelled == {"..f..f", "ff....", "....ff"}
