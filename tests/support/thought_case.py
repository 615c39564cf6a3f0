"""Chains of thought at sizes with few prompts: w and every value of the chain, one token each."""

from __future__ import annotations

from separatrix.tasks import SeqComp, Thought
from support.task_cases import Case
from support.task_cases.seqcomp import CASE as SEQCOMP

TINY = [(1, 2, ()), (1, 3, ()), (2, 2, (2,)), (2, 3, (1,)), (3, 2, (1, 1))]


def chain(task: Thought, prompt: list[int]) -> list[int]:
    """What is written behind a prompt, then the answer: (w, v) has the id first + w N + v, with N
    values v.
    """
    inner = task.task
    assert isinstance(inner, SeqComp)
    z_0, w = prompt[-2:]
    sizes = [inner.m]
    for number in inner.branching:
        sizes.append(sizes[-1] * number)
    values = [z_0]
    end = len(prompt) - 2
    rest = w
    for level in range(1, inner.L + 1):
        table = prompt[end - sizes[level - 1] : end]
        end -= sizes[level - 1]
        part = 0
        if level > 1:
            rest, part = divmod(rest, inner.branching[level - 2])
        values.append(table[part * sizes[max(level - 2, 0)] + values[-1]])
    first = max(sizes[-1], sizes[-1] // inner.m)
    pairs = sizes[max(inner.L - 2, 0)]
    return [*(first + w * pairs + value for value in values[:-1]), values[-1]]


THOUGHT = Case(
    kind=Thought,
    examples=[],
    tiny=[
        Thought(task=SeqComp(L=L, m=m, branching=branching), form="pairs")
        for L, m, branching in TINY
    ],
    by_hand=lambda task, prompt: chain(task, prompt),
    ranges=lambda task: SEQCOMP.ranges(task.task) if SEQCOMP.ranges else [],
)
