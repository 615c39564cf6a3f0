"""Parity: whether the number of ones is odd."""

from separatrix.tasks import Parity
from support.task_cases import Case

CASE = Case(
    kind=Parity,
    examples=[Parity(n=9), Parity(n=16, shift="few")],
    tiny=[Parity(n=n) for n in (2, 3, 5)],
    by_hand=lambda task, prompt: prompt.count(1) % 2,
    ranges=lambda task: [2] * task.n,
    uniform=True,
    bad=[
        ("parity", "size n is missing"),
        ("parity:n=1", "n is 1; it must be an integer from 2"),
        ("parity:n=8,shift=fwe", "Did you mean 'few'"),
    ],
)
