"""Equality: two strings of n bits; answer 1 if they are the same."""

from separatrix.tasks import Equality
from support.task_cases import Case

CASE = Case(
    kind=Equality,
    examples=[
        Equality(n=1),
        Equality(n=6),
        Equality(n=8),
        Equality(n=17),
    ],
    tiny=[Equality(n=n) for n in range(1, 6)],
    by_hand=lambda task, prompt: int(prompt[: task.n] == prompt[task.n :]),
    ranges=lambda task: [2] * (2 * task.n),
    bad=[
        ("equality:n=0", "n is 0"),
        ("equality", "size n is missing"),
    ],
)
