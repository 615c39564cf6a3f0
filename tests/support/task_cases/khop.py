"""k-hop induction heads at the last place; id V is "none"."""

from separatrix.tasks import KHop
from support.task_cases import Case


def hopped(task: KHop, prompt: list[int]) -> int:
    """[San24], Definition 4.1, with its places 1..N."""
    X = [None, *prompt]
    place = len(prompt)
    for _ in range(task.k):
        place = max([0, *(j for j in range(2, place + 1) if X[j - 1] == X[place])]) if place else 0
    return prompt[place - 1] if place else task.V


_TINY = [
    (2, 2, 1),
    (3, 2, 1),
    (4, 2, 1),
    (6, 2, 1),
    (5, 3, 1),
    (6, 3, 1),
    (7, 3, 1),
    (5, 2, 2),
    (6, 3, 2),
    (5, 3, 3),
]

CASE = Case(
    kind=KHop,
    examples=[
        *(
            KHop(n=8, V=4, k=1),
            KHop(n=9, V=4, k=1),
            KHop(n=12, V=4, k=2),
            KHop(n=19, V=4, k=3),
            KHop(n=31, V=5, k=5),
        ),
        *(
            KHop(n=24, V=8, k=2),
            KHop(n=12, V=4, k=2, shift="random"),
            KHop(n=6, V=3, k=1, shift="random"),
        ),
    ],
    tiny=[KHop(n=n, V=V, k=k, shift="random") for n, V, k in _TINY],
    by_hand=hopped,
    ranges=lambda task: [task.V] * task.n,
    even=False,
    bad=[
        ("khop:n=12,V=4", "size k is missing"),
        ("khop:n=12,V=3,k=2", "V is 3; it must be an integer from 4"),
        ("khop:n=11,V=4,k=2", "n is 11; it must be an integer from 12"),
        ("khop:n=12,V=4,k=0", "k is 0; it must be an integer from 1"),
        ("khop:n=12,V=4,k=2,shift=rand", "Did you mean 'random'"),
        ("khop:n=1,V=4,k=2,shift=random", "n is 1; it must be an integer from 2"),
    ],
)
