"""What the arguments of Theorems VI and VII owe, the bits X_2, ..., X_L that they fix of functions
read so far, their parameters, and the conditions (A), (B_l) and (C) (theory.md, section 11).

Theorem VI knows less at each level by one stage: where VII has fixed the reads of layers 1..l, VI
has fixed those of layers 1..l-1. `ahead` is that difference, 0 for VI and 1 for VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Generic, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.occupancy import Occupancy
from separatrix.theory.arguments import ProofParameters, Sizes
from separatrix.theory.inequalities import N, smaller
from separatrix.theory.lemmas import Asked, Class, Hit, Sides

LARGEST = 1 << 13_000
"""No size is as large: integers of more than 4,300 digits are not written by Python, and whoever
makes them up only wants to keep a checker busy.
"""
_WRITTEN = 14_000
"""Bits of the largest integers that are written."""


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m and n_1 of the task, `further` = (n_2, ..., n_{L-1}), and what the proof chooses: see
    `Choice`; y_1 values of z_1 and `hit` = (Y_2, ..., Y_{L-1}) values of z_2, ...

    L >= 3, all are positive, G m' <= m, g G <= n_2, x <= t <= m, y_1 <= min(m', Delta_1 x), Y_2 <=
    G N_1 and Y_l <= N_{l-1}. Raises SizeError outside.
    """

    further: tuple[int, ...]
    part: int
    G: int
    g: int
    t: int
    x: int
    contents: tuple[int, ...]
    y_1: int
    hit: tuple[int, ...]
    flags: tuple[int, ...]

    def __post_init__(self) -> None:
        L = len(self.further) + 2
        complete = (len(self.contents), len(self.hit), len(self.flags)) == (L - 1, L - 2, L - 1)
        sizes = (self.m, self.n_1, self.part, self.G, self.g, self.t, self.x, self.y_1)
        sizes += (*self.further, *self.contents, *self.hit)
        if max(sizes) >= LARGEST:
            raise SizeError("Theorems VI and VII take sizes below 2^13000; these are larger")
        positive = min(sizes) >= 1
        # before anything is made of so many factors
        bits = sum(size.bit_length() for size in (self.m, self.n_1, *self.further))
        if bits >= LARGEST.bit_length():
            raise SizeError("Theorems VI and VII take functions of fewer than 2^13000 entries")
        if not (
            L >= 3
            and complete
            and positive
            and set(self.flags) <= {0, 1}
            and self.G * self.part <= self.m
            and self.g * self.G <= self.further[0]
            and self.x <= self.t <= self.m
            and self.y_1 <= min(self.part, self.contents[0] * self.x)
            and all(hit <= self.bins(level) for level, hit in enumerate(self.hit, 2))
        ):
            raise SizeError(
                "Theorems VI and VII need L >= 3, G m' <= m, g G <= n_2, x <= t <= m, y_1 <="
                f" min(m', Delta_1 x), Y_2 <= G N_1 and Y_l <= N_(l-1); these are {self.numbers}"
            )

    @property
    def L(self) -> int:
        """How many functions the argument composes."""
        return len(self.further) + 2

    @property
    def branching(self) -> tuple[int, ...]:
        return self.n_1, *self.further

    @property
    def least_last(self) -> int:
        # with more functions n_{L-1} stands in the prices, and all of its values are asked for
        return self.g * self.G if self.L == 3 else self.further[-1]

    def with_last(self, n_l: int) -> Self:
        return replace(self, further=(*self.further[:-1], n_l))

    @property
    def choice(self) -> Choice[int]:
        """What the prices hang on."""
        return Choice(
            self.m,
            self.branching,
            self.part,
            self.G,
            self.g,
            self.t,
            self.x,
            self.contents,
            self.flags,
        )

    def values(self, level: int) -> int:
        """N_l."""
        return self.choice.values(level)

    def bins(self, level: int) -> int:
        """V_l: how many values z_l may take, counted once for each group of w_2 at l = 2."""
        return self.values(level - 1) * (self.G if level == 2 else 1)

    def places(self, level: int) -> int:
        """U_l, l >= 2: how many entries of z_l are asked for; U_L is F of condition (C)."""
        if level == 2:
            return self.G * self.n_1 * self.y_1
        each = self.g if level == 3 else self.branching[level - 2]
        return each * self.hit[level - 3]

    @property
    def numbers(self) -> dict[str, int]:
        named = {"m": self.m}
        named |= {f"n_{level}": n for level, n in enumerate(self.branching, 1)}
        named |= {"m'": self.part, "G": self.G, "g": self.g, "t": self.t, "x": self.x}
        named |= {f"Delta_{level}": delta for level, delta in enumerate(self.contents, 1)}
        named |= {"y_1": self.y_1} | {f"Y_{level}": hit for level, hit in enumerate(self.hit, 2)}
        return named | {f"f_{level}": flag for level, flag in enumerate(self.flags, 2)}

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> Self:
        branching = _series(numbers, "n", 1)
        return cls(
            m=numbers["m"],
            n_1=numbers["n_1"],
            further=branching[1:],
            part=numbers["m'"],
            G=numbers["G"],
            g=numbers["g"],
            t=numbers["t"],
            x=numbers["x"],
            contents=_series(numbers, "Delta", 1),
            y_1=numbers["y_1"],
            hit=_series(numbers, "Y", 2),
            flags=_series(numbers, "f", 2),
        )


def _series(numbers: Mapping[str, int], name: str, first: int) -> tuple[int, ...]:
    found: list[int] = []
    while f"{name}_{first + len(found)}" in numbers:
        found.append(numbers[f"{name}_{first + len(found)}"])
    return tuple(found)


Conditions = dict[str, Class | Hit | Asked]
"""(A), then (B_2), ..., (B_{L-1}), then (C), by their names in numbers."""


def sides(conditions: Conditions) -> dict[str, int]:
    """Both sides of every condition in bits, the left ones rounded down; of conditions that compare
    nothing (one value alone) there are none.
    """
    found: dict[str, int] = {}
    for name, one in conditions.items():
        both: Sides | None = one.sides()
        if both is not None:
            if max(both).bit_length() > _WRITTEN:
                raise SizeError(f"the sides of ({name}) are too large to be written")
            found |= {f"{name}_left": both.left, f"{name}_right": both.right}
    return found


def conditions(ahead: int, s: Sizes, p: Parameters) -> Conditions:
    """The conditions of Theorem VI (`ahead` = 0) or VII (1)."""
    owed = prices(ahead, s, p.choice)
    bits = class_bits(ahead, s, p.choice)
    found: Conditions = {"A": Class(p.part, p.x, p.t, p.contents[0], p.y_1, bits)}
    for level, (delta, hit, price) in enumerate(zip(p.contents[1:], p.hit, owed, strict=False), 2):
        groups = p.G if level == 2 else 1
        thrown = Occupancy(p.bins(level), delta * p.places(level), hit, groups)
        found[f"B_{level}"] = Hit(thrown, delta * price + 1)
    return found | {"C": Asked(p.places(p.L), p.values(p.L - 1), owed[-1])}


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
        return _product((self.m, *self.n[:level]))

    @property
    def group_queries(self) -> N:
        """W/G: how many queries w there are with w_2 in one group."""
        return _product((self.g, self.n[0], *self.n[2:]))

    @property
    def queries(self) -> N:
        """W: how many queries w are used."""
        return self.G * self.group_queries

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


def _product(factors: Sequence[N]) -> N:
    return reduce(mul, factors)


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
    late = p.G * first * (p.t + p.x)
    owed = _first_price(ahead, s, p)
    found = [owed]
    pairs = p.G * 0 + 1  # Pi_l
    middle = p.G * 0  # Mid_l
    for level in range(2, p.L):
        delta = p.delta(level)
        # the last layer whose reads by tokens of z_l are fixed; w goes one layer further
        known = level - 1 + ahead
        own = delta * p.tokens(level)
        lower = middle + pairs * late
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
            grouped = _grouped(p) if level == 2 and not ahead else lower
            owed = owed + s.h[known - 1] * grouped
        if p.flag(level + 1):
            others = lower if p.flag(level) else delta * lower
            owed = owed + s.sigma[known + 1] + s.h[known] * (own + others)
        else:
            owed = owed + s.sigma[known + 1] * delta * pairs * p.G * first * p.x
        found.append(owed)
        middle = delta * (middle + p.tokens(level))
        pairs = pairs * delta
    return tuple(found)


def _grouped(p: Choice[N]) -> N:
    """G (Delta_1 t + x): tokens of the contents of z_1, and those of z_0, in each group."""
    return p.G * (p.delta(1) * p.t + p.x)


def _first_price(ahead: int, s: Sizes, p: Choice[N]) -> N:
    """X_2: what is fixed of (z_L, ..., z_2) and of the constant part of z_1."""
    first = p.delta(1)
    queries = p.queries
    # the group before w, and the layer that w reads before it
    sigma = s.sigma[1 + ahead]
    h = s.h[ahead]
    owed = s.sigma[ahead] + sum(s.opened[: 1 + ahead]) + h * p.x * queries
    if ahead:
        # w reads layer 1 before anything of z_1 is chosen, and z_0's query is its token
        places = smaller(p.G * p.x, p.t)
        tokens = p.G * first * p.t
        owed = owed + s.h[0] * (queries + tokens + places)
    if not p.flag(2):
        return owed + sigma * p.G * first * p.x
    if ahead:
        late = p.G * first * (p.t + p.x)
        return owed + sigma + h * late
    return owed + sigma + h * _grouped(p)
