"""L-SeqComp read forward: z_0, w, z_1, ..., z_L; answer i_L."""

import math

from separatrix.tasks import SeqCompForward
from support.task_cases import Case
from support.task_cases.seqcomp import composed, sizes


def backward(task: SeqCompForward, prompt: list[int]) -> list[int]:
    """The same functions in the order of seqcomp."""
    tables = []
    rest = prompt[2:]
    for size in sizes(task):
        tables = [rest[:size], *tables]
        rest = rest[size:]
    return [*(entry for table in tables for entry in table), *prompt[:2]]


CASE = Case(
    kind=SeqCompForward,
    examples=[
        *(SeqCompForward(L=1, m=4), SeqCompForward(L=2, m=3, branching=(2,))),
        *(
            SeqCompForward(L=3, m=2, branching=(3, 2)),
            SeqCompForward(L=2, m=3, branching=(2,), shift="few"),
        ),
    ],
    tiny=[
        *(
            SeqCompForward(L=1, m=2),
            SeqCompForward(L=1, m=3),
            SeqCompForward(L=2, m=2, branching=(1,)),
        ),
        *(
            SeqCompForward(L=2, m=2, branching=(2,)),
            SeqCompForward(L=2, m=3, branching=(1,)),
            SeqCompForward(L=3, m=2, branching=(1, 1)),
        ),
    ],
    by_hand=lambda task, prompt: composed(task, backward(task, prompt)),
    ranges=lambda task: (
        [task.m, math.prod(task.branching)] + [size for size in sizes(task) for _ in range(size)]
    ),
    uniform=True,
    bad=[
        ("seqcomp-forward:m=4", "L"),
        ("seqcomp-forward:L=0,m=4", "L is 0"),
        (
            "seqcomp-forward:L=2,m=4,n_1=2,order=forward",
            "unknown size 'order' of task 'seqcomp-forward'",
        ),
        (
            "seqcomp-forward:L=2,n=5",
            "seqcomp-forward: n=5 is too short for L=2; the smallest is 8",
        ),
        ("seqcomp-forward:L=2,m=4", "n_1 is missing"),
    ],
)
