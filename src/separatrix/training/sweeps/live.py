"""A sweep as it goes on: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from separatrix.core.document.cells import accuracy, duration
from separatrix.core.progress import shortened
from separatrix.training.sweeps.snapshot import Line, Snapshot

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Told = Callable[[Snapshot], None]
EVERY = 20.0
"""Seconds between two lines where there is no terminal."""
HINT = "Ctrl-C saves and stops; the same command goes on"
BAR = 16
OTHER_LINES = 5
"""Lines of a terminal that the table leaves to what stands around it."""


@contextmanager
def watching(title: str, *, shown: bool) -> Iterator[Told | None]:
    """What a sweep tells its snapshots to; writes to stderr. None unless `shown`."""
    if not shown:
        yield None
    elif sys.stderr.isatty():
        with _table(title) as told:
            yield told
    else:
        yield _now_and_then(title)


def headline(title: str, snapshot: Snapshot) -> str:
    """Counts, pace and time left in one line."""
    ended = snapshot.done + snapshot.diverged + snapshot.failed
    parts = [f"{title}: {ended:,}/{snapshot.total:,} runs"]
    for count, word in (
        (snapshot.running, "running"),
        (snapshot.elsewhere, "elsewhere"),
        (snapshot.diverged, "diverged"),
        (snapshot.failed, "failed"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    if snapshot.rate:
        parts.append(f"{snapshot.rate:,.0f} model-steps/s")
    if snapshot.left:
        parts.append(f"about {duration(snapshot.left)} left")
    return "   ".join(parts)


def _now_and_then(title: str) -> Told:
    said = time.monotonic()
    ended = False

    def told(snapshot: Snapshot) -> None:
        nonlocal said, ended
        for line in snapshot.lines:
            print(f"{title}: {line}", file=sys.stderr, flush=True)
        now = time.monotonic()
        over = not (snapshot.waiting or snapshot.running or snapshot.elsewhere)
        if (over and not ended) or now - said >= EVERY:
            said = now
            ended = over
            best = f"   best run {_best(snapshot.best)}" if snapshot.best else ""
            print(f"{headline(title, snapshot)}{best}", file=sys.stderr, flush=True)

    return told


@contextmanager
def _table(title: str) -> Iterator[Told]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def told(snapshot: Snapshot) -> None:
            for line in snapshot.lines:
                live.console.print(f"{title}: {line}", markup=False)
            live.update(drawn(title, snapshot, console), refresh=True)

        yield told


def drawn(title: str, snapshot: Snapshot, console: Console) -> RenderableType:
    """The headline with a bar, and the cells: those being trained first, as many as there is room
    for.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    ended = snapshot.done + snapshot.diverged + snapshot.failed
    full = round(BAR * ended / max(1, snapshot.total))
    bar = "#" * full + "-" * (BAR - full)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("cell", "runs", "now", "best", "at rate"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    room = max(1, console.height - OTHER_LINES)
    lines = sorted(snapshot.cells, key=_urgency)
    for line in lines[:room]:
        table.add_row(
            Text(line.label),
            f"{line.ended}/{line.total}",
            _now(line),
            accuracy(line.right, line.due),
            "" if line.rate is None else f"{line.rate:g}",
        )
    hidden = len(lines) - room
    more = [Text(f"{hidden:,} cell{'s' * (hidden > 1)} more")] if hidden > 0 else []
    head = Text(f"{bar}  {headline(shortened(title), snapshot)}")
    return Group(head, table, *more, Text(HINT, style="dim"))


def _urgency(line: Line) -> tuple[bool, float]:
    """Cells being trained stand first, then those with results, the best of them first."""
    return (not line.running, -line.best)


def _now(line: Line) -> str:
    if not line.running:
        return ""
    right = "" if line.accuracy is None else f", {line.accuracy:.0%}"
    return f"{line.running} at step {line.step:,}{right}"


def _best(line: Line) -> str:
    return f"{accuracy(line.right, line.due)} ({line.label})"
