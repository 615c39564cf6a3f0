"""Majority: the symbol that occurs most often, the smallest of several."""

from separatrix.tasks import Majority
from support.task_cases import Case

CASE = Case(
    kind=Majority,
    examples=[
        *(
            Majority(n=3),
            Majority(n=7),
            Majority(n=8),
            Majority(n=9, k=3),
            Majority(n=10, k=4),
            Majority(n=5, k=5),
        ),
    ],
    tiny=[
        *(Majority(n=n) for n in range(3, 12)),
        *(Majority(n=n, k=3) for n in range(3, 8)),
        *(Majority(n=n, k=4) for n in (4, 5, 6)),
        Majority(n=5, k=5),
    ],
    by_hand=lambda task, prompt: max(
        range(task.k), key=lambda symbol: (prompt.count(symbol), -symbol)
    ),
    ranges=lambda task: [task.k] * task.n,
    bad=[
        ("majority", "size n is missing"),
        ("majority:n=2", "n is 2; it must be an integer from 3"),
        ("majority:n=9,k=1", "k is 1; it must be an integer from 2"),
        ("majority:n=9,k=10", "k is 10; it must be an integer from 2 to 9"),
    ],
)
