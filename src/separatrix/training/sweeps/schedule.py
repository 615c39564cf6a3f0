"""The scheduler: brings every run of a sweep to its end, whatever happens to workers or to itself.

All that counts is in the store. A pack is claimed there before it is trained; what a slice gave is
written there in one transaction, with the checkpoint to go on from; and what is lost on the way is
computed again from there. Killed at any moment, a sweep has lost at most the slices that ran.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from separatrix.core.errors import ClaimLost, StoreError
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Slice, Update, cost
from separatrix.training.sweeps.engines.base import Engine, Failed, Lost
from separatrix.training.sweeps.live import Snapshot, Told, Watch
from separatrix.training.sweeps.processes import Stopping
from separatrix.training.sweeps.store import Store

LOSSES = 5
"""A slice whose worker died is submitted again, this many times in a row without progress."""
FIRST_SLICE = 1.0
"""Seconds of a pack's first slice, so that something is seen soon; the next is twice as long."""
FEW = 25
"""So many workers may have slices as short as they like: the store keeps up."""
SHARE = 0.04
"""Seconds of a slice for each worker more: writing an update takes a part of that."""
LOOK = 0.2
"""Seconds between two looks whether somebody wants it to stop."""
POLL = 2.0
"""Seconds between two looks at what other processes hold, when there is nothing else to do."""
TELL = 0.25
MOMENT = 0.5
"""Seconds that slices have to come back when the sweep is stopped; the others are dropped."""


def run_sweep(
    store: Store,
    packs: Sequence[Pack],
    engine: Engine,
    *,
    owner: str,
    slice_seconds: float = 20.0,
    told: Told | None = None,
    imports: Sequence[str] = (),
    watched: Sequence[Run] = (),
) -> Snapshot:
    """Trains every run of `packs` that has not ended, in slices of about `slice_seconds`, and
    returns when each has: also those that another process on the same store holds. `told` hears of
    the runs `watched`, or else of those of `packs`.

    A run whose work raises, or that loses LOSSES + 1 workers in a row, is marked failed. Ctrl-C
    and SIGTERM release what is claimed and raise KeyboardInterrupt, or SystemExit. Raises
    StoreError where the store cannot be written any more, and what the engine raises.
    """
    watch = Watch(store, packs, owner, watched or [run for pack in packs for run in pack.runs])
    with Stopping() as stopping:
        sweep = _Sweep(store, engine, owner, watch, slice_seconds, told, tuple(imports))
        # the longest first, so that the end is not one long run
        sweep.queue += sorted(packs, key=cost, reverse=True)
        try:
            sweep.go_on(stopping)
            sweep.wait_a_moment()
        except BaseException:
            with suppress(StoreError):
                store.release(owner)
            raise
        store.release(owner)
        last = watch.snapshot()
        if told is not None:
            told(last)
        stopping.heed()
        return last


@dataclass(frozen=True, eq=False, kw_only=True)
class _Job:
    """A pack that is claimed, and how far it is."""

    pack: Pack
    held: frozenset[str]
    """Members that this scheduler holds and that have not ended."""
    checkpoint: bytes | None = None
    seconds: float = FIRST_SLICE
    losses: int = 0
    found: bool = False
    """Whether its checkpoint was found in the store and has not been gone on with yet."""


@dataclass(eq=False)
class _Sweep:
    store: Store
    engine: Engine
    owner: str
    watch: Watch
    slice_seconds: float
    told: Told | None
    imports: tuple[str, ...]
    queue: deque[Pack] = field(default_factory=deque)
    ready: deque[_Job] = field(default_factory=deque)
    going: dict[int, _Job] = field(default_factory=dict)
    elsewhere: list[Pack] = field(default_factory=list)
    """Runs that were not to be had, and that had not ended: they are tried again."""
    next: dict[str, float] = field(default_factory=dict)
    """When what is done now and then is due again."""

    def go_on(self, stopping: Stopping) -> None:
        """Until every run has ended or somebody wants it to stop."""
        while not stopping.asked:
            self.fill()
            if not (self.going or self.ready or self.queue or self.elsewhere):
                return
            for ticket, result in self.engine.wait(LOOK):
                job = self.going.pop(ticket)
                match result:
                    case Update():
                        self.advance(job, result)
                    case Failed():
                        self.give_up(job, result.error)
                    case Lost():
                        self.repeat(job, result.reason)
            self.now_and_then()

    def wait_a_moment(self) -> None:
        """Takes what comes back within a moment; the rest is dropped."""
        end = time.monotonic() + MOMENT
        while self.going and (left := end - time.monotonic()) > 0:
            for ticket, result in self.engine.wait(left):
                job = self.going.pop(ticket)
                if isinstance(result, Update):
                    self.advance(job, result)

    def now_and_then(self) -> None:
        """What is due: a look at what others hold, a snapshot."""
        for line in self.engine.said():
            self.watch.said(line)
        if self.due("poll", POLL):
            # it may have ended by now, or be free again
            self.queue += self.elsewhere
            self.elsewhere.clear()
        if self.told is not None and self.due("tell", TELL):
            began = time.monotonic()
            snapshot = self.watch.snapshot()
            # of many runs less often, so that it takes a twentieth of the time
            taken = time.monotonic() - began
            self.next["tell"] = began + TELL * max(1.0, 20 * taken / 0.25)
            self.told(snapshot)

    def due(self, what: str, every: float) -> bool:
        now = time.monotonic()
        if now < self.next.get(what, 0.0):
            return False
        self.next[what] = now + every
        return True

    # ---- what is computed next

    def fill(self) -> None:
        """Gives every worker something to do: what is claimed already, or else what can be claimed
        of the packs that wait.
        """
        while len(self.going) < self.engine.workers:
            while not self.ready and self.queue:
                self.claim(self.queue.popleft())
            if not self.ready:
                return
            job = self.ready.popleft()
            piece = Slice(
                pack=job.pack,
                checkpoint=job.checkpoint,
                seconds=slice_length(min(job.seconds, self.slice_seconds), self.engine.workers),
                imports=self.imports,
            )
            self.going[self.engine.submit(piece)] = job

    def claim(self, pack: Pack) -> None:
        """Takes those runs of a pack that nobody else trains and that have not ended. Where a
        checkpoint tells of another pack that some of them were in, that one goes on.
        """
        live = [*self.ready, *self.going.values()]
        # others held members of a job's pack for a while: they wait until that pack has ended,
        # which has left them behind
        busy = frozenset[str]().union(*(job.pack.keys for job in live))
        keys, found = self.store.take_up([key for key in pack.keys if key not in busy], self.owner)
        rest = frozenset(keys)
        for begun in found:
            if held := frozenset(begun.held) - busy:
                job = _Job(pack=begun.pack, held=held, checkpoint=begun.checkpoint, found=True)
                self.ready.append(job)
                rest -= held
        if rest:
            self.ready.append(_fresh(pack, rest))
        mine = frozenset(keys).union(*(job.held for job in live))
        others = [key for key in pack.keys if key not in mine]
        # others train those that have not ended
        if still := frozenset(others) - self.store.ended(others):
            self.elsewhere.append(_part(pack, still))

    # ---- what came back

    def advance(self, job: _Job, update: Update) -> None:
        if not self.tells(job, update):
            return
        held = job.held.difference(key for key, _ in update.finished)
        if held and update.checkpoint is not None:
            seconds = min(2 * job.seconds, self.slice_seconds)
            next = _Job(pack=job.pack, held=held, checkpoint=update.checkpoint, seconds=seconds)
            self.ready.appendleft(next)
        elif held:
            # its checkpoint says that they had ended, and the store does not
            self.ready.append(_fresh(job.pack, held))

    def repeat(self, job: _Job, reason: str) -> None:
        """Again from the last checkpoint; not for ever, since it may be the pack that kills."""
        times = job.losses + 1
        # what is told early cannot be lost
        again = replace(job, losses=times, seconds=FIRST_SLICE)
        if times > LOSSES:
            self.give_up(again, f"{reason}; {times} times in a row without progress")
            return
        self.watch.said(f"{reason}; its slice is computed again ({times} of {LOSSES})")
        self.ready.append(again)

    def give_up(self, job: _Job, error: str) -> None:
        """A run is marked failed. Of several, the halves are tried alone, so that one bad run does
        not take others with it, and a device's memory may do for them; and what cannot go on from
        a checkpoint starts again.
        """
        if len(job.held) == 1 == len(job.pack.runs) and not job.found:
            try:
                self.store.fail([*job.held], error, self.owner)
                self.watch.said(f"failed: {error}")
            except ClaimLost as lost:
                self.leave(job, lost)
            return
        # a checkpoint of the whole serves no part of it
        nothing = Update(metrics=(), finished=(), checkpoint=None, step=0, seconds=0.0)
        if not self.tells(job, nothing):
            return
        rest = _part(job.pack, job.held)
        parts = (rest,) if job.found or len(rest.runs) == 1 else rest.halves()
        what = f"a pack of {len(job.pack.runs)}" if len(job.pack.runs) > 1 else "a run"
        again = "starts again" if len(parts) == 1 else "starts again as two"
        self.watch.said(f"{what} {again}: {error}")
        for part in parts:
            fresh = _fresh(part, frozenset(part.keys))
            self.ready.append(replace(fresh, losses=min(job.losses, LOSSES - 1)))

    def tells(self, job: _Job, update: Update) -> bool:
        """Whether the store took what came back; a pack is left to whoever has claimed it."""
        try:
            self.store.tell(job.pack, _of(update, job.held), self.owner)
        except ClaimLost as lost:
            self.leave(job, lost)
            return False
        return True

    def leave(self, job: _Job, why: ClaimLost) -> None:
        self.watch.said(str(why))
        self.elsewhere.append(_part(job.pack, job.held))


def slice_length(seconds: float, workers: int) -> float:
    """The length of a slice that should take so long: more, where so many workers would keep the
    scheduler busier than it can be.
    """
    return max(seconds, SHARE * (workers - FEW))


def _fresh(pack: Pack, held: frozenset[str]) -> _Job:
    """A job for some members of a pack, from their first step on."""
    return _Job(pack=_part(pack, held), held=held)


def _part(pack: Pack, keys: frozenset[str]) -> Pack:
    """The pack of these members."""
    if len(keys) == len(pack.keys):
        return pack
    return Pack(tuple(run for run in pack.runs if run.key in keys))


def _of(update: Update, held: frozenset[str]) -> Update:
    """What an update says of the members held; without a checkpoint when all have ended."""
    finished = tuple(one for one in update.finished if one[0] in held)
    return replace(
        update,
        metrics=tuple(metric for metric in update.metrics if metric.key in held),
        finished=finished,
        checkpoint=update.checkpoint if held - {key for key, _ in finished} else None,
    )
