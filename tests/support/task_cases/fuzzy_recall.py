"""Fuzzy recall: runs of key ids and value ids, then one of the keys; its value is due."""

import itertools
from collections.abc import Iterable

from separatrix.tasks import FuzzyRecall
from support.task_cases import Case, Prompt


def end_of_pairs(task: FuzzyRecall) -> int:
    """Each length has its share of the keys, and the longest what is left; values have the lengths
    1, 2, ..., b by turns.
    """
    strings = {length: task.K**length for length in range(1, task.a + 1)}
    keys = {length: task.n * each // sum(strings.values()) for length, each in strings.items()}
    for length in range(task.a, 0, -1):
        while sum(keys.values()) < task.n and keys[length] < strings[length]:
            keys[length] += 1
    values = itertools.islice(itertools.cycle(range(1, task.b + 1)), task.n)
    return sum(length * count for length, count in keys.items()) + sum(values)


def recalled(task: FuzzyRecall, prompt: list[int]) -> list[int]:
    end = end_of_pairs(task)
    runs = [tuple(run) for _, run in itertools.groupby(prompt[:end], lambda token: token < task.V)]
    value_of = dict(zip(runs[::2], runs[1::2], strict=True))
    key = tuple(token for token in prompt[end:] if token != task.V + task.K)
    value = value_of[key]
    before = end + len(key) - 1
    return [-1] * before + list(value) + [-1] * (task.length - before - len(value))


def strings(ids: range, longest: int) -> list[Prompt]:
    return [
        string
        for length in range(1, longest + 1)
        for string in itertools.product(ids, repeat=length)
    ]


def instances(task: FuzzyRecall) -> Iterable[Prompt]:
    keys = strings(range(task.V, task.V + task.K), task.a)
    values = strings(range(task.V), task.b)
    end = end_of_pairs(task)
    for names in itertools.permutations(keys, task.n):
        for held in itertools.product(values, repeat=task.n):
            front = tuple(itertools.chain(*(k + v for k, v in zip(names, held, strict=True))))
            if len(front) == end:
                for asked in names:
                    blanks = task.a + task.b - 1 - len(asked)
                    yield front + asked + (task.V + task.K,) * blanks


def sized(n: int, K: int, V: int, a: int, b: int) -> FuzzyRecall:
    return FuzzyRecall(n=n, K=K, V=V, a=a, b=b)


CASE = Case(
    kind=FuzzyRecall,
    examples=[
        sized(6, 2, 3, 2, 2),
        sized(9, 2, 2, 3, 1),
        sized(4, 5, 3, 1, 4),
        sized(5, 4, 3, 2, 3),
    ],
    tiny=[sized(2, 2, 2, 1, 1), sized(2, 2, 2, 2, 1), sized(2, 2, 2, 1, 2)],
    by_hand=recalled,
    instances=instances,
    bad=[
        ("fuzzy-recall:n=4,K=4", "size V is missing"),
        ("fuzzy-recall:n=15,K=2,V=2,a=3", "n is 15; it must be an integer from 2 to 14"),
        ("fuzzy-recall:n=4,K=4,V=2,a=9", "a is 9; it must be an integer from 1 to 8"),
        ("fuzzy-recall:n=4,K=1,V=2", "K is 1; it must be an integer from 2"),
    ],
)
