"""The word problem of a group: elements are followed thing by thing, or added."""

import itertools
from functools import lru_cache

from separatrix.tasks import Group
from support.task_cases import Case


@lru_cache
def even(k: int) -> list[tuple[int, ...]]:
    """The permutations that are a product of an even number of exchanges: by their cycles."""
    return [p for p in itertools.permutations(range(k)) if (k - cycles(p)) % 2 == 0]


def cycles(p: tuple[int, ...]) -> int:
    met: set[int] = set()
    found = 0
    for start in range(len(p)):
        found += start not in met
        while start not in met:
            met.add(start)
            start = p[start]
    return found


def product(task: Group, prompt: list[int]) -> int:
    size = int(task.G[1:])
    if task.G[0] == "C":
        return sum(prompt) % size
    ends = []
    for thing in range(size):
        for token in prompt:
            thing = even(size)[token][thing]
        ends.append(thing)
    return even(size).index(tuple(ends))


def order(task: Group) -> int:
    size = int(task.G[1:])
    return size if task.G[0] == "C" else len(even(size))


CASE = Case(
    kind=Group,
    examples=[
        Group(n=9, G="A5"),
        Group(n=8, G="C7"),
        Group(n=8, G="A6"),
        Group(n=8, G="A4"),
    ],
    tiny=[Group(n=n, G=G) for n, G in ((2, "C2"), (3, "A3"), (4, "C3"), (2, "A4"), (3, "C6"))],
    by_hand=product,
    ranges=lambda task: [order(task)] * task.n,
    uniform=True,
    bad=[
        ("group:n=9", "size G is missing"),
        ("group:n=1,G=A5", "n is 1; it must be an integer from 8"),
        ("group:n=8,G=A7", "G is 'A7'; it must be A3, A4, A5, A6 or C2 to C720"),
        ("group:n=8,G=C1", "G is 'C1'"),
        ("group:n=8,G=5", "G is 5"),
    ],
)
