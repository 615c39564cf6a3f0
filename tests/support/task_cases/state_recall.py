"""State-based recall: memory, pointers, swaps, question."""

import itertools
from collections.abc import Iterator

from separatrix.tasks import StateRecall
from support.task_cases import Case, Prompt


def pairs(task: StateRecall) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(task.P), 2))


def read(task: StateRecall, prompt: list[int]) -> int:
    """Forward: every pointer is kept, and every swap exchanges two of them."""
    memory = prompt[: task.n]
    rest = prompt[task.n :]
    points = [cell - task.V for cell in rest[: task.P]]
    for token in rest[task.P : -1]:
        i, j = pairs(task)[token - task.V - task.n]
        points[i], points[j] = points[j], points[i]
    return memory[points[rest[-1] - task.V - task.n - len(pairs(task))]]


def every(task: StateRecall) -> Iterator[Prompt]:
    swap = task.V + task.n
    query = swap + len(pairs(task))
    memories = itertools.product(range(task.V), repeat=task.n)
    points = itertools.permutations(range(task.V, swap), task.P)
    swaps = itertools.product(range(swap, query), repeat=task.K)
    for memory, cells, moves, asked in itertools.product(
        memories, points, swaps, range(query, query + task.P)
    ):
        yield (*memory, *cells, *moves, asked)


CASE = Case(
    kind=StateRecall,
    examples=[
        *(
            StateRecall(n=8, V=2, K=4, P=3),
            StateRecall(n=12, V=4, K=7),
            StateRecall(n=7, V=3, K=1, P=4),
            StateRecall(n=5, V=8, K=3, P=5),
        ),
        StateRecall(n=9, V=3, K=5, P=4),
    ],
    tiny=[
        *(
            StateRecall(n=3, V=2, K=1, P=3),
            StateRecall(n=3, V=2, K=2, P=3),
            StateRecall(n=4, V=2, K=1, P=3),
        ),
        *(StateRecall(n=3, V=3, K=1, P=3), StateRecall(n=4, V=2, K=1, P=4)),
    ],
    by_hand=read,
    instances=every,
    bad=[
        ("state-recall:n=8,V=2", "size K is missing"),
        ("state-recall:n=4,V=2,K=3", "n is 4; it must be an integer from 5"),
        ("state-recall:n=8,V=1,K=3", "V is 1; it must be an integer from 2"),
        ("state-recall:n=8,V=2,K=0", "K is 0; it must be an integer from 1"),
        ("state-recall:n=8,V=2,K=3,P=2", "P is 2; it must be an integer from 3"),
    ],
)
