"""What a task of state tracking moves: every token rearranges a few things, and where these stand
in the end is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Task, Tokens
from separatrix.tasks.tracking import Group, Modular, Parity, Permutation, arrangements

_LARGEST_PRIME = 1 << 12
"""Factors are looked for up to here; what is left is taken for a prime."""


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """A group of rearrangements that a task asks to follow: all permutations of k things, the even
    ones, or the turns of a few cycles.
    """

    things: int
    followed: tuple[int, ...]
    """Things whose places together tell the answer."""
    swaps: int
    """Most exchanges of two things that one token's rearrangement is made of."""
    blocks: tuple[int, ...]
    """How many things there are in each block of things that change places among themselves."""
    order: int
    rows: Callable[[], tuple[Tokens, Tokens]]
    """Where every token, and where every answer, sends each thing: (tokens, things) and (answers,
    things).
    """

    @cached_property
    def tables(self) -> tuple[Tokens, Tokens]:
        """`rows`, made once."""
        return self.rows()


def tracked(task: Task) -> Tracked | None:
    """What a task asks to follow; None for a task of another kind."""
    kind = _KINDS.get(type(task))
    return None if kind is None else kind(task)


def _parity(task: Parity) -> Tracked:
    return _cycles(2, bits=True)


def _modular(task: Modular) -> Tracked:
    return _cycles(task.m, bits=True)


def _permutation(task: Permutation) -> Tracked:
    return _permutations(task.k, even=False)


def _group(task: Group) -> Tracked:
    return _permutations(task.degree, even=True) if task.degree else _cycles(task.vocabulary)


def _permutations(k: int, *, even: bool) -> Tracked:
    every = arrangements(k, even=even)
    # as many exchanges as things less cycles: of a cycle k - 1, which is odd where k is even
    swaps = k - 1 - (even and k % 2 == 0)
    # the last thing stands where none of the others does, of even permutations the last two
    followed = tuple(range(max(1, k - 1 - even)))
    return Tracked(
        things=k,
        followed=followed,
        swaps=swaps,
        blocks=(k,),
        order=every.order,
        rows=lambda: (every.rows, every.rows),
    )


def _cycles(m: int, *, bits: bool = False) -> Tracked:
    """Numbers modulo m, as turns of one cycle for each power of a prime in m. Tokens are all
    numbers, or just 0 and 1.
    """
    lengths = _prime_powers(m)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]

    def turned(numbers: Tokens) -> Tokens:
        parts = [
            start + (np.arange(length) + numbers[:, None]) % length
            for start, length in zip(starts, lengths, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    return Tracked(
        things=sum(lengths),
        followed=tuple(starts),
        swaps=sum(lengths) - len(lengths),
        blocks=tuple(lengths),
        order=m,
        rows=lambda: (turned(np.arange(2 if bits else m)), turned(np.arange(m))),
    )


def _prime_powers(m: int) -> list[int]:
    """Powers of different primes whose product is m."""
    found: list[int] = []
    p = 2
    while p * p <= m and p <= _LARGEST_PRIME:
        power = 1
        while m % p == 0:
            m //= p
            power *= p
        if power > 1:
            found.append(power)
        p += 1
    return [*found, m] if m > 1 else found


_KINDS: dict[type[Task], Callable[[Any], Tracked]] = {
    Parity: _parity,
    Modular: _modular,
    Permutation: _permutation,
    Group: _group,
}
"""Tasks of state tracking."""
