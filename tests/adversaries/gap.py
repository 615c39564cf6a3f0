"""Between what a theorem rules out and what exists: the sizes at which a protocol is known to
fail, to exist, or neither is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import log2

from adversaries.existence import find_one_reading, find_two_readings
from adversaries.two_readings import TwoReadingsSizes
from separatrix.core.errors import CheckFailed
from separatrix.protocols.collision import Line
from separatrix.protocols.one_reading import Entries, OneReadingSizes


@dataclass(frozen=True)
class Gap:
    """Numbers of values of one message, all else fixed: the theorem shows failure up to `fails_to`
    (0: nowhere), a search over all protocols finds one from `exists_from` on (None: none up to the
    largest searched).
    """

    fails_to: int
    exists_from: int | None

    @property
    def bits(self) -> float | None:
        """log2 of exists_from / (fails_to + 1), for people: 0 where the theorem is tight."""
        return None if self.exists_from is None else log2(self.exists_from / (self.fails_to + 1))


def gap(fails: Callable[[int], bool], exists: Callable[[int], bool], sizes: Iterable[int]) -> Gap:
    """The gap by trying the sizes, in rising order, up to the first at which a protocol exists.

    Raises CheckFailed where a protocol exists and the theorem says "fails", at that size or a
    larger one.
    """
    sizes = list(sizes)
    fails_to = max((size for size in sizes if fails(size)), default=0)
    exists_from = next((size for size in sizes if exists(size)), None)
    # values may stay unused, so where a protocol exists there is one with more values too
    if exists_from is not None and exists_from <= fails_to:
        raise CheckFailed(
            f"the theorem says that {fails_to} values are too few, but a protocol with"
            f" {exists_from} is right everywhere"
        )
    return Gap(fails_to, exists_from)


def gap_iii(sizes: OneReadingSizes, reads: Iterable[int]) -> Gap:
    """The gap of Theorem III in the number of values that a token reads. Raises CheckFailed
    where it or the search is wrong.
    """

    def at(k: int) -> OneReadingSizes:
        return replace(sizes, reads=k)

    return gap(
        lambda k: at(k).failing() is not None,
        lambda k: _runs(find_one_reading(at(k)), sizes.prompts()),
        reads,
    )


def gap_iv(sizes: TwoReadingsSizes, reads: Iterable[int]) -> Gap:
    """The gap of Theorem IV in the number of values that a token reads in layer 2. Raises
    CheckFailed where it or the search is wrong.
    """

    def at(k: int) -> TwoReadingsSizes:
        return replace(sizes, reads_2=k)

    return gap(
        lambda k: at(k).failing() is not None,
        lambda k: _runs(find_two_readings(at(k)), sizes.prompts()),
        reads,
    )


def _runs(line: Line | None, prompts: Iterable[tuple[Entries, int]]) -> bool:
    """Whether there is a protocol; one that was found is run on every prompt."""
    if line is not None and any(line.run(tokens).answer != right for tokens, right in prompts):
        raise CheckFailed("the search returned a protocol that is wrong on some prompt")
    return line is not None
