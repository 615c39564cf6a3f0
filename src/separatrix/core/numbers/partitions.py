"""How many ways there are to part n things into b groups: Stirling numbers of the second kind,
at any size.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx, fmpz

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.counts import Count

_LARGEST_WRITTEN = 1 << 13


@dataclass(frozen=True)
class Partitions(Count):
    """S(things, groups), with 1 <= groups <= things (SizeError otherwise).

    By inclusion and exclusion, S(n, b) b! = sum over i >= 0 of (-1)^i binomial(b, i) (b - i)^n: the
    maps from n things onto b groups. Sums that break off are in turn too large and too small
    (Bonferroni), so that two in a row enclose it. The terms are about x^i/i! of the first, where x
    = b e^(-n/b); where there are about as many groups as make most partitions, x is about 1, and a
    few dozen of them are enough.
    """

    things: int
    groups: int

    def __post_init__(self) -> None:
        if not 1 <= self.groups <= self.things:
            raise SizeError(f"{self}: there are at least 1 group and at most as many as things")

    def log2_ball(self) -> arb:
        n = self.things
        b = self.groups
        # terms relative to b^n, binomial(b, i) (1 - i/b)^n; b^n / b! comes back last
        choices = arb(1)
        total = arb(0)
        before = arb(0)
        for i in range(b):
            before = total
            power = ((1 - arb(fmpz(i)) / fmpz(b)).log() * fmpz(n)).exp()
            total += choices * power * (-1) ** i
            # the sums before and after a term lie on either side of the whole
            if i and choices * power < arb(2) ** -ctx.prec:
                total = total.union(before)
                break
            choices = choices * fmpz(b - i) / fmpz(i + 1)
        return (
            total.log() + arb(fmpz(b)).log() * fmpz(n) - arb(fmpz(b + 1)).lgamma()
        ) / arb.const_log2()

    def exact(self) -> int:
        """The integer itself. Raises Undecided for more than 8,192 things."""
        if self.things > _LARGEST_WRITTEN:
            raise Undecided(f"{self} is too large to be written out")
        return int(fmpz.stirling_s2(self.things, self.groups))

    def __str__(self) -> str:
        return f"partitions of {self.things:,} vertices into {self.groups:,} groups"
