"""What the arguments of Theorems III to VII are made of: the sizes of a stack, what a proof
chooses, and its inequalities, each written once for exact integers and for floats.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.logs import LogSign
from separatrix.theory.inequalities import Pigeonhole


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
