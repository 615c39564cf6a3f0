"""Modular counting: the number of ones modulo m."""

from separatrix.tasks import Modular
from support.task_cases import Case

CASE = Case(
    kind=Modular,
    examples=[Modular(n=9, m=3), Modular(n=12, m=5)],
    tiny=[Modular(n=n, m=m) for n, m in ((2, 2), (4, 2), (4, 3), (6, 5))],
    by_hand=lambda task, prompt: prompt.count(1) % task.m,
    ranges=lambda task: [2] * task.n,
    bad=[
        ("modular:n=9", "size m is missing"),
        ("modular:n=9,m=1", "m is 1; it must be an integer from 2"),
        ("modular:n=4,m=5", "n is 4; it must be an integer from 5"),
    ],
)
