"""Selective copying: the values among the first T tokens are due in order at the end."""

import itertools
from collections.abc import Iterable

from separatrix.tasks import SelectiveCopying
from support.task_cases import Case, Prompt


def copied(task: SelectiveCopying, prompt: list[int]) -> list[int]:
    return [-1] * task.T + [token for token in prompt[: task.T] if token < task.V]


def instances(task: SelectiveCopying) -> Iterable[Prompt]:
    end = (task.V + 1,) * task.n
    for front in itertools.product(range(task.V + 1), repeat=task.T):
        if task.T - front.count(task.V) == task.n:
            yield front + end


CASE = Case(
    kind=SelectiveCopying,
    examples=[
        SelectiveCopying(n=4, T=9, V=3),
        SelectiveCopying(n=3, T=12, V=5),
    ],
    tiny=[SelectiveCopying(n=n, T=T, V=V) for n, T, V in ((2, 2, 2), (2, 4, 2), (3, 4, 2))],
    by_hand=copied,
    instances=instances,
    bad=[
        ("selective-copying:n=4,V=3", "size T is missing"),
        ("selective-copying:n=4,T=3,V=3", "T is 3; it must be an integer from 4"),
    ],
)
