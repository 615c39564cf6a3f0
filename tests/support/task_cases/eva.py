"""Eva: f(0), ..., f(n-1), x; answer f(x)."""

from separatrix.tasks import Eva
from support.task_cases import Case

CASE = Case(
    kind=Eva,
    examples=[Eva(n=5, V=5), Eva(n=3, V=8), Eva(n=8, V=3), Eva(n=9, V=6, shift="local")],
    tiny=[
        Eva(n=1, V=2),
        Eva(n=3, V=2),
        Eva(n=2, V=4),
        Eva(n=2, V=2),
        Eva(n=3, V=3),
        Eva(n=2, V=5),
        Eva(n=5, V=2),
    ],
    by_hand=lambda task, prompt: prompt[prompt[-1]],
    ranges=lambda task: [task.V] * task.n + [task.n],
    uniform=True,
    bad=[
        ("eva", "size n is missing"),
        ("eva:n=0", "from 2"),
        ("eva:n=0,V=3", "from 1"),
        ("eva:n=4,V=1", "from 2"),
        ("eva:n=4,k=5", "unknown size"),
        ("eva:n=four", "must be an integer"),
        ("eva:n=-3", "n is -3"),
        ("eva:n=1", "n is 1; it must be an integer from 2"),
        ("eva:n=4,shift=ziff", "Did you mean 'zipf'"),
        (
            "eva:n=200000,shift=zipf",
            "V with shift=zipf is 200000; it must be an integer from 1 to 131072",
        ),
        (f"eva:n={10**30}", r"n is 10\^30; it must be an integer from 2 to 10\^12"),
    ],
)
