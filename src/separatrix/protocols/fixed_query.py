"""The protocol of Theorem I': one full layer, prompts A B q with q fixed; the last token reads one
of so many values of A, and knows B.

Source: theory.md, section 3, Theorem I'; [Peng24] for composition.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import product
from typing import Generic

import numpy as np

from separatrix.protocols.tables import Tables, Value
from separatrix.tasks import TwoSum

Answers = Mapping[tuple[Hashable, Hashable], int]
"""The right answer to every (A, B)."""


def composition(n: int) -> Answers:
    """g(f(x)), g first: A = g, B = (f, x), with f, g: [n] -> [n]."""
    functions = list(product(range(n), repeat=n))
    return {(g, (f, x)): g[f[x]] for g in functions for f in functions for x in range(n)}


def equality(n: int) -> Answers:
    """Whether two strings of n bits are equal."""
    strings = list(product(range(2), repeat=n))
    return {(a, b): int(a == b) for a in strings for b in strings}


def disjointness(n: int) -> Answers:
    """Whether two subsets of [n], as strings of bits, are disjoint."""
    strings = list(product(range(2), repeat=n))
    return {
        (a, b): int(not any(x and y for x, y in zip(a, b, strict=True)))
        for a in strings
        for b in strings
    }


def two_sum(task: TwoSum, q: int) -> Answers:
    """2-Sum as a decision, by the task's oracle: A = the tokens before the last two, B = the one
    before the last, q the last.
    """
    prompts = [(A, B) for A in product(range(task.M), repeat=task.n - 2) for B in range(task.M)]
    right = task.answer(np.array([(*A, B, q) for A, B in prompts], dtype=np.int64))
    return {prompt: int(answer) for prompt, answer in zip(prompts, right, strict=True)}


def classes(answers: Answers) -> int:
    """C_A: the number of A that some B tells apart."""
    after: dict[Hashable, dict[Hashable, int]] = {}
    for (A, B), answer in answers.items():
        after.setdefault(A, {})[B] = answer
    # two A with one row of answers are told apart by no B
    return len({frozenset(row.items()) for row in after.values()})


class FixedQuery(Generic[Value]):
    """A protocol in which the last token reads one of `reads` values of A and gives one of
    `answers` answers.
    """

    def __init__(self, reads: int, answers: int, tables: Tables[Value]) -> None:
        self.reads = reads
        self.answers = answers
        self._tables = tables

    def run(self, A: Hashable, B: Hashable) -> Value:
        """The answer."""
        return self._tables(
            "answer", B, (self._tables("reads", (A,), (), self.reads),), self.answers
        )
