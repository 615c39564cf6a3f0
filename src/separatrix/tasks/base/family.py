"""Tasks of one kind at growing size, so that a theorem can name the smallest n at which it
bites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.first_size import first_size

LARGEST_SIZE = 10**12
"""Largest size of a task text, where a task does not say otherwise."""

Member = TypeVar("Member", covariant=True)


@dataclass(frozen=True)
class Family(Generic[Member]):
    """Tasks of one kind: `described` tells people what stays the same, and `at` gives the task of a
    size n.

    `at` raises SizeError where there is none; `smallest` is the first n that has one, and `grows`
    the spelling of n in a task's text.
    """

    described: str
    at: Callable[[int], Member]
    smallest: int
    grows: str = "n"
    keeps_prefixes: bool = True
    """Whether a larger member tells a smaller one's prefixes apart at the same place."""

    @property
    def largest(self) -> int:
        """The largest n that `at` takes."""

        def too_large(n: int) -> bool:
            try:
                self.at(n)
            except SizeError:
                return True
            return False

        beyond = first_size(too_large, self.smallest, limit=LARGEST_SIZE + 1)
        return LARGEST_SIZE if beyond is None else beyond - 1
