"""IsTree: the ends of n - 1 edges between n vertices; answer 1 if the graph is a tree."""

from separatrix.tasks import IsTree
from support.task_cases import Case


def tree(task: IsTree, prompt: list[int]) -> int:
    """Every edge must join two groups that were apart."""
    group = list(range(task.n))
    for u, v in zip(prompt[::2], prompt[1::2], strict=True):
        if group[u] == group[v]:
            return 0
        group = [group[v] if other == group[u] else other for other in group]
    return 1


CASE = Case(
    kind=IsTree,
    examples=[
        IsTree(n=64),
        IsTree(n=69),
        IsTree(n=80),
    ],
    tiny=[IsTree(n=3), IsTree(n=4)],
    by_hand=tree,
    ranges=lambda task: [task.n] * (2 * (task.n - 1)),
    bad=[
        ("istree", "size n is missing"),
        ("istree:n=2", "n is 2; it must be an integer from 64"),
        ("istree:n=8,m=7", "unknown size 'm'"),
    ],
)
