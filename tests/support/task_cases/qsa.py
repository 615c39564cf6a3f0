"""q-sparse averaging: z_0, ..., z_(n-1), then sets of q places, each by V more than its number;
after each set the sum of its values modulo V.
"""

import itertools
from collections.abc import Iterator

from separatrix.tasks import QSA
from support.task_cases import Case, Prompt


def sums(task: QSA, prompt: list[int]) -> list[int]:
    targets = [-1] * len(prompt)
    for number in range(task.sets):
        end = task.n + (number + 1) * task.q
        targets[end - 1] = (
            sum(prompt[token - task.V] for token in prompt[end - task.q : end]) % task.V
        )
    return targets


def instances(task: QSA) -> Iterator[Prompt]:
    sets = list(itertools.permutations(range(task.V, task.V + task.n), task.q))
    for values in itertools.product(range(task.V), repeat=task.n):
        for asked in itertools.product(sets, repeat=task.sets):
            yield (*values, *itertools.chain(*asked))


CASE = Case(
    kind=QSA,
    examples=[
        QSA(n=4, q=2, V=2),
        QSA(n=6, q=2, V=3),
        QSA(n=9, q=2, V=4, sets=3),
        QSA(n=25, q=4, V=6, sets=1),
    ],
    tiny=[
        QSA(n=4, q=2, V=2, sets=1),
        *(
            QSA(n=n, q=q, V=V, sets=1)
            for n, q, V in ((3, 2, 2), (3, 2, 3), (3, 2, 4), (4, 2, 4), (4, 3, 3), (4, 3, 2))
        ),
        *(QSA(n=n, q=n, V=V, sets=1) for n, V in ((2, 3), (3, 2), (3, 4))),
        QSA(n=3, q=2, V=2),
    ],
    by_hand=sums,
    instances=instances,
    bad=[
        ("qsa:n=8,q=2", "V is missing"),
        ("qsa:n=8,q=9,V=2", "q is 9; it must be an integer from 2 to 8"),
        ("qsa:n=8,q=1,V=2", "q is 1; it must be an integer from 2"),
        ("qsa:n=1,q=3,V=2", "n is 1; it must be an integer from 6"),
        ("qsa:n=8,q=2,V=1", "V is 1"),
        ("qsa:n=8,q=2,V=2,sets=0", "sets is 0"),
        ("qsa:n=8,q=2,V=2,shift=mean", "unknown size 'shift'"),
    ],
)
