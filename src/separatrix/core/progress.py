"""A progress bar with the time left, on stderr; silent when it is not wanted or stderr is no
terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Advance = Callable[[int, int], None]
"""What work calls with (done, total)."""
Told = Callable[[float, float, Sequence[str]], None]
"""The same with words for what stands beside the bar."""
HINT = "Ctrl-C saves and stops; the same command goes on"
EVERY = 20.0
"""Seconds between two lines where there is no terminal."""
_LONGEST_TITLE = 24
_WIDTH = 16
"""Columns of the bar itself; with the longest title and counts in millions, 80 are enough."""
_PAUSE = 0.1
"""Seconds between two changes of a bar; work may tell of its progress much more often."""


@contextmanager
def bar(title: str, *, shown: bool = True, unit: str = "") -> Iterator[Advance]:
    """A bar at the foot of the terminal, and a function to call with (done, total).

    Until the first call the bar moves to and fro, so that loading libraries is seen as well.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda done, total: None
        return
    from rich.progress import TextColumn, TimeRemainingColumn

    left = (TimeRemainingColumn(compact=True), TextColumn("left"))
    last = 0.0
    with _line(shortened(title), "", *left) as show:

        def advance(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if done >= total or now - last >= _PAUSE:
                last = now
                show(done, total, [f"{done:,}/{total:,}{unit}"])

        yield advance


@contextmanager
def told(title: str, *, shown: bool = True, hint: str = "") -> Iterator[Told]:
    """A line at the foot of a terminal under a hint, elsewhere a line now and then; and a function
    to call with what is done, of how much, and how it stands in words, the time left among them.
    """
    if not shown:
        yield lambda done, total, words: None
    elif not sys.stderr.isatty():
        last = time.monotonic()

        def say(done: float, total: float, words: Sequence[str]) -> None:
            nonlocal last
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                said = "  ".join(filter(None, words))
                print(f"{title}: {said}", file=sys.stderr, flush=True)

        yield say
    else:
        with _line(title, hint) as show:
            yield show


@contextmanager
def _line(title: str, hint: str, *more: ProgressColumn) -> Iterator[Told]:
    """A line of progress that fits 80 columns, under a hint: title, bar, words, `more`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    own = TextColumn("{task.description}", markup=False)
    columns = (own, BarColumn(bar_width=_WIDTH), TextColumn("{task.fields[words]}"), *more)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        if hint:
            shown.console.print(hint)
        task = shown.add_task(title, total=None, words="")

        def show(done: float, total: float, words: Sequence[str]) -> None:
            said = "  ".join(filter(None, words))
            shown.update(task, completed=done, total=total, words=said)

        yield show


def clock(seconds: float) -> str:
    """A duration as minutes and seconds, 3:12, and with hours from one hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def shortened(title: str) -> str:
    """A title that leaves room for the bar."""
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 3]}..."


def seconds_of(budget: float, advance: Advance) -> Advance:
    """A progress callback for work that a budget of seconds ends: it tells seconds, not steps."""
    start = time.monotonic()
    most = max(1, round(budget))

    def tell(done: int, total: int) -> None:
        advance(min(int(time.monotonic() - start), most), most)

    return tell
