"""Random protocols of Theorems VI and VII, honest and broken, played against their adversaries.

Sizes, choices, flags, functions and messages are drawn from one seed. They are tiny (m of 2 to 4, 3
or 4 functions of 2 to 8 entries), and messages are so rare, or so few have more than one value,
that something survives.

Seeds 0 to 99 (`python benchmarks/adversaries.py 100`): 1,261,590 assertions, none of which fails.
Of 612 broken plays in which a rule was broken before the adversary's eyes 548 were caught, 90 %;
docs/benchmarks.md has the shares by way and what is not caught.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2
from random import Random

from adversaries.broken import BREAKS, Broken
from adversaries.classes_of_z_1 import most_frequent_class, torn_class
from adversaries.ledger import Ledger, StepBroken
from adversaries.many_readings import ManyReadings, ManyReadingsSizes, Prefix
from adversaries.many_steps import Adversary
from adversaries.prices import Choice, Kind, Prices
from adversaries.vi_adversary import AdversaryVI
from adversaries.vii_adversary import AdversaryVII
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.protocols.collision import AdversaryFailed
from separatrix.protocols.one_reading import Entries
from separatrix.protocols.tables import Tables, skewed_tables

TORN = "torn class"
"""A break of the proof itself: contents of z_1 that do not lead to one state."""
SKIPPED = "skipped fixing"
"""Another: in one step no message of one kind is fixed."""
WAYS = (TORN, SKIPPED, *BREAKS)

SHAPES: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [
    # m, branching, how many z_L, ..., z_2 are tried
    (2, (1, 2), (128, 4)),
    (2, (2, 1), (128, 3)),
    (2, (2, 2), (96, 3)),
    (3, (1, 1), (27, 8)),
    (4, (1, 2), (64, 3)),
    (2, (1, 1, 2), (96, 3, 3)),
    (2, (1, 2, 1), (64, 3, 3)),
    (2, (1, 2, 2), (64, 3, 2)),
]
BITS = 4.0
"""About how many bits a play may fix; of messages that are mostly 0, what they say counts."""


@dataclass(frozen=True)
class Trial:
    """One draw."""

    sizes: ManyReadingsSizes
    choice: Choice
    functions: tuple[tuple[Entries, ...], ...]
    tables: Tables[int]


@dataclass(frozen=True)
class Outcome:
    """How a play ended: 'collision', 'caught' (by which law) or 'too little' survived; what was
    asserted up to there; whether a rule was ever broken in what was looked at.
    """

    end: str
    law: str
    asserted: int
    shown: bool


class Forgetful(Ledger):
    """In one step, drawn from a seed, keeps all prefixes where a message of one kind is fixed."""

    def __init__(self, prices: Prices, random: Random) -> None:
        super().__init__(prices)
        sizes = prices.sizes
        kinds: list[Kind] = [("read", j) for j in range(1, sizes.R + 1)]
        kinds += [("cache", j) for j in range(sizes.R + 1)]
        live = [kind for kind in kinds if prices.size(kind) > 1]
        self._skips = random.choice(live) if live else None
        self._in_step = random.randrange(1, sizes.L)
        self.shown = False

    def _keep(
        self, family: list[Prefix], kind: Kind, value: Callable[[Prefix], int]
    ) -> list[Prefix]:
        rest = super()._keep(family, kind, value)
        if kind != self._skips or len(self.steps) != self._in_step or len(rest) == len(family):
            return rest
        self.shown = True
        return family


def draw(seed: int) -> Trial:
    """A protocol's sizes and messages, and what its adversary tries."""
    random = Random(seed)
    m, branching, counts = random.choice(SHAPES)
    L = len(branching) + 1
    shift = random.randrange(2)
    t = random.randint(1, m)
    G = random.choice([G for G in (1, 2) if not (m % G or branching[1] % G)])
    choice = Choice(
        G=G,
        x=random.randint(1, min(t, 2)),
        contents=(random.choice((1, 2, 3)), *(random.choice((1, 2, 2)) for _ in range(2, L))),
        flags=tuple(random.randrange(2) for _ in range(2, L + 1)),
    )
    reads = tuple(random.choice((1, 2, 2, 3)) for _ in range(L - 1 + shift))
    caches = tuple(random.choice((1, 2, 2, 4)) for _ in range(L + shift))
    if shift:
        caches = (1, *caches[1:])
    sizes = ManyReadingsSizes(m=m, branching=branching, t=t, reads=reads, caches=caches)
    functions = tuple(
        _some(random, sizes.N[level - 1], count)
        for level, count in zip(range(L, 1, -1), counts, strict=True)
    )
    prices = Prices(sizes, choice)
    bits = 1 + log2(prices.values(prices.added(L - 1)) * prices.values(prices.start()))
    tables = skewed_tables(seed, min(1.0, BITS / bits), but=(f"cache {shift}",))
    return Trial(sizes, choice, functions, tables)


def _some(random: Random, n: int, count: int) -> tuple[Entries, ...]:
    """So many functions of [n] to itself, or all."""
    if n**n <= count:
        return tuple(product(range(n), repeat=n))
    found: dict[Entries, None] = {}
    while len(found) < count:
        found[tuple(random.randrange(n) for _ in range(n))] = None
    return tuple(found)


def play(seed: int, way: str | None = None) -> Outcome | None:
    """The adversary against the protocol of a seed, or against it broken in one of `WAYS`; None
    where this protocol has nothing to break in this way.
    """
    trial = draw(seed)
    broken: Broken | None = None
    if way in BREAKS:
        try:
            broken = BREAKS[way](trial.sizes, trial.tables, Random(seed))
        except SizeError:
            return None
    line = ManyReadings(trial.sizes, trial.tables) if broken is None else broken
    kind = AdversaryVII if trial.sizes.shift else AdversaryVI
    pick = torn_class if way == TORN else most_frequent_class
    adversary = kind(line, trial.choice, trial.functions, pick=pick)
    forgetful = Forgetful(adversary.prices, Random(seed))
    if way == SKIPPED:
        adversary.ledger = forgetful
    end, law = _end(adversary)
    shown = broken.shown if broken is not None else adversary.torn or forgetful.shown
    return Outcome(end, law, adversary.ledger.asserted.total(), shown)


def _end(adversary: Adversary) -> tuple[str, str]:
    try:
        adversary.play()
    except StepBroken as broken:
        return "caught", broken.law
    except CheckFailed:
        return "caught", "collision"
    except AdversaryFailed:
        return "too little", ""
    return "collision", ""


def plays(seeds: Sequence[int], way: str | None = None) -> list[Outcome]:
    """The plays of these seeds that there are."""
    return [found for found in (play(seed, way) for seed in seeds) if found is not None]
