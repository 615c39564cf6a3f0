"""c-gram retrieval: what followed the only earlier occurrence of the last c tokens. Its smallest
size has too many prompts to try all.
"""

from separatrix.tasks import CGram
from support.task_cases import Case


def followed(task: CGram, prompt: list[int]) -> int:
    asked = prompt[-task.c :]
    (place,) = [
        start for start in range(task.n - task.c) if prompt[start : start + task.c] == asked
    ]
    return prompt[place + task.c]


CASE = Case(
    kind=CGram,
    examples=[
        CGram(n=11, V=4),
        CGram(n=13, V=9),
        CGram(n=14, V=6),
        CGram(n=26, V=8),
        CGram(n=35, V=8, c=3),
        CGram(n=50, V=8),
        CGram(n=19, V=7, c=3),
    ],
    tiny=[],
    by_hand=followed,
    bad=[
        ("cgram:n=26", "size V is missing"),
        ("cgram:n=26,V=8,c=1", "c is 1; it must be an integer from 2"),
        ("cgram:n=10,V=8", "n is 10; it must be an integer from 11"),
        ("cgram:n=18,V=8,c=3", "n is 18; it must be an integer from 19"),
        ("cgram:n=11,V=3", "V is 3; it must be an integer from 4"),
        ("cgram:n=53,V=8", "V is 8; it must be an integer from 10"),
    ],
)
