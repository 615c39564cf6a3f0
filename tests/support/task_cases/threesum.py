"""3-Sum modulo M: do two earlier tokens at different places and the last cancel?"""

import itertools

from separatrix.tasks import ThreeSum
from support.task_cases import Case


def cancel(task: ThreeSum, prompt: list[int]) -> int:
    pairs = itertools.combinations(prompt[:-1], 2)
    return int(any((a + b + prompt[-1]) % task.M == 0 for a, b in pairs))


CASE = Case(
    kind=ThreeSum,
    examples=[
        *(ThreeSum(n=2, M=5), ThreeSum(n=5, M=9), ThreeSum(n=6, M=8), ThreeSum(n=3, M=6)),
    ],
    tiny=[
        *(ThreeSum(n=n, M=M) for n in (2, 3) for M in (5, 6, 7, 8)),
        *(ThreeSum(n=n, M=M) for n, M in ((4, 5), (4, 6), (2, 12))),
    ],
    by_hand=cancel,
    ranges=lambda task: [task.M] * (task.n + 1),
    bad=[
        ("threesum:n=4", "M is missing"),
        ("threesum:n=4,M=4", "M is 4; it must be an integer from 5"),
        ("threesum:n=1,M=8", "n is 1; it must be an integer from 2"),
        ("threesum:n=4,M=8,form=queries", "Did you mean 'query'"),
    ],
)
