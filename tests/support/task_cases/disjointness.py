"""Disjointness: two sets as strings of n bits; answer 1 if they have no element in common."""

from separatrix.tasks import Disjointness
from support.task_cases import Case

CASE = Case(
    kind=Disjointness,
    examples=[Disjointness(n=2), Disjointness(n=7)],
    tiny=[Disjointness(n=n) for n in (2, 3, 4, 5)],
    by_hand=lambda task, prompt: int(
        not any(u and v for u, v in zip(prompt[: task.n], prompt[task.n :], strict=True))
    ),
    ranges=lambda task: [2] * (2 * task.n),
    bad=[
        ("disjointness:n=1", "n is 1; it must be an integer from 2"),
        ("disjointness", "size n is missing"),
    ],
)
