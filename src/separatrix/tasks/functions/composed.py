"""Composed functions: sizes, the token w, the way functions are drawn, and the chain of values,
shared by the two orders of sequential composition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, ClassVar, Self, TypeVar

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout, Table
from separatrix.tasks.base.levels import share_of_a_composed_mode, share_of_the_mode
from separatrix.tasks.base.sizes import check_names, require
from separatrix.tasks.base.task import PLAIN, Batch, Composition, Family, Task, Tokens
from separatrix.tasks.drawing.distinct import shuffled

MOST_STEPS = 64
LARGEST_PROMPT = 10**100
"""Longest prompt, and largest m and n_l: theorems that bite at n = 10^25 are stated for tasks of
that size.
"""
FUNCTIONS = "functions"
PERMUTATIONS = "permutations"
VALUES = (FUNCTIONS, PERMUTATIONS)
"""How values are drawn: independent, or so that no function takes one twice."""
FEW = 4
"""Most distinct values of a function under the shift "few"."""
NEAR = 2
"""How far an entry lies from its own index at most, under the shift "local"."""

Number = TypeVar("Number", int, Tokens)
"""Integers or arrays of them."""


@dataclass(frozen=True, kw_only=True)
class Functions(Composition, Task):
    """z_l: [N_{l-1}] -> [N_{l-1}] for l = 1..L, z_0 in [m] and w, in the order that a subclass lays
    out; answer i_L.

    z_l, z_0 and w are independent and uniform, so every i_l is uniform and independent of z_L's
    entries but the one asked for; of values=permutations every z_l is a uniform permutation, and
    i_L uniform whatever z_L. Under every shift z_0 and w stay uniform and the z_l independent;
    what each says of the answer:

    zipf: every entry of z_l is 2^k - 1 plus a uniform number below 2^k, cut off at N_{l-1}, with k
    uniform below the number of binary digits of N_{l-1}. Value v then has a probability of about
    1/(v+1) over the logarithm: Zipf's law by octaves. Value 0 has 1/(bits of N_{l-1}) exactly. few:
    a row's z_l takes its values from 4 uniform ones: the answer is uniform still. local: entry e of
    z_l is e + s mod N_{l-1}, s uniform in -2..2. Entry and s are independent and e is uniform, so
    the answer is uniform still.
    """

    thoughts = ("values", "pairs")
    shifts: ClassVar[dict[str, str]] = {
        "zipf": "every function prefers small values: value v about in proportion to 1/(v+1)",
        "few": f"every function takes at most {FEW} values in a prompt",
        "local": f"every entry of a function lies within {NEAR} of its own index: local chains",
    }

    shortcuts = ("modes",)
    grid = (
        "L=1,m=6",
        "L=2,m=8,form=uniform",
        "L=3,m=8,form=uniform",
        "L=2,n=64",
        "L=3,n=128",
        "L=3,n=512",
    )

    L: int
    m: int
    branching: tuple[int, ...] = ()
    values: str = FUNCTIONS
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "L", self.L, 1, MOST_STEPS)
        require(self.name, "m", self.m, 2, LARGEST_PROMPT)
        if not isinstance(self.branching, tuple) or len(self.branching) != self.L - 1:
            raise SizeError(
                f"{self.name}: branching must be a tuple of L-1 = {self.L - 1} integers n_1,"
                " n_2, ..."
            )
        for number, value in enumerate(self.branching, 1):
            require(self.name, f"n_{number}", value, 1, LARGEST_PROMPT)
        if self.length > LARGEST_PROMPT:
            raise SizeError(
                f"{self.name}: about 2^{self.length.bit_length()} tokens, but a prompt has at most"
                " 10^100; lower m or the n_l"
            )
        self._check_shift(self.shift)
        if self.values not in VALUES:
            raise UnknownNameError.of(f"values of {self.name}", str(self.values), VALUES)
        if self.values == PERMUTATIONS and self.shift != PLAIN:
            raise SizeError(
                f"{self.name}: values=permutations and shift={self.shift} both say how functions"
                " are drawn; leave one of them out"
            )

    @classmethod
    def of_length(
        cls,
        L: int,
        n: int,
        *,
        uniform: bool = False,
        values: str = FUNCTIONS,
        shift: str = PLAIN,
    ) -> Self:
        """The largest m whose prompt, with every n_l = 2 (uniform: 1), fits in n tokens. Raises
        SizeError when none does.
        """
        steps = require(cls.name, "L", L, 1, MOST_STEPS)
        branch = 1 if uniform else 2
        units = sum(branch**level for level in range(steps))
        least = 2 * units + 2
        if require(cls.name, "n", n, 1, LARGEST_PROMPT, drawn=least) < least:
            raise SizeError(f"{cls.name}: n={n} is too short for L={L}; the smallest is {least}")
        return cls(
            L=L,
            m=(n - 2) // units,
            branching=(branch,) * (L - 1),
            values=values,
            shift=shift,
        )

    def family(self) -> Family[Self]:
        """L and the n_l stay, m grows."""
        kept = f"L = {self.L}" + "".join(
            f", n_{i} = {value}" for i, value in enumerate(self.branching, 1)
        )
        return Family(
            kept,
            lambda m: type(self)(L=self.L, m=m, branching=self.branching, values=self.values),
            2,
            grows="m",
        )

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        if "L" not in sizes:
            check_names(cls.name, cls.usage, {}, (), needed=("L",))
        L = require(cls.name, "L", sizes["L"], 1, MOST_STEPS)
        names = tuple(f"n_{number}" for number in range(1, L))
        known = ("L", "m", "n", *names, "form", "values", "shift")
        shift = sizes.get("shift", PLAIN)
        uniform = "form" in sizes
        if uniform and sizes["form"] != "uniform":
            raise UnknownNameError.of(f"form of {cls.name}", str(sizes["form"]), ("uniform",))
        # with n_l = 1 functions that repeat values collapse to a few
        usual = PERMUTATIONS if uniform and shift == PLAIN else FUNCTIONS
        values = sizes.get("values", usual)
        check_names(
            cls.name,
            cls.usage,
            sizes,
            known,
            needed=() if "n" in sizes else ("m",) if uniform else ("m", *names),
        )
        branches = [name for name in names if name in sizes]
        if "n" in sizes and ("m" in sizes or branches):
            given = ", ".join(name for name in ("m", *names) if name in sizes)
            fixed = "n_l = 1" if uniform else "n_l = 2"
            raise SizeError(
                f"{cls.name}: n chooses m and every {fixed}, but {given} is given too; give either"
                " n, or m and n_1, n_2, ..."
            )
        if uniform and branches:
            raise SizeError(
                f"{cls.name}: form=uniform makes every n_l = 1, but {', '.join(branches)} is given"
                " too; leave one of them out"
            )
        if "n" in sizes:
            return cls.of_length(L, sizes["n"], uniform=uniform, values=values, shift=shift)
        return cls(
            L=L,
            m=sizes["m"],
            branching=(1,) * (L - 1) if uniform else tuple(sizes[name] for name in names),
            values=values,
            shift=shift,
        )

    def with_sizes(self, sizes: dict[str, Any]) -> Functions:
        """n chooses m and the n_l, which are all 1 or all 2 as they are here; a smaller L drops the
        last n_l, a larger one takes n_l of the number that all others are.
        """
        L = sizes.get("L", self.L)
        alike = set(self.branching) or {1}
        kept = {name: value for name, value in self.sizes().items() if not name.startswith("n_")}
        if "n" in sizes:
            if alike not in ({1}, {2}):
                raise SizeError(
                    f"{self.spec}: n would make every n_l = 2; give L, m and the n_l instead"
                )
            del kept["m"]
            # the form would draw permutations unless told otherwise
            form = {"form": "uniform", "values": self.values} if alike == {1} and L != 1 else {}
            return type(self).from_sizes(kept | form | sizes)
        branching = list(self.branching)
        if type(L) is int and 1 <= L <= MOST_STEPS:
            more = L - 1 - len(branching)
            branching = branching[: L - 1] + [min(alike)] * (more if len(alike) == 1 else 0)
        numbers = {f"n_{number}": value for number, value in enumerate(branching, 1)}
        return type(self).from_sizes(kept | numbers | sizes)

    def sizes(self) -> dict[str, Any]:
        numbers = {f"n_{number}": value for number, value in enumerate(self.branching, 1)}
        return (
            {"L": self.L, "m": self.m}
            | numbers
            | ({} if self.values == FUNCTIONS else {"values": self.values})
            | ({} if self.shift == PLAIN else {"shift": self.shift})
        )

    def N(self, level: int) -> int:
        """N_l for 0 <= l <= L-1 (SizeError otherwise)."""
        require(self.name, "level", level, 0, self.L - 1)
        return self.m * prod(self.branching[:level])

    def entries(self, level: int) -> int:
        """Entries of z_l, 1 <= l <= L: N_{l-1}, each a value in [N_{l-1}]."""
        return self.N(level - 1)

    @abstractmethod
    def offset(self, level: int) -> int:
        """Position of the first entry of z_l, 1 <= l <= L; of z_0 for l = 0."""

    def position(self, level: int, w_before: Number, i_before: Number) -> Number:
        """Position of entry (w_{l-1}, i_{l-1}) of z_l, 1 <= l <= L; for l = 1 the entry is z_0
        and w_before counts for nothing.
        """
        require(self.name, "level", level, 1, self.L)
        row = self.N(level - 2) if level > 1 else 0
        return self.offset(level) + w_before * row + i_before

    @property
    def position_z0(self) -> int:
        return self.offset(0)

    @property
    def position_w(self) -> int:
        return self.position_z0 + 1

    @property
    def w_values(self) -> int:
        """Number of values of the token w: the product of the n_l."""
        return prod(self.branching)

    def split_w(self, w: Number) -> tuple[Number, ...]:
        """(w_1, ..., w_{L-1}) of a token w: w_1 counts fastest."""
        parts: list[Number] = []
        for number in self.branching:
            parts.append(w % number)
            w = w // number
        return tuple(parts)

    def join_w(self, parts: Sequence[Number]) -> Number | int:
        """Inverse of `split_w`; 0 for L = 1. Raises SizeError for another number of parts than
        L-1.
        """
        if len(parts) != self.L - 1:
            raise SizeError(f"{self.spec}: w has {self.L - 1} parts, {len(parts)} are given")
        token: Number | int = 0
        for number, part in zip(reversed(self.branching), reversed(parts), strict=True):
            token = token * number + part
        return token

    @property
    def length(self) -> int:
        # z_1, ..., z_L have m, m n_1, m n_1 n_2, ... entries
        return 2 + self.m * sum(accumulate(self.branching, mul, initial=1))

    def _laid(self, prefix: int, classes: Count, table: Table | None = None) -> Layout:
        """Numbers and w share their ids."""
        N = self.N(self.L - 1)
        ids = {"number": max(N, self.w_values)}
        return Layout(self.length, ids, {"number": N}, prefix, classes, table, steps=self.L)

    @property
    def token_ids(self) -> dict[str, range]:
        """Numbers, and the parts of w: w_l stands for itself times n_1 ... n_{l-1}."""
        parts: dict[str, range] = {}
        unit = 1
        for number, values in enumerate(self.branching, 1):
            if values > 1:
                parts[f"value of w_{number}, times {unit}"] = range(values)
            unit *= values
        return {"number": range(self.N(self.L - 1))} | parts

    def prompts(self) -> Count:
        """Functions of every level, z_0 and w; of permutations there are fewer."""
        levels = range(1, self.L + 1)
        functions = (Power(self.entries(level), self.entries(level)) for level in levels)
        return Product((*functions, Exact(self.m), Exact(self.w_values)))

    @property
    def chance(self) -> Fraction:
        """1/N_{L-1}; under "zipf" one over the number of binary digits of N_{L-1}."""
        return max(share for _, share in self.law(self.L))

    def law(self, step: int) -> tuple[tuple[range, Fraction], ...]:
        values = self.entries(step)
        if self.shift != "zipf":
            return ((range(values), Fraction(1, values)),)
        octaves = [
            range(2**k - 1, min(2 ** (k + 1) - 1, values)) for k in range(values.bit_length())
        ]
        return tuple(
            (octave, Fraction(1, len(octaves) * (octave.stop - octave.start))) for octave in octaves
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        rows = np.arange(batch)
        tokens = np.empty((batch, self.length), np.int64)
        z_0 = rng.integers(self.m, size=batch)
        w = [rng.integers(number, size=batch) for number in self.branching]
        tokens[:, self.position_z0], tokens[:, self.position_w] = i, _ = z_0, self.join_w(w)
        for level in range(1, self.L + 1):
            start = self.offset(level)
            count = self.entries(level)
            tokens[:, start : start + count] = self._function(batch, count, rng)
            i = tokens[rows, self.position(level, w[level - 2] if level > 1 else z_0, i)]
        return Batch(tokens, i)

    def _function(self, batch: int, values: int, rng: np.random.Generator) -> Tokens:
        """(batch, values): functions [values] -> [values]."""
        shape = (batch, values)
        match self.shift:
            case "zipf":
                octave = rng.integers(values.bit_length(), size=shape)
                # octave k: 2^k values from 2^k - 1 on; of the last one those below `values`
                first = np.left_shift(1, octave) - 1
                return first + rng.integers(np.minimum(first + 1, values - first))
            case "few":
                palette = rng.integers(values, size=(batch, FEW))
                return np.take_along_axis(palette, rng.integers(FEW, size=shape), axis=1)
            case "local":
                return (np.arange(values) + rng.integers(-NEAR, NEAR + 1, size=shape)) % values
            case _ if self.values == PERMUTATIONS:
                return shuffled(batch, values, rng)
            case _:
                return rng.integers(values, size=shape)

    def intermediate(self, tokens: Tokens) -> Tokens:
        """i_1, ..., i_L, shape (batch, L). Raises SizeError for tokens that are no instance."""
        tokens = self._checked(tokens)
        for level in range(1, self.L + 1):
            start = self.offset(level)
            count = self.entries(level)
            self._within(tokens[:, start : start + count], f"z_{level}", 0, count)
        self._within(tokens[:, self.position_z0], "z_0", 0, self.m)
        self._within(tokens[:, self.position_w], "w", 0, self.w_values)
        chain = np.empty((len(tokens), self.L), np.int64)
        rows = np.arange(len(tokens))
        current = tokens[:, self.position_z0]
        w = (np.zeros_like(current), *self.split_w(tokens[:, self.position_w]))
        for level in range(1, self.L + 1):
            current = tokens[rows, self.position(level, w[level - 1], current)]
            chain[:, level - 1] = current
        return chain

    def level(self, probe: str) -> Fraction:
        if probe == "modes":
            return self._mode_of_compositions
        if self.values == PERMUTATIONS:
            # with L = 1 an entry and z_0 may both be seen: it is asked for or ruled out
            near = self.L == 1 and self._query_follows and probe in ("last tokens", "nearest key")
            return Fraction(2, self.answers) if near else self.chance
        return self._level_of_functions(probe)

    @property
    @abstractmethod
    def _query_follows(self) -> bool:
        """Whether z_0 stands right behind the last entry of z_1."""

    @abstractmethod
    def _level_of_functions(self, probe: str) -> Fraction:
        """What a probe may reach where functions may repeat values."""

    @property
    def _mode_of_compositions(self) -> Fraction:
        """What the most frequent value of z_L, of the row asked for, or of compositions of rows
        with w known is worth, z_0 or any i_l being hidden. All of them composed tell the most.
        """
        if self.values == PERMUTATIONS:
            return Fraction(1, self.m)  # m different values are left, all as likely
        sources = [self.m, *(self.N(level - 2) for level in range(2, self.L + 1))]
        targets = [self.N(level - 1) for level in range(1, self.L + 1)]
        return share_of_a_composed_mode(tuple(sources), tuple(targets))

    def _in_sight(self, seen: int) -> Fraction:
        """Accuracy of naming the most frequent of `seen` <= N entries of z_L: of the N one is
        asked for, and each unseen one agrees by chance.
        """
        N = self.entries(self.L)
        return (seen * share_of_the_mode(seen, N) + Fraction(N - seen, N)) / N
