"""What the arguments of Theorems VI and VII owe: the bits X_2, ..., X_L that they fix of the
functions read so far (theory.md, section 11), written once for both.

Theorem VI knows less at each level by one stage: where VII has fixed the reads of layers 1..l, VI
has fixed those of layers 1..l-1. `ahead` is that difference, 0 for VI and 1 for VII.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Generic

from separatrix.theory.fails.reading_layers import CacheSizes
from separatrix.theory.inequalities import N, smaller


@dataclass(frozen=True)
class Sizes(CacheSizes):
    """Bits: what one token reads of a prefix in each reading layer (h_1..h_R), what the bounded
    groups carry (sigma_0..sigma_R), and the open blocks of sparse reading layers (open_1..open_R),
    owed at each cut where reads of the layer are fixed.
    """

    h: tuple[int, ...]
    sigma: tuple[int, ...]
    opened: tuple[int, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """Every size by name."""
        named = {f"h_{j}": bits for j, bits in enumerate(self.h, 1)}
        named |= {f"sigma_{j}": bits for j, bits in enumerate(self.sigma)}
        return named | {f"open_{j}": bits for j, bits in enumerate(self.opened, 1)}


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
