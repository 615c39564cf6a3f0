"""The draws of an export: every split has its own stream of the seed, in batches whose size
depends on the length of a row only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from separatrix.core.errors import SizeError
from separatrix.tasks.exports.distinct import Distinct, Exhausted
from separatrix.tasks.exports.source import Drawn, Rows, Source

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
            raise self._too_few() from None

    def _kept(self, split: str) -> Iterator[tuple[Drawn, list[int]]]:
        rng = np.random.default_rng((self.seed, _DRAWN.index(split)))
        batch = max(1, min(_MOST_BATCH, _BATCH_TOKENS // self.source.length))
        selection = self.distinct.split(self.splits[split], self.source.share)
        while selection.missing:
            drawn = self.source.draw(batch, rng)
            yield drawn, selection.take(drawn.keys, drawn.answers)

    def _too_few(self) -> SizeError:
        low = 0
        high = self.rows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._smaller(middle)._fits() else (low, middle)
        rows = " ".join(f"--{name} {count}" for name, count in self._smaller(low).splits.items())
        return SizeError(
            f"{self.source.task.spec}: there are no {self.rows:,} different instances with answers"
            f" as frequent as they are drawn; ask for at most {low:,} in"
            f" all{f', such as {rows},' if low else ''} or choose larger sizes"
        )

    def _smaller(self, rows: int) -> Job:
        """The same splits, in about the same ratio, with `rows` rows in all."""
        # sums are rounded, not parts, so that the parts add up to `rows`
        bounds = np.cumsum([0, *self.splits.values()]) * rows // self.rows
        return Job(
            self.source,
            {
                name: int(count)
                for name, count in zip(self.splits, np.diff(bounds), strict=True)
                if count
            },
            self.seed,
        )

    def _fits(self) -> bool:
        try:
            for name in _DRAWN:
                if name in self.splits:
                    for _ in self._kept(name):
                        pass
        except Exhausted:
            return False
        return True
