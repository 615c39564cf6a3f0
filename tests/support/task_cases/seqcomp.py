"""L-SeqComp: z_L, ..., z_1, z_0, w; answer i_L."""

import math

from separatrix.tasks import SeqComp, SeqCompForward
from support.task_cases import Case


def sizes(task: SeqComp | SeqCompForward) -> list[int]:
    """N_0, ..., N_{L-1}."""
    return [math.prod((task.m, *task.branching[:level])) for level in range(task.L)]


def composed(task: SeqComp | SeqCompForward, prompt: list[int]) -> int:
    N = sizes(task)
    tables = {}
    rest = list(prompt)
    for level in range(task.L, 0, -1):
        tables[level], rest = rest[: N[level - 1]], rest[N[level - 1] :]
    z_0, w = rest
    value = tables[1][z_0]
    for level in range(2, task.L + 1):
        w, part = divmod(w, task.branching[level - 2])
        value = tables[level][part * N[level - 2] + value]
    return value


CASE = Case(
    kind=SeqComp,
    examples=[
        *(SeqComp(L=1, m=4), SeqComp(L=2, m=3, branching=(2,))),
        *(SeqComp(L=3, m=2, branching=(3, 2)), SeqComp(L=4, m=2, branching=(1, 2, 1))),
        SeqComp(L=2, m=3, branching=(2,), values="permutations"),
        *(SeqComp(L=2, m=4, branching=(2,), shift=shift) for shift in ("few", "local")),
    ],
    tiny=[
        *(
            SeqComp(L=1, m=2),
            SeqComp(L=1, m=3),
            SeqComp(L=2, m=2, branching=(1,)),
            SeqComp(L=2, m=2, branching=(2,)),
        ),
        *(SeqComp(L=2, m=3, branching=(1,)), SeqComp(L=3, m=2, branching=(1, 1))),
    ],
    by_hand=composed,
    ranges=lambda task: (
        [size for size in reversed(sizes(task)) for _ in range(size)]
        + [task.m, math.prod(task.branching)]
    ),
    uniform=True,
    bad=[
        ("seqcomp:m=4", "L"),
        ("seqcomp:L=0,m=4", "L is 0"),
        ("seqcomp:L=3,m=4,n_1=2", "n_2 is missing"),
        ("seqcomp:L=2,m=4,n_1=0", "n_1 is 0"),
        ("seqcomp:L=3,n=15", "the smallest is 16"),
        ("seqcomp:L=2,n=64,m=4", "leave one of them out"),
        ("seqcomp:L=2,n=64,n_1=4", "leave one of them out"),
        ("seqcomp:L=2,m=4,n_1=2,n_2=2", "unknown size 'n_2' of task 'seqcomp'. Did you mean 'n_1'"),
        ("seqcomp:L=65,m=4", "L is 65; it must be an integer from 1 to 64"),
        ("seqcomp:L=1,m=1", "m is 1; it must be an integer from 2"),
        (
            "seqcomp:L=2,m=4,n_1=1,form=uniform",
            "form=uniform makes every n_l = 1, but n_1 is given too",
        ),
        ("seqcomp:L=2,n=64,m=4,form=uniform", "n chooses m and every n_l = 1, but m is given too"),
        ("seqcomp:L=2,form=uniform", "m is missing"),
        ("seqcomp:L=3,n=7,form=uniform", "the smallest is 8"),
        ("seqcomp:L=2,m=4,form=unform", "unknown form of seqcomp 'unform'. Did you mean 'uniform'"),
        ("seqcomp:L=2,m=4,n_1=2,values=permutation", "Did you mean 'permutations'"),
        ("seqcomp:L=2,m=4,n_1=2,values=permutations,shift=few", "leave one of them out"),
        ("seqcomp:L=2,m=4,n_1=2,shift=zip", "unknown shift of seqcomp 'zip'. Did you mean 'zipf'"),
        ("seqcomp:L=2,m=4,n_1=2,order=forward", "unknown size 'order' of task 'seqcomp'"),
        (f"seqcomp:L=3,m=4,n_1={10**99},n_2={10**99}", r"a prompt has at most 10\^100"),
    ],
)
