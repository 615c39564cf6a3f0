"""Index lookup: x_0, ..., x_{n-1}, V + i; answer x_i."""

import itertools
from collections.abc import Iterable

from separatrix.tasks import Index
from support.task_cases import Case, Prompt


def instances(task: Index) -> Iterable[Prompt]:
    return itertools.product(*[range(task.V)] * task.n, range(task.V, task.V + task.n))


CASE = Case(
    kind=Index,
    examples=[Index(n=5, V=5), Index(n=3, V=8), Index(n=8, V=3)],
    tiny=[
        Index(n=1, V=2),
        Index(n=3, V=2),
        Index(n=2, V=4),
        Index(n=3, V=3),
        Index(n=2, V=5),
        Index(n=5, V=2),
    ],
    by_hand=lambda task, prompt: prompt[prompt[-1] - task.V],
    instances=instances,
    uniform=True,
    bad=[
        ("index:n=4", "size V is missing"),
        ("index:n=0,V=4", "n is 0; it must be an integer from 1"),
        ("index:n=4,V=1", "V is 1; it must be an integer from 2"),
        ("index:n=4,V=4,shift=zip", "Did you mean 'zipf'"),
        (
            "index:n=4,V=200000,shift=zipf",
            "V with shift=zipf is 200000; it must be an integer from 1 to 131072",
        ),
    ],
)
