"""Packs: runs of equal shape that one process trains together; what goes to whoever trains one for
a while, and what comes back: plain data that travels between processes. Needs no torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from separatrix.core.errors import SizeError
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.labels import most_asked

if TYPE_CHECKING:
    from separatrix.core.evidence.outcome import Outcome


CPU_NUMBERS = 4096 * 128
"""Numbers of a layer, over all members, from which on more members do not pay on a CPU: 16 members
of width 32 on 16 tokens with 64 prompts train 2.8 times as many steps in all as one at a time (8
members 2.5 times), 4 of them on 64 tokens 1.3 times, 4 of width 64 on 64 tokens 1.06 times.
"""
CUDA_NUMBERS = CPU_NUMBERS * 256
"""The same on a GPU, estimated: 64 members of width 64 on 256 tokens with 128 prompts."""
MOST_MEMBERS = {"cpu": 16, "cuda": 64}


@dataclass(frozen=True)
class Pack:
    """Runs of equal shape, in the order in which their weights are stacked. Raises SizeError for
    none, for one that stands twice, and for unequal shapes.
    """

    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise SizeError("a pack has no runs; it takes at least one")
        if len({run.key for run in self.runs}) < len(self.runs):
            raise SizeError("a run stands twice in one pack; each has one model of its own")
        if len({run.shape for run in self.runs}) > 1:
            raise SizeError(
                "the runs of a pack differ in more than seed, learning rate and weight decay;"
                " `packed(runs)` sorts them into packs"
            )

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The runs' keys, in order."""
        return tuple(run.key for run in self.runs)

    @cached_property
    def key(self) -> str:
        """What names this pack everywhere: its runs in this order."""
        return sha256("\n".join(self.keys).encode()).hexdigest()

    def halves(self) -> tuple[Pack, Pack]:
        """Two packs of half the members. Raises SizeError for a pack of one."""
        middle = len(self.runs) // 2
        return Pack(self.runs[:middle]), Pack(self.runs[middle:])


def members_for(run: Run, device: str = "cpu") -> int:
    """How many models of this shape one process trains together at its quickest: several where a
    step's overhead costs more than its numbers.
    """
    kind = "cuda" if device.startswith("cuda") else "cpu"
    numbers = CUDA_NUMBERS if kind == "cuda" else CPU_NUMBERS
    task = run.trained
    # of a task that asks in many places, logits may be more than a layer's numbers
    prompt = max(run.length * run.width, most_asked(task) * task.answers if task.several else 0)
    return min(MOST_MEMBERS[kind], max(1, numbers // (run.batch * prompt)))


def packed(
    runs: Iterable[Run], most: int | None = None, *, device: str = "cpu", least: int = 1
) -> list[Pack]:
    """Runs as packs of `most` members at most, in the order of the runs; without `most`, as many
    as `members_for` says. Runs of one shape are shared evenly among their packs.

    With fewer than `least` packs, the largest are halved: so that no process stands idle. The same
    runs give the same packs. Raises SizeError for `most` below 1.
    """
    if most is not None and most < 1:
        raise SizeError(f"a pack of at most {most} members; it must be at least 1")
    shapes: dict[Run, dict[str, Run]] = defaultdict(dict)
    for run in runs:
        # a run that stands twice is trained once
        shapes[run.shape].setdefault(run.key, run)
    packs = [
        Pack(part)
        for shape, members in shapes.items()
        for part in _shared(tuple(members.values()), most or members_for(shape, device))
    ]
    return _at_least(packs, least)


def remaining(
    runs: Sequence[Run],
    ended: Collection[str],
    begun: Sequence[Pack],
    *,
    most: int | None = None,
    device: str = "cpu",
    least: int = 1,
) -> list[Pack]:
    """The packs of a sweep that are still to do, whatever is done already.

    `ended` are keys of runs that have ended, `begun` the packs with a checkpoint. Those come first
    and stay as they are: a checkpoint belongs to exactly one pack. Then come the packs of the
    whole sweep of which nothing is done, and then the runs left, packed together.
    """
    wanted = {run.key for run in runs}.difference(ended)
    going = [pack for pack in begun if wanted.intersection(pack.keys)]
    taken = set(ended).union(*(pack.keys for pack in going))
    whole = packed(runs, most, device=device, least=least)
    untouched = [pack for pack in whole if taken.isdisjoint(pack.keys)]
    rest = [
        run
        for pack in whole
        if not taken.isdisjoint(pack.keys)
        for run in pack.runs
        if run.key not in taken
    ]
    return [*going, *untouched, *packed(rest, most, device=device)]


def _shared(members: tuple[Run, ...], most: int) -> list[tuple[Run, ...]]:
    """As few parts as have at most `most` members, of sizes that differ by one at most."""
    parts = ceil(len(members) / most)
    cuts = [len(members) * number // parts for number in range(parts + 1)]
    return [members[start:end] for start, end in pairwise(cuts)]


def _at_least(packs: list[Pack], least: int) -> list[Pack]:
    while len(packs) < least and any(len(pack.runs) > 1 for pack in packs):
        # the first of the largest
        number = max(range(len(packs)), key=lambda place: len(packs[place].runs))
        packs[number : number + 1] = packs[number].halves()
    return packs


@dataclass(frozen=True)
class Metric:
    """How one run stands after a step: means over the steps since the metric before."""

    key: str
    """The run's."""
    step: int
    loss: float
    accuracy: float
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A piece of a pack's training: from a checkpoint on, for some seconds."""

    pack: Pack
    checkpoint: bytes | None
    """None at the start."""
    seconds: float
    """Most seconds of training; some steps are done in any case."""
    device: str = "cpu"
    imports: tuple[str, ...] = ()
    """Modules to import first, which register mechanisms of one's own."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What a slice gave."""

    metrics: tuple[Metric, ...]
    finished: tuple[tuple[str, Outcome], ...]
    """The runs that ended in this slice, by key."""
    checkpoint: bytes | None
    """Where to go on; None once every run has ended."""
    step: int
    """Steps done since the pack's start."""
    seconds: float
    """What this slice took."""


BACKWARD = 3
"""A step computes forward and backward, and backward costs twice as much."""
PER_STEP = 2e8
"""Operations in the time that a step takes on a CPU whatever its size (about a millisecond)."""
MATRICES = 4
"""Matrices of width times inner width in a mixer."""


def cost(pack: Pack) -> float:
    """Floating-point operations of all its steps, estimated from the sizes: early stops unknown."""
    run = pack.runs[0]
    step = operations(run.architecture, run.task, run.length, run.width, run.hidden)
    return run.steps * (PER_STEP + len(pack.runs) * run.batch * BACKWARD * step)


@lru_cache(maxsize=4096)
def operations(architecture: str, task: str, length: int, width: int, hidden: int) -> float:
    """Of the forward pass on one prompt of `length` tokens, its last layer counted in full."""
    total = 0.0
    for layer, times in Architecture.parse(architecture).counted():
        matrices = 2 * width * hidden + sum(MATRICES * width * part.inner_width for part in layer)
        # a token in the middle costs what they cost on average
        mixing = sum(part.flops(length // 2 + 1) for part in layer if part.mixes_tokens)
        total += times * length * (2 * matrices + mixing)
    asking = parse_task(task)
    return total + 2 * width * most_asked(asking) * asking.answers
