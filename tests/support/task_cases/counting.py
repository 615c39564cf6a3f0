"""Counting: the ones among n bits, or how often the last token occurs before."""

from separatrix.tasks import Counting
from support.task_cases import Case

CASE = Case(
    kind=Counting,
    examples=[
        *(Counting(n=1), Counting(n=6)),
        *(
            Counting(n=1, V=2, form="queried"),
            Counting(n=9, V=2, form="queried"),
            Counting(n=9, V=3, form="queried"),
        ),
        Counting(n=20, V=90, form="queried"),
    ],
    tiny=[
        *(Counting(n=n) for n in range(1, 11)),
        *(Counting(n=n, V=2, form="queried") for n in range(1, 9)),
        *(Counting(n=n, V=3, form="queried") for n in range(1, 6)),
        *(Counting(n=n, V=4, form="queried") for n in range(1, 5)),
        *(Counting(n=n, V=6, form="queried") for n in (1, 2, 3)),
    ],
    by_hand=lambda task, prompt: (
        prompt.count(1) if task.form == "ones" else prompt[:-1].count(prompt[-1])
    ),
    ranges=lambda task: [task.V] * (task.n + (task.form == "queried")),
    even=False,
    bad=[
        ("counting", "size n is missing"),
        ("counting:n=0", "n is 0; it must be an integer from 1"),
        ("counting:n=4,V=3", "V is 3; ones are counted among bits"),
        ("counting:n=4,form=queried", "size V is missing"),
        ("counting:n=4,V=1,form=queried", "V is 1; it must be an integer from 2"),
        ("counting:n=4,form=one", "Did you mean 'ones'"),
    ],
)
