"""Bounded Dyck-(k, D): answer 1 if the brackets are balanced and nested at most D deep."""

from separatrix.tasks import Dyck
from support.task_cases import Case


def balanced(task: Dyck, prompt: list[int]) -> int:
    stack: list[int] = []
    for token in prompt:
        if token < task.k:
            stack.append(token)
        elif not stack or stack.pop() != token - task.k:
            return 0
        if len(stack) > task.D:
            return 0
    return int(not stack)


_TINY = [
    (2, 1, 1),
    (4, 1, 1),
    (6, 1, 1),
    (6, 1, 2),
    (8, 1, 3),
    (8, 1, 9),
    *((10, 1, D) for D in (1, 2, 3, 4, 5)),
    (12, 1, 3),
    (2, 2, 1),
    (4, 2, 1),
    (4, 2, 2),
    (6, 2, 1),
    (6, 2, 2),
    (6, 2, 3),
    (4, 3, 2),
]

CASE = Case(
    kind=Dyck,
    examples=[
        Dyck(n=96, k=2, D=5),
        Dyck(n=98, k=3, D=100),
        Dyck(n=48, k=1, D=3),
    ],
    tiny=[Dyck(n=n, k=k, D=D) for n, k, D in _TINY],
    by_hand=balanced,
    ranges=lambda task: [2 * task.k] * task.n,
    bad=[
        ("dyck:n=5,k=2,D=2", "n must be even"),
        ("dyck:n=0,k=2,D=2", "n is 0"),
        ("dyck:n=4,k=0,D=2", "k is 0"),
        ("dyck:n=4,k=2,D=0", "D is 0"),
        ("dyck:n=4,k=2", "size D is missing"),
    ],
)
