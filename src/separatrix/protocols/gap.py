"""Between what a theorem rules out and what exists: the sizes at which a protocol is known to fail, to exist, or neither is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2

from separatrix.errors import CheckFailed


@dataclass(frozen=True)
class Gap:
    """Numbers of values of one message, all else fixed: the theorem shows failure up to `fails_to` (0: nowhere), a search over all protocols finds one
    from `exists_from` on (None: none up to the largest searched)."""

    fails_to: int
    exists_from: int | None

    @property
    def bits(self) -> float | None:
        """log2 of exists_from / (fails_to + 1), for people: 0 where the theorem is tight."""
        return None if self.exists_from is None else log2(self.exists_from / (self.fails_to + 1))


def gap(fails: Callable[[int], bool], exists: Callable[[int], bool], largest: int) -> Gap:
    """The gap by trying 1, 2, ... up to the first size at which a protocol exists.

    Raises CheckFailed where the theorem says "fails" and a protocol exists, at any size up to the largest.
    """
    fails_to = 0
    for size in range(1, largest + 1):
        if fails(size):
            fails_to = size
        if exists(size):
            wrong = next((later for later in range(size, largest + 1) if fails(later)), None)
            if wrong is not None:
                raise CheckFailed(f"the theorem says that {wrong} values are too few, but a protocol with {size} is right everywhere")
            return Gap(fails_to, size)
    return Gap(fails_to, None)
