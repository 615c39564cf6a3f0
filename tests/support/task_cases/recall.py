"""Associative recall: k_1, v_1, ..., k_n, v_n, q; answer the last value written to q, or V where
there is none.
"""

import itertools
from collections.abc import Iterable

from separatrix.tasks import Recall
from support.task_cases import Case, Prompt


def recalled(task: Recall, prompt: list[int]) -> int:
    if task.question == "first":
        prompt = [*prompt[1:], prompt[0]]
    table: dict[int, int] = {}
    for place in range(task.n):
        table[prompt[2 * place]] = prompt[2 * place + 1]
    return table.get(prompt[-1], task.V)


def instances(task: Recall) -> Iterable[Prompt]:
    every = range(task.V, task.V + task.K)
    rows = (
        itertools.product(every, repeat=task.n)
        if task.form == "last"
        else itertools.permutations(every, task.n)
    )
    for keys in rows:
        for values in itertools.product(range(task.V), repeat=task.n):
            for query in keys if task.form in ("present", "independent") else every:
                pairs = itertools.chain.from_iterable(zip(keys, values, strict=True))
                yield (query, *pairs) if task.question == "first" else (*pairs, query)


CASE = Case(
    kind=Recall,
    examples=[
        *(
            Recall(n=4, K=6, V=3),
            Recall(n=4, K=4, V=6),
            Recall(n=5, K=7, V=3, form="absent"),
            Recall(n=3, K=5, V=8, form="absent"),
            Recall(n=4, K=6, V=3, form="independent"),
        ),
        *(
            Recall(n=6, K=5, V=3, form="last"),
            Recall(n=5, K=9, V=7, form="last"),
            Recall(n=3, K=3, V=2, form="last"),
        ),
        *(
            Recall(n=4, K=6, V=3, question="first"),
            Recall(n=4, K=4, V=6, question="first"),
            Recall(n=5, K=7, V=3, form="absent", question="first"),
            Recall(n=4, K=6, V=3, form="independent", question="first"),
            Recall(n=6, K=5, V=3, form="last", question="first"),
        ),
    ],
    tiny=[
        *(
            Recall(n=n, K=K, V=V)
            for n, K, V in ((2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 3, 2), (2, 4, 2), (2, 3, 3))
        ),
        Recall(n=2, K=3, V=2, form="independent"),
        *(
            Recall(n=n, K=K, V=V, form="absent")
            for n, K, V in ((2, 3, 2), (2, 3, 3), (2, 4, 2), (3, 4, 2), (2, 5, 2))
        ),
        *(
            Recall(n=n, K=K, V=V, form="last")
            for n, K, V in ((3, 3, 2), (3, 3, 3), (3, 4, 2), (4, 3, 2))
        ),
        Recall(n=2, K=3, V=2, question="first"),
        Recall(n=2, K=3, V=2, form="absent", question="first"),
        Recall(n=3, K=3, V=2, form="last", question="first"),
    ],
    by_hand=recalled,
    instances=instances,
    bad=[
        ("recall:n=4,K=8", "size V is missing"),
        ("recall:n=1,K=8,V=2", "n is 1; it must be an integer from 2"),
        ("recall:n=4,K=3,V=2", "K is 3; it must be an integer from 4"),
        ("recall:n=4,K=4,V=2,form=absent", "K is 4; it must be an integer from 5"),
        ("recall:n=2,K=4,V=2,form=last", "n is 2; it must be an integer from 3"),
        ("recall:n=4,K=2,V=2,form=last", "K is 2; it must be an integer from 3"),
        ("recall:n=4,K=8,V=1", "V is 1; it must be an integer from 2"),
        ("recall:n=4,K=8,V=2,form=first", "unknown form of recall 'first'"),
        ("recall:n=4,K=8,V=2,question=before", "unknown question of recall 'before'"),
    ],
)
