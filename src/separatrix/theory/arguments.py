"""What the arguments of Theorems III to VII are made of: the sizes of a stack, what a proof
chooses, and its inequalities, each written once for exact integers and for floats.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import ceil, floor, inf
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.logs import LogSign, log_difference
from separatrix.theory.search.reals import (
    GIVEN_UP,
    LN2,
    exp,
    expm1,
    least_factor,
    ln,
    log1p,
    log2,
    settle,
)


@dataclass(frozen=True)
class Sizes:
    """Bits: what one token reads of a prefix in each reading layer (h_1..h_R), what the bounded
    groups carry (sigma_0..sigma_R), and the open blocks of sparse reading layers (open_1..open_R),
    owed at each cut where reads of the layer are fixed. The lag of what stands before the first
    one, in tokens, where its windows are left out.
    """

    h: tuple[int, ...]
    sigma: tuple[int, ...]
    opened: tuple[int, ...]
    lag: int = 0

    @property
    def numbers(self) -> dict[str, int]:
        """Every size by name."""
        named = {f"h_{j}": bits for j, bits in enumerate(self.h, 1)}
        named |= {f"sigma_{j}": bits for j, bits in enumerate(self.sigma)}
        named |= {f"open_{j}": bits for j, bits in enumerate(self.opened, 1)}
        return named | ({"lag": self.lag} if self.lag else {})

    @property
    def readers(self) -> int:
        """How many reading layers they are of."""
        return len(self.h)


@dataclass(frozen=True)
class ProofParameters:
    """The sizes of a task, m and its first n_l, and whatever else a proof chooses. Raises SizeError
    where `fits` says that they are out of the range which `needs` tells.
    """

    m: int
    needs: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.fits(self):
            raise SizeError(f"{self.needs}; these are {self}")

    @staticmethod
    @abstractmethod
    def fits(p: Any) -> bool:
        """Whether numbers of these names, integers or floats, are in range."""

    @property
    def branching(self) -> tuple[int, ...]:
        """The n_l that the proof is about; further ones belong to functions that it fixes."""
        return tuple(n_l for name, n_l in self.numbers.items() if name.startswith("n_"))

    @property
    def least_last(self) -> int:
        """The smallest value that the last of these n_l may take: a whole group."""
        return self.numbers.get("g", 1)

    def with_last(self, n_l: int) -> Self:
        """The same with another last n_l. Raises SizeError below `least_last`."""
        return replace(self, **{f"n_{len(self.branching)}": n_l})

    @property
    def numbers(self) -> dict[str, int]:
        """Every parameter by name."""
        return asdict(self)

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> Self:
        """The parameters with these numbers. Raises KeyError where one is missing and SizeError
        where they are out of range.
        """
        return cls(**{field.name: numbers[field.name] for field in fields(cls)})

    @property
    def size(self) -> tuple[int, ...]:
        """m and the n_l that the proof is about."""
        return self.m, *self.branching

    def length(self, steps: int | None = None) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument shows failure on.

        The functions have m, N_1, N_2, .. entries, and two tokens follow. Those that lifting adds
        have as many entries as the last one; without `steps` there are none of them.
        """
        entries = self.m
        tokens = 0
        for n_l in self.branching:
            tokens += entries
            entries *= n_l
        lifted = 0 if steps is None else steps - 1 - len(self.branching)
        return tokens + (1 + lifted) * entries + 2


P = TypeVar("P", bound=ProofParameters)


class Numbers(SimpleNamespace):
    """Sizes of a stack and what is chosen, by name: exact integers, or the latter as floats."""

    lag = 0


class Solver(NamedTuple):
    """How an inequality is solved for one of its numbers: certified, or in floats."""

    exact: bool

    def places(self, hole: Pigeonhole[Any]) -> Any:
        """The fewest places with which it holds; infinity where none are found."""
        if not self.exact:
            return hole.least_places()
        found = hole.certified_places()
        return inf if found is None else found

    def kept(self, hole: Pigeonhole[Any]) -> Any:
        """The most values that are kept; 0 where not even two are certain."""
        return (hole.certified_kept() or 0) if self.exact else hole.most_kept()

    def at_most(self, value: Any, most: Any) -> Any:
        """An integer that came from a float next to a large one, and may be above it."""
        return min(value, most) if self.exact else value


class Refuted(NamedTuple):
    """An inequality that does not hold, in words."""

    said: str

    def sign(self) -> LogSign:
        """Negative."""
        return LogSign(-1, "integers", self.said)


N = TypeVar("N", int, float)
"""What an inequality is written in: exact integers, or integers kept as floats."""


def smaller(a: N, b: N) -> N:
    """The smaller of two numbers."""
    return min(a, b)


def ceil_ratio(a: N, b: N) -> N:
    """a / b, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    # floats only propose points: an error of one here may cost a find, never a proof
    return float(ceil(a / b))


class Certified(Protocol):
    """An inequality whose sign can be certified."""

    def sign(self) -> LogSign:
        """The certified sign of left minus right side. Raises Undecided where it stays open."""
        ...


def certainly(inequality: Certified) -> bool:
    """Whether the inequality holds, certified; a tie that stays open counts as no."""
    try:
        return inequality.sign().positive
    except Undecided:
        return False


@dataclass(frozen=True)
class Pigeonhole(Generic[N]):
    """places log2(values / (kept - 1)) > bits, or kept = 1.

    Contents of `places` places, each with `values` possible values, fall into at most 2^bits
    classes. The largest class then takes at least `kept` different values at some place: with
    kept - 1 at each it would be too small.

    `gap` is values - kept, for floats so close to each other that their difference is lost.
    """

    places: N
    values: N
    kept: N
    bits: N | int
    gap: N | None = None

    def sign(self: Pigeonhole[int]) -> LogSign:
        """The certified sign of left minus right side; 1 bit where kept = 1."""
        if self.kept == 1:
            return LogSign(1, "integers", "holds: one value is always kept")
        terms = [(self.places, self.values), (-self.places, self.kept - 1)]
        return log_difference(terms, self.bits)

    def most_kept(self: Pigeonhole[float]) -> float:
        """The largest `kept` with which it holds, as a float."""
        # kept - 1 < values 2^(-bits / places), strictly: the largest integer kept is the ceiling
        share = exp(-self.bits / self.places * LN2)
        return min(float(ceil(self.values * share)), self.values)

    def places_needed(self: Pigeonhole[float]) -> float:
        """The number that `places` must exceed, as a float; infinite where nothing is gained."""
        gain = self._gain()
        return self.bits / gain if gain > 0 else inf

    def least_places(self: Pigeonhole[float]) -> float:
        """The smallest `places` with which it holds, as a float; infinite beyond `GIVEN_UP`."""
        if self.bits == 0 or self.kept <= 1:
            return 1.0
        needed = self.places_needed()
        return floor(needed) + 1.0 if needed < GIVEN_UP else inf

    def _gain(self: Pigeonhole[float]) -> float:
        """log2(values / (kept - 1)), kept > 1."""
        if self.gap is None:
            return log2(self.values / (self.kept - 1))
        # (kept - 1) / values = 1 - (gap + 1) / values, where the small term keeps its digits
        return -log1p(-(self.gap + 1) / self.values) / LN2

    def certified_places(self: Pigeonhole[int]) -> int | None:
        """The smallest `places` with which it certainly holds; None if none is found."""
        if self.kept == 1:
            return 1
        lost = self.values - self.kept + 1
        if 2 * lost > self.values:
            gain = (ln(self.values) - ln(self.kept - 1)) / LN2
        else:  # values and kept - 1 may agree in all digits of a float, so take what is lost
            gain = -log1p(-lost / self.values) / LN2
        return settle(
            self.bits / gain + 1 if gain > 0 else inf,
            lambda places: certainly(replace(self, places=places)),
        )

    def certified_kept(self: Pigeonhole[int]) -> int | None:
        """The largest `kept` of at least 2 with which it certainly holds; None if none is found."""
        values = self.values
        # values (1 - share): expm1 keeps the digits where nearly all values are kept
        lost = -values * expm1(-LN2 * (self.bits / self.places))

        # `settle` looks for a smallest integer, so it is given how many values go
        def holds(fewer: int) -> bool:
            return fewer < values and certainly(replace(self, kept=values + 1 - fewer))

        fewer = settle(lost + 1, holds)
        return None if fewer is None else values + 1 - fewer


@dataclass(frozen=True)
class Counting(Generic[N]):
    """x r log2(x base) > x each + owed + more min(few, ceil(x/g)) + caches ceil(x/g) r.

    The left side: how many bits of the last function its x r entries hold that are asked for, with
    x base values each. The right side: what was fixed of it, `each` for every value of the last
    index; `caches` for every group of g values and every one of r contents; `more` for the first
    `few` groups. If the left side is larger, two functions that differ at one of these entries get
    the same answers.

    """

    x: N
    r: N
    base: N
    each: int
    owed: N
    g: N | None = None
    caches: int = 0
    few: N | int = 0
    more: int = 0

    def sign(self: Counting[int]) -> LogSign:
        """The certified sign of left minus right side."""
        return log_difference([(self.x * self.r, self.x * self.base)], self.right())

    def in_floats(self: Counting[int]) -> Counting[float]:
        """The same, to be searched over."""
        g = None if self.g is None else float(self.g)
        r, base, owed = float(self.r), float(self.base), float(self.owed)
        return replace(cast(Counting[float], self), r=r, base=base, owed=owed, g=g)

    def left(self: Counting[float]) -> float:
        """What can be asked for, as a float."""
        return self.x * self.r * log2(self.x * self.base)

    def right(self) -> N:
        """What was fixed."""
        owed: N = self.owed + self.x * self.each
        return owed if self.g is None else self._with_groups(owed, ceil_ratio(self.x, self.g))

    def _with_groups(self, owed: N, groups: N) -> N:
        if self.more:
            owed = owed + smaller(self.few, groups) * self.more
        return owed + groups * self.r * self.caches

    def least(self: Counting[float], rounds: int) -> float:
        """The smallest x with which it holds, as a float; infinite where none is found.

        Whole groups are counted at most `rounds` times, up from a lower bound that counts parts of
        groups: the number of groups that x makes decides what x must be.
        """
        # points out of range may owe less than nothing, which `least_factor` does not take
        owed = max(self.owed, 0.0)
        if self.g is None:
            return least_factor(self.base, self.r, float(self.each), owed)
        x = groups = 1.0
        part = self.each + self.r * self.caches / self.g
        for _ in range(2 if self.more else 1):
            begun = owed + min(self.few, groups) * self.more if self.more else owed
            x = least_factor(self.base, self.r, part, begun)
            groups = ceil(x / self.g) if x < GIVEN_UP else inf
        # then the number of groups costs nothing, and the first x is final
        constant = not self.more and not self.caches
        for _ in range(0 if constant else rounds):
            if groups == inf:
                return inf
            whole = self._with_groups(owed, float(groups))
            x = max(x, least_factor(self.base, self.r, float(self.each), whole))
            before = groups
            groups = ceil(x / self.g) if x < GIVEN_UP else inf
            if before == groups:
                break
        return x
