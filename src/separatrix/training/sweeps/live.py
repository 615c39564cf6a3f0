"""A sweep as it goes on, for those who watch it: what the store says of its runs at one moment, the
pace and the time left; a live table on a terminal, a line now and then elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from separatrix.core import progress
from separatrix.core.document.cells import accuracy, duration
from separatrix.core.progress import HINT, shortened
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, cost
from separatrix.training.sweeps.cells import cells, label, varied
from separatrix.training.sweeps.schema import ENDED, RUNNING
from separatrix.training.sweeps.store import Store

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Line(NamedTuple):
    """A cell at one moment."""

    label: str
    total: int = 0
    ended: int = 0
    running: int = 0
    """Of all processes on the store."""
    step: int = 0
    """The furthest of those being trained."""
    right: int | None = None
    """Right answers of the best ended run, of `due` in fresh instances."""
    due: int | None = None

    @property
    def best(self) -> float:
        """The accuracy of that run; below any other where there is none."""
        return -1.0 if self.right is None or not self.due else self.right / self.due


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
    cells: tuple[Line, ...]

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
        found = cells(runs)
        names = varied(found)
        self._store = store
        self._owner = owner
        self._keys = [run.key for members in found.values() for run in members]
        numbers = store.cells(self._keys)
        self._labels = {numbers[own[0].key]: label(cell, names) for cell, own in found.items()}
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
        found, best = self._store.standing(self._keys, self._owner)
        steps, left = 0, 0.0
        counts: Counter[str] = Counter()
        lines = {number: Line(name) for number, name in self._labels.items()}
        for cell, word, many, done, furthest, share in found:
            line, going = lines[cell], word in (RUNNING, "elsewhere")
            counts[word] += many
            steps += done
            left += 0.0 if word in ENDED else self._costs.get(cell, 0.0) * share
            lines[cell] = line._replace(
                total=line.total + many,
                ended=line.ended + many * (word in ENDED),
                running=line.running + many * going,
                step=max(line.step, furthest * going),
            )
        for cell, (right, due) in best.items():
            lines[cell] = lines[cell]._replace(right=right, due=due)
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
            cells=tuple(lines.values()),
        )


Told = Callable[[Snapshot], None]
BAR = 16
OTHER_LINES = 5
"""Lines of a terminal that the table leaves to what stands around it."""


@contextmanager
def watching(title: str, *, shown: bool) -> Iterator[Told | None]:
    """What a sweep tells its snapshots to; writes to stderr. None unless `shown`."""
    if not shown:
        yield None
        return
    if not sys.stderr.isatty():
        with progress.told(title) as say:

            def now_and_then(snapshot: Snapshot) -> None:
                for line in snapshot.lines:
                    print(f"{title}: {line}", file=sys.stderr, flush=True)
                say(snapshot.ended, snapshot.total, [headline(snapshot)])

            yield now_and_then
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def told(snapshot: Snapshot) -> None:
            for line in snapshot.lines:
                live.console.print(f"{title}: {line}", markup=False)
            live.update(drawn(title, snapshot, console), refresh=True)

        yield told


def headline(snapshot: Snapshot) -> str:
    """Counts, pace and time left in one line."""
    parts = [f"{snapshot.ended:,}/{snapshot.total:,} runs"]
    for word in ("running", "elsewhere", "diverged", "failed"):
        if count := snapshot.counts.get(word):
            parts.append(f"{count:,} {word}")
    if snapshot.rate:
        parts.append(f"{snapshot.rate:,.0f} model-steps/s")
    if snapshot.left:
        parts.append(f"about {duration(snapshot.left)} left")
    return "   ".join(parts)


def drawn(title: str, snapshot: Snapshot, console: Console) -> RenderableType:
    """The headline with a bar, and the cells: those being trained first, as many as there is room
    for.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    full = round(BAR * snapshot.ended / max(1, snapshot.total))
    bar = "#" * full + "-" * (BAR - full)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("cell", "runs", "now", "best"):
        # where there is too little room, the name is cut, and no number
        table.add_column(heading, no_wrap=heading != "cell")
    room = max(1, console.height - OTHER_LINES)
    # those being trained first, then those with results, the best of them first
    lines = sorted(snapshot.cells, key=lambda line: (not line.running, -line.best))
    for line in lines[:room]:
        table.add_row(
            Text(line.label, no_wrap=True, overflow="ellipsis"),
            f"{line.ended}/{line.total}",
            f"{line.running} at step {line.step:,}" if line.running else "",
            accuracy(line.right, line.due),
        )
    hidden = len(lines) - room
    more = [Text(f"{hidden:,} cell{'s' * (hidden > 1)} more")] if hidden > 0 else []
    head = Text(f"{bar}  {shortened(title)}: {headline(snapshot)}")
    return Group(head, table, *more, Text(HINT, style="dim"))
