"""The draws of an export: every split has its own stream of the seed, in batches whose size depends
on the length of a row only; and instances that occur once only, over all splits, with answers as
frequent as they are drawn.

A sampler may draw rare instances often. Half of all its draws may be equal pairs of strings; or
each count of ones comes equally often, though only one string is all ones. Dropping every repeated
draw would then leave the other answers, and a constant guess would do better than chance. So a
split of N rows has the answers of the first N draws: a repeated draw gives way to a later one with
the same answer. Where an answer has no instances left, another answer may stand in, but none in
more rows than 3 standard deviations above chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Any

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.exports.source import Drawn, Rows, Source

_PATIENCE = 20
"""One instance left of f + 1, drawn equally often, stays undrawn in 20 (f + 1) draws with
probability below e^-20.
"""


class Exhausted(Exception):
    """There are not so many instances."""


@dataclass
class Distinct:
    """What was given out so far."""

    seen: set[bytes] = field(default_factory=set, repr=False)
    """Keys, 16 bytes each."""
    given: Counter[int] = field(default_factory=Counter)
    """Rows by answer."""
    vain: Counter[int] = field(default_factory=Counter)
    """Draws in a row, by answer, that gave nothing new."""

    def split(self, wanted: int, share: Fraction) -> Selection:
        """The next split: `wanted` rows, and an answer may stand in for others up to about
        `share` of them.
        """
        most = wanted * share + 3 * sqrt(wanted * share * (1 - share))
        return Selection(self, wanted, max(1, int(most)))

    def exhausted(self, answer: int) -> bool:
        return self.vain[answer] > _PATIENCE * (self.given[answer] + 1)


class Selection:
    """A split on its way."""

    def __init__(self, distinct: Distinct, wanted: int, most: int) -> None:
        self.missing = wanted
        """Rows to come."""
        self._distinct = distinct
        self._most = most
        self._undecided = wanted
        self._due: Counter[int] = Counter()
        self._kept: Counter[int] = Counter()
        self._any = 0
        """Rows due with whatever answer is left."""
        self._in_vain = 0
        self._patience = _PATIENCE * (wanted + distinct.given.total() + 50)

    def take(self, keys: Sequence[tuple[bytes, ...]], answers: Sequence[int]) -> list[int]:
        """The rows of a batch of draws that belong to the split. Raises Exhausted when there
        seem to be no more.
        """
        taken = []
        for row, (row_keys, answer) in enumerate(zip(keys, answers, strict=True)):
            if self._undecided:
                self._undecided -= 1
                self._due[answer] += 1
            elif not self.missing:
                break
            if self._takes(row_keys, answer):
                taken.append(row)
        self._in_vain = 0 if taken else self._in_vain + len(keys)
        if self._in_vain > self._patience:
            if not self._due.total():
                raise Exhausted
            # nothing in a long while: rows due with answers that seem used up take any other
            self._in_vain = 0
            self._any = self._any + self._due.total()
            self._due.clear()
        return taken

    def _takes(self, keys: tuple[bytes, ...], answer: int) -> bool:
        known = self._distinct
        if not known.seen.isdisjoint(keys):
            known.vain[answer] += 1
            if self._due[answer] and known.exhausted(answer):
                self._any += self._due.pop(answer)
            return False
        if self._due[answer]:
            self._due[answer] -= 1
        elif self._any and not self._undecided and self._kept[answer] < self._most:
            self._any -= 1
        else:
            return False
        known.seen.update(keys)
        known.vain[answer] = 0
        for counter in (known.given, self._kept):
            counter[answer] += 1
        self.missing -= 1
        return True


SPLITS = ("train", "validation", "test")
_DRAWN = ("test", "validation", "train")
"""In this order, so that what is tested does not depend on how much is trained on."""
_BATCH_TOKENS = 1 << 20
_MOST_BATCH = 1024

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """Rows of `source` per split."""

    source: Source[Any]
    splits: dict[str, int]
    """Splits with at least one row, in the order of SPLITS."""
    seed: int
    progress: Progress | None = None
    distinct: Distinct = field(default_factory=Distinct, repr=False)

    @property
    def rows(self) -> int:
        return sum(self.splits.values())

    def drawn(self) -> Iterator[tuple[str, Iterator[Rows]]]:
        """Each split with its rows, batch by batch; one split must be used up before the next is
        asked for. SizeError: too few instances.
        """
        for name in _DRAWN:
            if name in self.splits:
                yield name, self._rendered(name)

    def _rendered(self, split: str) -> Iterator[Rows]:
        try:
            for drawn, kept in self._kept(split):
                if kept:
                    yield drawn.render(np.array(kept))
                if self.progress is not None:
                    self.progress(self.distinct.given.total(), self.rows)
        except Exhausted:
            raise SizeError(
                f"{self.source.task.spec}: {self.rows:,} rows are asked for, and after"
                f" {self.distinct.given.total():,} there seem to be no new instances with answers"
                " as frequent as they are drawn; ask for fewer rows, or choose larger sizes"
            ) from None

    def _kept(self, split: str) -> Iterator[tuple[Drawn, list[int]]]:
        rng = np.random.default_rng((self.seed, _DRAWN.index(split)))
        batch = max(1, min(_MOST_BATCH, _BATCH_TOKENS // self.source.length))
        selection = self.distinct.split(self.splits[split], self.source.share)
        while selection.missing:
            drawn = self.source.draw(batch, rng)
            yield drawn, selection.take(drawn.keys, drawn.answers)
