"""A sweep as it goes on, for those who watch it: what the store says of its runs at one moment, the
pace and the time left, in a line.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from separatrix.core import progress
from separatrix.core.document.cells import duration
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, cost
from separatrix.training.sweeps.schema import ENDED
from separatrix.training.sweeps.store import Store


class Snapshot(NamedTuple):
    """A sweep at one moment."""

    counts: Mapping[str, int]
    """Of runs, each under one word: its status, or "elsewhere", claimed by another process."""
    steps: int
    """Model-steps since the start, whoever computed them: steps, summed over models."""
    rate: float
    """Model-steps per second."""
    left: float | None
    """Seconds left at the pace so far; None while there is none."""
    lines: tuple[str, ...]
    """What happened since the last snapshot, such as a worker that was lost."""
    solved: int
    """Runs that are done and right on almost all answers."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(self.counts.get(word, 0) for word in ENDED)


class Watch:
    """Looks at some runs of a store again and again."""

    def __init__(
        self, store: Store, packs: Sequence[Pack], owner: str, runs: Iterable[Run]
    ) -> None:
        """`packs` are still to train, and `runs` are watched."""
        self._store = store
        self._owner = owner
        self._keys = [run.key for run in runs]
        numbers = store.cells(self._keys)
        self._costs = {
            numbers[key]: cost(pack) / len(pack.keys) for pack in packs for key in pack.keys
        }
        """Of a run of a cell."""
        self._said: list[str] = []
        self._start = time.monotonic()
        self._before: tuple[int, float] | None = None
        """Steps that were done at the start, and what was to do."""
        self.snapshot()

    def said(self, line: str) -> None:
        """Keeps a line for the next snapshot."""
        self._said.append(line)

    def snapshot(self) -> Snapshot:
        """How it stands now."""
        steps, left, solved = 0, 0.0, 0
        counts: Counter[str] = Counter()
        for cell, word, many, done, share, right in self._store.standing(self._keys, self._owner):
            counts[word] += many
            steps += done
            left += 0.0 if word in ENDED else self._costs.get(cell, 0.0) * share
            solved += right
        said, self._said = tuple(self._said), []
        before, to_do = self._before = self._before or (steps, left)
        spent, did = time.monotonic() - self._start, to_do - left
        # at the pace so far, as if others stopped as early as those that are done
        longer = spent / did * left if did > 0 else None
        return Snapshot(
            counts=counts,
            steps=steps - before,
            # a run that is tried again begins anew
            rate=max(0, steps - before) / spent if spent else 0.0,
            left=longer if left else 0.0,
            lines=said,
            solved=solved,
        )


Told = Callable[[Snapshot], None]


@contextmanager
def watching(title: str, *, shown: bool) -> Iterator[Told | None]:
    """What a sweep tells its snapshots to: a line at the foot of a terminal, elsewhere one now and
    then, on stderr. None unless `shown`.
    """
    if not shown:
        yield None
        return
    with progress.told(progress.shortened(title), hint=progress.HINT) as say:

        def told(snapshot: Snapshot) -> None:
            for line in snapshot.lines:
                print(f"{title}: {line}", file=sys.stderr, flush=True)
            say(snapshot.ended, snapshot.total, headline(snapshot))

        yield told


def headline(snapshot: Snapshot) -> list[str]:
    """Counts, time left and pace, what matters most first: a narrow terminal cuts the end."""
    parts = [f"{snapshot.ended:,}/{snapshot.total:,} runs"]
    if snapshot.left:
        parts.append(f"about {duration(snapshot.left)} left")
    counts = {**snapshot.counts, "solved": snapshot.solved}
    for word in ("solved", "running", "elsewhere", "diverged", "failed"):
        if count := counts.get(word):
            parts.append(f"{count:,} {word}")
    if snapshot.rate:
        parts.append(f"{snapshot.rate:,.0f} model-steps/s")
    return parts
