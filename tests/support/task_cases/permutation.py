"""Permutation composition: p_1, ..., p_n; answer p_n o ... o p_1."""

import itertools
from functools import lru_cache

from separatrix.tasks import Permutation
from support.task_cases import Case


@lru_cache
def permutations(k: int) -> list[tuple[int, ...]]:
    return sorted(itertools.permutations(range(k)))


def product(task: Permutation, prompt: list[int]) -> int:
    """Follow every thing through all permutations, then look the result up in the sorted list of
    permutations.
    """
    every = permutations(task.k)
    ends = []
    for thing in range(task.k):
        for token in prompt:
            thing = every[token][thing]
        ends.append(thing)
    return every.index(tuple(ends))


CASE = Case(
    kind=Permutation,
    examples=[
        *(
            Permutation(n=8, k=2),
            Permutation(n=9, k=3),
            Permutation(n=8, k=4),
            Permutation(n=10, k=5),
            Permutation(n=8, k=6),
        ),
        Permutation(n=8, k=4, shift="swaps"),
    ],
    tiny=[
        Permutation(n=n, k=k)
        for n, k in ((2, 2), (3, 2), (7, 2), (2, 3), (3, 3), (4, 3), (5, 3), (2, 4))
    ],
    by_hand=product,
    ranges=lambda task: [len(permutations(task.k))] * task.n,
    uniform=True,
    bad=[
        ("permutation:n=4", "k is missing"),
        (
            "permutation:n=1,k=3",
            r"n is 1; it must be an integer from 8 to 10\^12 \(from 2 where nothing is drawn\)",
        ),
        ("permutation:n=4,k=1", "k is 1; it must be an integer from 2"),
        ("permutation:n=4,k=7", "k is 7; it must be an integer from 2 to 6"),
        ("permutation:n=4,k=3,shift=swap", "Did you mean 'swaps'"),
    ],
)
