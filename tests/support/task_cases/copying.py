"""Copying: a string, a mark, as many blanks; the string is due there."""

import itertools
from collections.abc import Iterable

from separatrix.tasks import Copying
from support.task_cases import Case, Prompt


def copied(task: Copying, prompt: list[int]) -> list[int]:
    length = prompt.index(task.V)
    rest = 2 * task.n - 2 * length
    return [-1] * (length + 1) + prompt[:length] + [-1] * rest


def instances(task: Copying) -> Iterable[Prompt]:
    # the longest first, of which there are most
    for length in range(task.n, 0, -1):
        end = (task.V, *[task.V + 1] * length, *[task.V + 2] * (2 * task.n - 2 * length))
        for string in itertools.product(range(task.V), repeat=length):
            yield string + end


CASE = Case(
    kind=Copying,
    examples=[Copying(n=6, V=3), Copying(n=9, V=4)],
    tiny=[Copying(n=n, V=V) for n, V in ((2, 2), (3, 2), (2, 3))],
    by_hand=copied,
    instances=instances,
    bad=[
        ("copying:n=4", "size V is missing"),
        ("copying:n=1,V=3", "n is 1; it must be an integer from 2"),
        ("copying:n=4,V=1", "V is 1; it must be an integer from 2"),
    ],
)
