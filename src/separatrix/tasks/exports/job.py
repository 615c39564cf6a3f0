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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import sqrt

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

    def chosen(
        self, batches: Iterable[Drawn], wanted: int, share: Fraction
    ) -> Iterator[tuple[Drawn, list[int]]]:
        """Each batch with its rows that belong to the next split, until these are `wanted`; an
        answer may stand in for others up to about `share` of them. Raises Exhausted when there seem
        to be no more.
        """
        most = max(1, int(wanted * share + 3 * sqrt(wanted * share * (1 - share))))
        patience = _PATIENCE * (wanted + self.given.total() + 50)
        missing = undecided = wanted
        due: Counter[int] = Counter()
        kept: Counter[int] = Counter()
        anything = in_vain = 0
        for drawn in batches:
            taken = []
            for row, (keys, answer) in enumerate(zip(drawn.keys, drawn.answers, strict=True)):
                if undecided:
                    undecided -= 1
                    due[answer] += 1
                elif not missing:
                    break
                if not self.seen.isdisjoint(keys):
                    self.vain[answer] += 1
                    if due[answer] and self.vain[answer] > _PATIENCE * (self.given[answer] + 1):
                        anything += due.pop(answer)
                    continue
                if due[answer]:
                    due[answer] -= 1
                elif anything and not undecided and kept[answer] < most:
                    anything -= 1
                else:
                    continue
                self.seen.update(keys)
                self.vain[answer] = 0
                self.given[answer] += 1
                kept[answer] += 1
                missing -= 1
                taken.append(row)
            in_vain = 0 if taken else in_vain + len(drawn.keys)
            if in_vain > patience:
                if not due.total():
                    raise Exhausted
                # nothing in a long while: rows due with answers that seem used up take any other
                in_vain = 0
                anything += due.total()
                due.clear()
            yield drawn, taken
            if not missing:
                return


SPLITS = ("train", "validation", "test")
_DRAWN = ("test", "validation", "train")
"""In this order, so that what is tested does not depend on how much is trained on."""
_BATCH_TOKENS = 1 << 20
_MOST_BATCH = 1024

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """Rows of `source` per split."""

    source: Source
    splits: dict[str, int]
    seed: int
    progress: Progress | None = None
    distinct: Distinct = field(default_factory=Distinct, repr=False)

    @property
    def rows(self) -> int:
        return sum(self.splits.values())

    def drawn(self) -> Iterator[tuple[str, Iterator[Rows]]]:
        """Each split with its rows; use one up before the next. SizeError: too few instances."""
        for name in _DRAWN:
            if name in self.splits:
                yield name, self._rendered(name)

    def _rendered(self, split: str) -> Iterator[Rows]:
        rng = np.random.default_rng((self.seed, _DRAWN.index(split)))
        batch = max(1, min(_MOST_BATCH, _BATCH_TOKENS // self.source.length))
        draws = (self.source.draw(batch, rng) for _ in count())
        try:
            for drawn, kept in self.distinct.chosen(draws, self.splits[split], self.source.share):
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
