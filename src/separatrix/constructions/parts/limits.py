"""How large a construction may be that is refused, found by building smaller ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task

MOST = 1 << 20
SIZES = ("n", "input_seq_len", "m", "M", "V", "vocab_size", "K", "k", "d")
"""Sizes that may be too large for an arithmetic, in the order in which they are tried."""
_EXACT = 1 << 13
"""Beyond, a limit is found to a sixty-fourth: every step builds and proves."""


class Limit(NamedTuple):
    """The largest value found of one size, all else fixed, at which a construction is proved."""

    size: str
    n: int
    capped: bool
    """Whether it was proved as far as was tried."""


def limit(task: Task, build: Callable[[Task], object], size: str) -> Limit | None:
    """The largest value up to the task's own, or `MOST`, at which a size builds: halved until it
    does, then bisected, beyond 8,192 to a sixty-fourth; so all in between are taken to build with
    the ends, which nothing proves. None where no smaller one builds, or the task has no such size.
    `build` raises SizeError for what is not proved.
    """
    own = task.sizes().get(size)
    if not isinstance(own, int):
        return None

    def proved(value: int) -> bool | None:
        """None where there is no such task."""
        try:
            other = task.with_sizes({size: value})
        except SizeError:
            return None
        try:
            build(other)
        except SizeError:
            return False
        return True

    high = min(own, MOST)
    if proved(high):
        return Limit(size, high, capped=True)
    low = high // 2
    while low and not proved(low):
        low, high = low // 2, low
    while low and high - low > max(1, low // 64 if low >= _EXACT else 1):
        middle = (low + high) // 2
        held = proved(middle)
        if held:
            low = middle
        elif held is None and middle + 1 < high and proved(middle + 1):
            # some tasks have even sizes only
            low = middle + 1
        else:
            high = middle
    return Limit(size, low, capped=False) if low else None


def limit_below(
    task: Task,
    architecture: Architecture | None,
    kind: str | None,
    arithmetic: Arithmetic | None,
) -> Limit | None:
    """Of a task that is not proved, the first size that is too large, and its limit; None where no
    smaller one is proved either.
    """

    def build(other: Task) -> object:
        return construct(other, architecture, kind, arithmetic)

    return next((found for size in SIZES if (found := limit(task, build, size))), None)
