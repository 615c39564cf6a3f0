"""2-Sum modulo M: does an earlier token cancel the last (query), or do any two (decision)?"""

import itertools

from separatrix.tasks import TwoSum
from support.task_cases import Case


def cancels(task: TwoSum, prompt: list[int]) -> int:
    if task.form == "query":
        return int(any((x + prompt[-1]) % task.M == 0 for x in prompt[:-1]))
    return int(any((a + b) % task.M == 0 for a, b in itertools.combinations(prompt, 2)))


CASE = Case(
    kind=TwoSum,
    examples=[
        *(TwoSum(n=5, M=7), TwoSum(n=1, M=3), TwoSum(n=6, M=8)),
        *(TwoSum(n=5, M=9, form="decision"), TwoSum(n=2, M=4, form="decision")),
        *(TwoSum(n=9, M=20), TwoSum(n=3, M=3), TwoSum(n=9, M=21, form="decision")),
    ],
    tiny=[
        *(TwoSum(n=n, M=M) for n in (1, 2, 3) for M in range(3, 9)),
        *(TwoSum(n=n, M=M) for n, M in ((4, 3), (4, 4), (4, 5), (5, 3), (5, 4), (6, 3), (2, 15))),
        *(TwoSum(n=n, M=M, form="decision") for n in (2, 3, 4) for M in range(3, 8)),
        *(
            TwoSum(n=n, M=M, form="decision")
            for n, M in ((2, 30), (3, 14), (5, 3), (5, 4), (5, 5), (6, 3), (6, 4), (7, 3))
        ),
    ],
    by_hand=cancels,
    ranges=lambda task: [task.M] * (task.n + (task.form == "query")),
    bad=[
        ("twosum:n=4", "M is missing"),
        ("twosum:n=4,M=2", "M is 2"),
        ("twosum:n=1,M=8,form=decision", "n is 1"),
        ("twosum:n=4,M=8,form=decison", "Did you mean 'decision'"),
    ],
)
