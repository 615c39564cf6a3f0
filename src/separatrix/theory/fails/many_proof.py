"""What the arguments of Theorems VI and VII owe, the bits X_2, ..., X_L that they fix of functions
read so far, their parameters, and the conditions (A), (B_l) and (C) (theory.md, section 11).

Theorem VI knows less at each level by one stage: where VII has fixed the reads of layers 1..l, VI
has fixed those of layers 1..l-1. `ahead` is that difference, 0 for VI and 1 for VII.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count, takewhile
from math import prod
from typing import Any, Generic, Self

from flint import ctx

from separatrix.core.errors import SizeError
from separatrix.core.numbers.logs import LogSign
from separatrix.core.numbers.occupancy import Occupancy, sign_of
from separatrix.theory.arguments import Certified, N, Pigeonhole, ProofParameters, Sizes, smaller

_FAILS = LogSign(-1, "integers", "fails: nothing is gained")
_CERTAIN = LogSign(1, "integers", "holds: one value is always taken")


@dataclass(frozen=True)
class Hit:
    """times lambda(bins, balls, hit; groups) > bits, or hit = 1: Lemma S, by which so many bins
    are hit in all but a 2^-lambda part of all ways to throw.
    """

    occupancy: Occupancy
    bits: int
    times: int = 1

    def sign(self) -> LogSign:
        """The certified sign of left minus right side."""
        if self.occupancy.certain or self.occupancy.useless:
            return _CERTAIN if self.occupancy.certain else _FAILS
        ball = self.occupancy.log2_ball()
        sizes = max(abs(self.bits).bit_length(), self.times.bit_length())
        with ctx.workprec(128 + 2 * (sizes + self.occupancy.balls.bit_length())):
            return sign_of(self.times * ball - self.bits)


@dataclass(frozen=True)
class Class:
    """Lemma C: of values^t contents of t = `among` places at least a 2^-bits part are alike. Then
    there are x = `places` of them, and D = `contents` that take y values there.

    It holds if y = 1, or by (A1) with v = 1: D >= y contents of which each brings a value that is
    new, t log2(values / (y-1)) > bits; or by (A2): lambda(values, D x, y; 1) > D bits x/t.
    """

    values: int
    places: int
    among: int
    contents: int
    y: int
    bits: int

    def ways(self) -> tuple[Pigeonhole[int] | None, Hit]:
        """(A1), where there are so many contents, and (A2) times t, whose sides are integers."""
        one = Pigeonhole(places=self.among, values=self.values, kept=self.y, bits=self.bits)
        thrown = Occupancy(self.values, self.contents * self.places, self.y)
        spread = Hit(thrown, self.contents * self.bits * self.places, times=self.among)
        return one if self.y <= self.contents else None, spread

    def sign(self) -> LogSign:
        """That of the first of both that holds; of (A2) where neither does."""
        if self.y == 1:
            return _CERTAIN
        one, spread = self.ways()
        first = one.sign() if one else _FAILS
        return first if first.positive else spread.sign()


LARGEST = 1 << 13_000
"""No size is as large: integers of more than 4,300 digits are not written by Python, and whoever
makes them up only wants to keep a checker busy.
"""


@dataclass(frozen=True)
class Choice(Generic[N]):
    """What a proof chooses of an L-SeqComp with m and n = (n_1, ..., n_{L-1}): G groups of g
    values of w_2, G intervals of `part` (m') values of z_1; t varied entries of z_1, x places of
    them; `contents` (Delta_1, ..., Delta_{L-1}) and `flags` (f_2, ..., f_L).

    Values of w_2 beyond g G and values of z_1 beyond G m' are not used.
    """

    m: N
    n: tuple[N, ...]
    part: N
    G: N
    g: N
    t: N
    x: N
    contents: tuple[N, ...]
    flags: tuple[int, ...]

    @property
    def L(self) -> int:
        """How many functions are composed."""
        return len(self.n) + 1

    def values(self, level: int) -> N:
        """N_l = m n_1 ... n_l."""
        return prod(self.n[:level], start=self.m)

    @property
    def group_queries(self) -> N:
        """W/G: how many queries w there are with w_2 in one group."""
        return prod((self.n[0], *self.n[2:]), start=self.g)

    @property
    def queries(self) -> N:
        """W: how many queries w are used."""
        return self.G * self.group_queries

    @property
    def grouped(self) -> N:
        """G (Delta_1 t + x): tokens of the contents of z_1, and those of z_0, in each group."""
        return self.G * (self.delta(1) * self.t + self.x)

    @property
    def late(self) -> N:
        """G Delta_1 (t + x): the same where those of z_0 are counted for each content."""
        return self.G * self.delta(1) * (self.t + self.x)

    def delta(self, level: int) -> N:
        """Delta_l."""
        return self.contents[level - 1]

    def flag(self, level: int) -> int:
        """f_l."""
        return self.flags[level - 2]

    def tokens(self, level: int) -> N:
        """tok_l, l >= 2: entries of z_l, and with z_2 those of z_1 that are constant."""
        entries = self.values(level - 1)
        return entries + self.m - self.t if level == 2 else entries


_SIZES = {"m": "m", "m'": "part", "G": "G", "g": "g", "t": "t", "x": "x", "y_1": "y_1"}
_SERIES = {"n": ("n", 1), "Delta": ("contents", 1), "Y": ("hit", 2), "f": ("flags", 2)}
"""Parameters by their names in verdicts; of a series, and where its indices begin."""


@dataclass(frozen=True)
class Parameters(Choice[int], ProofParameters):
    """What the proof chooses, y_1 values of z_1 and `hit` = (Y_2, ..., Y_{L-1}) values of z_2, ...

    L >= 3, all are positive, G m' <= m, g G <= n_2, x <= t <= m, y_1 <= min(m', Delta_1 x), Y_2 <=
    G N_1 and Y_l <= N_{l-1}. Raises SizeError outside.
    """

    y_1: int
    hit: tuple[int, ...]

    def __post_init__(self) -> None:
        series = (self.n, self.contents, self.hit, self.flags)
        complete = [len(one) for one in series] == [self.L - 1, self.L - 1, self.L - 2, self.L - 1]
        sizes = (self.m, self.part, self.G, self.g, self.t, self.x, self.y_1)
        sizes += (*self.n, *self.contents, *self.hit)
        # before anything is made of so many factors
        entries = sum(size.bit_length() for size in self.size)
        if max(sizes) >= LARGEST or entries >= LARGEST.bit_length():
            raise SizeError("Theorems VI and VII take sizes and functions' entries below 2^13000")
        if not (
            self.L >= 3
            and complete
            and min(sizes) >= 1
            and set(self.flags) <= {0, 1}
            and self.G * self.part <= self.m
            and self.g * self.G <= self.n[1]
            and self.x <= self.t <= self.m
            and self.y_1 <= min(self.part, self.contents[0] * self.x)
            and all(hit <= self.bins(level) for level, hit in enumerate(self.hit, 2))
        ):
            raise SizeError(
                "Theorems VI and VII need L >= 3, G m' <= m, g G <= n_2, x <= t <= m, y_1 <="
                f" min(m', Delta_1 x), Y_2 <= G N_1 and Y_l <= N_(l-1); these are {self.numbers}"
            )

    @property
    def branching(self) -> tuple[int, ...]:
        return self.n

    @property
    def least_last(self) -> int:
        # with more functions n_{L-1} stands in the prices, and all of its values are asked for
        return self.g * self.G if self.L == 3 else self.n[-1]

    def with_last(self, n_l: int) -> Self:
        return replace(self, n=(*self.n[:-1], n_l))

    def bins(self, level: int) -> int:
        """V_l: how many values z_l may take, counted once for each group of w_2 at l = 2."""
        return self.values(level - 1) * (self.G if level == 2 else 1)

    def places(self, level: int) -> int:
        """U_l, l >= 2: how many entries of z_l are asked for; U_L is F of condition (C)."""
        if level == 2:
            return self.G * self.n[0] * self.y_1
        return (self.g if level == 3 else self.n[level - 2]) * self.hit[level - 3]

    @property
    def numbers(self) -> dict[str, int]:
        named = {name: getattr(self, field) for name, field in _SIZES.items()}
        for name, (field, first) in _SERIES.items():
            named |= {f"{name}_{level}": n for level, n in enumerate(getattr(self, field), first)}
        return named

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> Self:
        named: dict[str, Any] = {field: numbers[name] for name, field in _SIZES.items()}
        for name, (field, first) in _SERIES.items():
            found = (numbers.get(f"{name}_{level}") for level in count(first))
            named[field] = tuple(takewhile(lambda n: n is not None, found))
        return cls(**named)


def conditions(ahead: int, s: Sizes, p: Parameters) -> dict[str, Certified]:
    """The conditions of Theorem VI (`ahead` = 0) or VII (1) by their names in theory.md: (A), then
    (B_2), ..., (B_{L-1}), then (C).
    """
    owed = prices(ahead, s, p)
    bits = class_bits(ahead, s, p)
    found: dict[str, Certified] = {"A": Class(p.part, p.x, p.t, p.contents[0], p.y_1, bits)}
    for level, (delta, hit, price) in enumerate(zip(p.contents[1:], p.hit, owed, strict=False), 2):
        groups = p.G if level == 2 else 1
        thrown = Occupancy(p.bins(level), delta * p.places(level), hit, groups)
        found[f"B_{level}"] = Hit(thrown, delta * price + 1)
    # the entries of z_L that are asked for hold more than was fixed of it
    asked = Pigeonhole(places=p.places(p.L), values=p.values(p.L - 1), kept=2, bits=owed[-1])
    return found | {"C": asked}


def class_bits(ahead: int, s: Sizes, p: Choice[N]) -> N:
    """s of condition (A): what the contents of z_1 must agree in, that is the bounded caches before
    the first reading layer (VI), or its accumulators for a group of queries (VII).
    """
    if not ahead:
        return p.G * 0 + s.sigma[0]
    return s.sigma[1] + s.opened[0] + s.h[0] * p.group_queries


def prices(ahead: int, s: Sizes, p: Choice[N]) -> tuple[N, ...]:
    """X_2, ..., X_L: what is fixed of (z_L, ..., z_l) before z_{l-1} is chosen."""
    first = p.delta(1)
    asked = first * p.x * p.queries
    owed = _first_price(ahead, s, p)
    found = [owed]
    pairs = p.G * 0 + 1  # Pi_l
    middle = p.G * 0  # Mid_l
    for level in range(2, p.L):
        delta = p.delta(level)
        # the last layer whose reads by tokens of z_l are fixed; w goes one layer further
        known = level - 1 + ahead
        own = delta * p.tokens(level)
        lower = middle + pairs * p.late
        owed = (
            delta * owed
            + 1
            + sum(s.sigma[: known + 1])
            + sum(s.opened[: known + 1])
            + own * sum(s.h[:known])
            + s.h[known] * pairs * asked
        )
        if not p.flag(level):
            # reads that were put off: z_0's of layer 1 know its group only
            owed = owed + s.h[known - 1] * (p.grouped if level == 2 and not ahead else lower)
        if p.flag(level + 1):
            others = lower if p.flag(level) else delta * lower
            owed = owed + s.sigma[known + 1] + s.h[known] * (own + others)
        else:
            owed = owed + s.sigma[known + 1] * delta * pairs * p.G * first * p.x
        found.append(owed)
        middle = delta * (middle + p.tokens(level))
        pairs = pairs * delta
    return tuple(found)


def _first_price(ahead: int, s: Sizes, p: Choice[N]) -> N:
    """X_2: what is fixed of (z_L, ..., z_2) and of the constant part of z_1."""
    first, queries = p.delta(1), p.queries
    # the group before w, and the layer that w reads before it
    sigma = s.sigma[1 + ahead]
    h = s.h[ahead]
    owed = s.sigma[ahead] + sum(s.opened[: 1 + ahead]) + h * p.x * queries
    if ahead:
        # w reads layer 1 before anything of z_1 is chosen, and z_0's query is its token
        owed = owed + s.h[0] * (queries + p.G * first * p.t + smaller(p.G * p.x, p.t))
    if not p.flag(2):
        return owed + sigma * p.G * first * p.x
    return owed + sigma + h * (p.late if ahead else p.grouped)
