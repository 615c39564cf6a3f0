"""Nearest neighbour: strings and labels in turn, then a string; answer the label of the strings
nearest to it.
"""

import itertools
from collections.abc import Iterator

from separatrix.tasks import Neighbour
from support.task_cases import Case, Prompt


def labels_of_the_nearest(task: Neighbour, prompt: list[int]) -> set[int]:
    distances = [bin(string ^ prompt[-1]).count("1") for string in prompt[:-1:2]]
    return {
        prompt[2 * i + 1] - 2**task.d
        for i, distance in enumerate(distances)
        if distance == min(distances)
    }


def label(task: Neighbour, prompt: list[int]) -> int:
    (only,) = labels_of_the_nearest(task, prompt)
    return only


def instances(task: Neighbour) -> Iterator[Prompt]:
    strings = range(2**task.d)
    labels = range(2**task.d, 2**task.d + task.V)
    for prompt in itertools.product(*[strings, labels] * task.n, strings):
        if len(labels_of_the_nearest(task, list(prompt))) == 1:
            yield prompt


CASE = Case(
    kind=Neighbour,
    examples=[
        *(
            Neighbour(n=2, d=4, V=2),
            Neighbour(n=7, d=9, V=3),
            Neighbour(n=14, d=11, V=4),
            Neighbour(n=5, d=40, V=5),
        ),
        Neighbour(n=5, d=4, V=2, shift="equal"),
    ],
    tiny=[
        Neighbour(n=2, d=4, V=2),
        Neighbour(n=2, d=3, V=2, shift="equal"),
    ],
    by_hand=label,
    instances=instances,
    bad=[
        ("neighbour:n=8,d=4", "V is missing"),
        ("neighbour:n=8,d=2,V=2", "d is 2; it must be an integer from 9 to 40"),
        ("neighbour:n=8,d=41,V=2", "d is 41"),
        ("neighbour:n=8,d=4,V=1", "V is 1; it must be an integer from 2"),
        ("neighbour:n=3,d=4,V=4", "V is 4; it must be an integer from 2 to 3"),
        ("neighbour:n=8,d=4,V=2,shift=zipf", "unknown shift of neighbour"),
    ],
)
