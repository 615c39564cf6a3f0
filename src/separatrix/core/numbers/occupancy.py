"""How many bins balls hit: the exponent of Lemma S, by which it is unlikely that they hit few.

c groups have V/c bins each, into which b/c balls fall independently and uniformly. In all groups
together fewer than y bins are hit with probability at most 2^-lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx, fmpq

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.logs import LogSign, decimal, ln_factorial

_GUARD = 128


@dataclass(frozen=True)
class Occupancy:
    """lambda(V, b, y; c) of Lemma S (theory.md, section 11): V bins, b balls, y bins to be hit, c
    groups that divide V and b. Raises SizeError outside.

    It is the supremum over u > 0 and 0 < z <= 1 of (y-1) log2 z - V log2(1 + z(e^u - 1)) + b log2(u
    V/c) - c log2((b/c)!). Any u and z make a lower bound; the best ones are near at hand.
    """

    bins: int
    balls: int
    hit: int
    groups: int = 1

    def __post_init__(self) -> None:
        positive = min(self.bins, self.balls, self.hit, self.groups) >= 1
        if not positive or self.bins % self.groups or self.balls % self.groups:
            raise SizeError(
                f"Lemma S needs positive sizes and as many bins and balls in every group: {self}"
            )

    @property
    def certain(self) -> bool:
        """Whether so many bins are always hit: one is."""
        return self.hit == 1

    @property
    def useless(self) -> bool:
        """Whether lambda is at most 0: there are too few balls, or no fewer are hit on average."""
        if self.certain:
            return False
        if self.balls < self.hit or self.bins < self.hit:
            return True
        with ctx.workprec(self._precision):
            return not self._best()[1] < 1

    def log2_ball(self) -> arb:
        """A certified lower bound of lambda, enclosed: the expression at the best u and z but for
        rounding. SizeError where lambda is unbounded or at most 0.
        """
        if self.certain or self.useless:
            raise SizeError(f"Lemma S says nothing in numbers of {self}")
        with ctx.workprec(self._precision):
            u, z = self._best()
            per_group = fmpq(self.bins, self.groups)
            bits = (
                (self.hit - 1) * z.log()
                - self.bins * (z * u.expm1()).log1p()
                + self.balls * (u * arb(per_group)).log()
                - self.groups * ln_factorial(self.balls // self.groups)
            )
            return bits / arb.const_log2()

    @property
    def _precision(self) -> int:
        # an error of 2^-precision in u and z costs lambda its square, times the balls
        return _GUARD + 2 * max(self.bins, self.balls).bit_length()

    def _best(self) -> tuple[arb, arb]:
        """The best u and z but for rounding, as numbers without a radius; z may exceed 1."""
        # u / (1 - e^-u) = b / (y-1) and z (e^u - 1) = (y-1) / (V-y+1)
        ratio = arb(fmpq(self.balls, self.hit - 1))
        # Newton's method from above, of a convex function: u and 1 + u/2 lie below the ratio
        u = step = arb.min(2 * arb(fmpq(self.balls - self.hit + 1, self.hit - 1)), ratio).mid()
        while abs(step) > u * arb(2) ** -(self._precision // 2):
            fallen = (-u).exp()
            step = ((u - ratio * (1 - fallen)) / (1 - ratio * fallen)).mid()
            u = (u - step).mid()
        odds = arb(fmpq(self.hit - 1, self.bins - self.hit + 1))
        return u, (odds / u.expm1()).mid()


def sign_of(ball: arb) -> LogSign:
    """The certified sign of what a ball encloses. Raises Undecided where it may be 0."""
    if not (ball > 0 or ball < 0):
        raise Undecided(f"the sign of {decimal(ball)} is open")
    return LogSign(1 if ball > 0 else -1, "balls", decimal(ball))
