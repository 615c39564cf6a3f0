"""The largest size that a construction is proved for in an arithmetic, found by building it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task

MOST = 1 << 20
SIZES = ("n", "input_seq_len", "m", "M", "V", "vocab_size", "K", "k", "d")
"""Sizes that may be too large for an arithmetic, in the order in which they are tried."""
SHOWN = 1 << 14
"""As far as a command line looks that was asked for one size."""
_EXACT = 1 << 13
"""Beyond, a limit is found to a sixty-fourth: every step builds and proves."""
Build = Callable[[Task], object]
"""Raises SizeError for a task that is not proved."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The largest value found of one size, all else fixed, at which a construction is proved."""

    size: str
    n: int
    """The largest value that was built and proved; 0: none was."""
    breaks: str | None
    """What breaks the proof beyond; None where nothing was found to."""
    beyond: int | None
    """The smallest value that was tried and not proved."""
    ends: str | None = None
    """Why no task has a larger value, where it was proved for all that have one."""

    @property
    def layer(self) -> int | None:
        """The layer that breaks, where the proof says one."""
        found = re.search(r"layer (\d+)", self.breaks or "")
        return int(found[1]) if found else None

    @property
    def capped(self) -> bool:
        """Whether it was proved as far as was tried."""
        return self.beyond is None

    def sentence(self, title: str) -> str:
        """For a reader."""
        if not self.n:
            return f"in {title} no {self.size} is proved: {self.breaks}"
        found = f"in {title} the largest proved is {self.size} = {self.n:,}"
        if self.ends is not None:
            return f"{found}; at the next one tried there is no such task: {self.ends}"
        if self.beyond is None:
            return f"{found}, the most that was tried"
        where = f"layer {self.layer}" if self.layer else "the proof"
        return f"{found}; at {self.beyond:,} {where} breaks: {self.breaks}"


def family(task: Task) -> str:
    """The size that grows: n, where the task has one."""
    sizes = task.sizes()
    return next((name for name in SIZES if isinstance(sizes.get(name), int)), "n")


def largest_proved(
    name: str,
    task: Task,
    arithmetic: Arithmetic,
    most: int = MOST,
    size: str | None = None,
    architecture: Architecture | None = None,
    seconds: float = math.inf,
) -> Limit:
    """The largest value of a size (default: n), all else fixed, at which the construction is built
    and proved in the arithmetic, up to `most`; nothing more is tried after a proof that took longer
    than so many seconds of processor time.

    Doubled from the task's own until the proof breaks, or halved until it does not; then bisected,
    beyond 8,192 to a sixty-fourth. So all sizes in between are taken to hold with the ends, which
    nothing proves.
    """
    return limit(
        task,
        lambda other: construct(other, architecture, name, arithmetic),
        most=most,
        size=size or family(task),
        seconds=seconds,
    )


def limit(task: Task, build: Build, *, most: int, size: str, seconds: float = math.inf) -> Limit:
    """As `largest_proved`, of anything that builds."""
    reasons: dict[int, str] = {}
    none: dict[int, str] = {}
    slow = False

    def proved(value: int) -> bool:
        nonlocal slow
        try:
            other = task.with_sizes({size: value})
        except SizeError as error:
            none[value] = str(error)
            return False
        began = time.process_time()
        try:
            build(other)
        except SizeError as error:
            reasons[value] = str(error)
            return False
        finally:
            slow |= time.process_time() - began > seconds
        return True

    own = task.sizes()[size]
    assert isinstance(own, int)
    low, high = 0, min(own, most)
    if proved(high):
        low, high = high, min(2 * high, most)
        while high > low and not slow and proved(high):
            low, high = high, min(2 * high, most)
        if high == low or (slow and high not in reasons):
            return Limit(size=size, n=low, breaks=None, beyond=None)
    else:
        low = high // 2
        while low and not proved(low):
            low, high = low // 2, low
    while low and not slow and high - low > max(1, low // 64 if low >= _EXACT else 1):
        middle = (low + high) // 2
        if proved(middle):
            low = middle
        elif middle in none and middle + 1 < high and proved(middle + 1):
            # some tasks have even sizes only
            low = middle + 1
        else:
            high = middle
    beyond = min((value for value in reasons if value > low), default=None)
    if beyond is None:
        return Limit(size=size, n=low, breaks=None, beyond=None, ends=none[high])
    return Limit(size=size, n=low, breaks=reasons[beyond], beyond=beyond)


def limit_below(
    task: Task,
    architecture: Architecture | None,
    kind: str | None,
    arithmetic: Arithmetic | None,
) -> Limit | None:
    """Of a task that is not proved, the first size that is too large, and its limit, looked for up
    to `MOST`; None where no smaller one is proved either.
    """
    sizes = task.sizes()
    for size in SIZES:
        if isinstance(sizes.get(size), int):
            found = limit(
                task,
                lambda other: construct(other, architecture, kind, arithmetic),
                most=min(int(sizes[size]), MOST),
                size=size,
            )
            if found.n:
                return found
    return None
