"""Noisy recall: the value behind the key asked for, in a slot that is no noise."""

import itertools
from collections.abc import Iterable

from separatrix.tasks import NoisyRecall
from support.task_cases import Case, Prompt


def recalled(task: NoisyRecall, prompt: list[int]) -> int:
    slots = zip(prompt[:-1:2], prompt[1::2], strict=True)
    return next(value for key, value in slots if key == prompt[-1])


def instances(task: NoisyRecall) -> Iterable[Prompt]:
    keys = range(task.V, task.V + task.K)
    noise = range(task.V + task.K, task.V + task.K + task.N)
    slots = range(task.n + task.noise)
    for chosen in itertools.combinations(slots, task.n):
        for names in itertools.permutations(keys, task.n):
            for values in itertools.product(range(task.V), repeat=task.n):
                at = dict(zip(chosen, zip(names, values, strict=True), strict=True))
                free = [
                    [at[s]] if s in at else list(itertools.product(noise, noise)) for s in slots
                ]
                for row in itertools.product(*free):
                    front = tuple(itertools.chain.from_iterable(row))
                    yield from ((*front, asked) for asked in names)


def sized(n: int, noise: int, K: int, V: int, N: int) -> NoisyRecall:
    return NoisyRecall(n=n, noise=noise, K=K, V=V, N=N)


CASE = Case(
    kind=NoisyRecall,
    examples=[sized(4, 3, 6, 2, 5), sized(5, 0, 5, 3, 1), sized(4, 2, 9, 3, 4)],
    tiny=[sized(2, 0, 2, 2, 1), sized(2, 1, 3, 2, 1), sized(2, 0, 3, 3, 1)],
    by_hand=recalled,
    instances=instances,
    bad=[
        ("noisy-recall:n=4,noise=1,K=8", "size V is missing"),
        ("noisy-recall:n=4,noise=1,K=3,V=2", "K is 3; it must be an integer from 4"),
        ("noisy-recall:n=4,noise=-1,K=8,V=2", "noise is -1; it must be an integer from 0"),
    ],
)
