"""3-Sum modulo M: do two earlier tokens at different places and the last cancel (query), or do
any three (decision)?
"""

import itertools

from separatrix.tasks import ThreeSum
from support.task_cases import Case


def cancel(task: ThreeSum, prompt: list[int]) -> int:
    if task.form == "query":
        return int(
            any(
                (a + b + prompt[-1]) % task.M == 0
                for a, b in itertools.combinations(prompt[:-1], 2)
            )
        )
    return int(any(sum(three) % task.M == 0 for three in itertools.combinations(prompt, 3)))


CASE = Case(
    kind=ThreeSum,
    examples=[
        *(ThreeSum(n=2, M=5), ThreeSum(n=5, M=9), ThreeSum(n=6, M=8), ThreeSum(n=3, M=6)),
        *(
            ThreeSum(n=3, M=5, form="decision"),
            ThreeSum(n=4, M=9, form="decision"),
            ThreeSum(n=7, M=30, form="decision"),
        ),
    ],
    tiny=[
        *(ThreeSum(n=n, M=M) for n in (2, 3) for M in (5, 6, 7, 8)),
        *(ThreeSum(n=n, M=M) for n, M in ((4, 5), (4, 6), (2, 12))),
        *(ThreeSum(n=n, M=M, form="decision") for n in (3, 4) for M in (5, 6, 7, 8)),
        *(ThreeSum(n=n, M=M, form="decision") for n, M in ((5, 5), (5, 6), (3, 12))),
    ],
    by_hand=cancel,
    ranges=lambda task: [task.M] * (task.n + (task.form == "query")),
    bad=[
        ("threesum:n=4", "M is missing"),
        ("threesum:n=4,M=4", "M is 4; it must be an integer from 5"),
        ("threesum:n=1,M=8", "n is 1; it must be an integer from 2"),
        ("threesum:n=2,M=8,form=decision", "n is 2; it must be an integer from 3"),
        ("threesum:n=4,M=8,form=queries", "Did you mean 'query'"),
    ],
)
