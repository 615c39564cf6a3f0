"""How a sweep stands, for those who watch it: counts, pace and time left."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from separatrix.training.packs import Pack
from separatrix.training.slices import Metric, Update
from separatrix.training.sweeps.costs import cost

WINDOW = 60.0
"""Seconds over which the pace is averaged."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A pack that is being trained."""

    pack: Pack
    step: int
    metrics: tuple[Metric, ...]
    """The newest of each member that still trains."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A sweep at one moment. Runs are counted, and each stands under one word."""

    total: int
    waiting: int
    running: int
    elsewhere: int
    """Being trained by another process on the same store."""
    done: int
    diverged: int
    failed: int
    steps: int
    """Model-steps that this process has had computed: steps, summed over models."""
    rate: float
    """Model-steps per second, over the last minute."""
    left: float | None
    """Seconds left at the pace so far; None while there is none."""
    seconds: float
    """Since the start."""
    packs: tuple[Standing, ...]
    lines: tuple[str, ...]
    """What happened since the last snapshot, such as a worker that was lost."""


class Tally:
    """Counts what comes back, and makes snapshots of it."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._costs = {key: cost(pack) / len(pack.keys) for pack in packs for key in pack.keys}
        self._to_do = sum(self._costs.values())
        self._computed = 0.0
        """Cost of what this process has had computed; runs that stopped early count in full."""
        self._share: dict[str, float] = {}
        """How much of a run is done, from 0 to 1."""
        self._ended: dict[str, str] = {}
        self._newest: dict[str, Metric] = {}
        self._lines: list[str] = []
        self._start = time.monotonic()
        self._steps = 0
        self._paces: deque[tuple[float, int]] = deque()

    def said(self, line: str) -> None:
        """Keeps a line for the next snapshot."""
        self._lines.append(line)

    def ended(self, key: str, status: str, *, here: bool = True) -> None:
        """A run ended: computed here, or found so."""
        if key in self._costs and key not in self._ended:
            self._credit(key, 1.0, here=here)
            self._ended[key] = status
        self._newest.pop(key, None)

    def found(self, pack: Pack, keys: Iterable[str], step: int) -> None:
        """Members of a pack go on from a step that somebody else reached."""
        for key in keys:
            self._credit(key, step / pack.runs[0].steps, here=False)

    def heard(self, pack: Pack, keys: Iterable[str], update: Update, since: int) -> None:
        """An update of some members of a pack that stood at step `since`."""
        outcomes = dict(update.finished)
        self._newest |= {metric.key: metric for metric in update.metrics}
        steps = 0
        for key in keys:
            step = outcomes[key].steps_done if key in outcomes else update.step
            self._credit(key, step / pack.runs[0].steps, here=True)
            steps += max(0, step - since)
        for key, outcome in update.finished:
            self.ended(key, outcome.status)
        self._steps += steps
        self._paces.append((time.monotonic(), steps))

    def snapshot(self, running: Mapping[Pack, tuple[int, set[str]]], elsewhere: int) -> Snapshot:
        """How it stands, with the packs being trained, each with its step and its open runs."""
        now = time.monotonic()
        counts = Counter(self._ended.values())
        going = sum(key in self._costs for _, keys in running.values() for key in keys)
        lines = tuple(self._lines)
        self._lines.clear()
        return Snapshot(
            total=len(self._costs),
            waiting=len(self._costs) - len(self._ended) - going - elsewhere,
            running=going,
            elsewhere=elsewhere,
            done=counts["done"],
            diverged=counts["diverged"],
            failed=counts["failed"],
            steps=self._steps,
            rate=self._rate(now),
            left=self._left(now),
            seconds=now - self._start,
            packs=tuple(
                Standing(
                    pack=pack,
                    step=step,
                    metrics=tuple(self._newest[key] for key in pack.keys if key in self._newest),
                )
                for pack, (step, _) in running.items()
            ),
            lines=lines,
        )

    def _credit(self, key: str, share: float, *, here: bool) -> None:
        amount = self._costs.get(key, 0.0) * (share - self._share.get(key, 0.0))
        self._share[key] = share
        self._to_do -= amount
        self._computed += amount if here else 0.0

    def _rate(self, now: float) -> float:
        while self._paces and self._paces[0][0] < now - WINDOW:
            self._paces.popleft()
        return sum(steps for _, steps in self._paces) / max(1e-9, min(WINDOW, now - self._start))

    def _left(self, now: float) -> float | None:
        """At the pace so far, as if others stopped as early as those that are done."""
        if len(self._ended) == len(self._costs):
            return 0.0
        if self._computed <= 0:
            return None
        return (now - self._start) / self._computed * max(0.0, self._to_do)
