"""L-SeqComp: compose L functions that stand in the prompt, the one needed first standing last.

    position   0 ... N_{L-1}-1     ...   z_2          z_1           then   then
    input      z_L, row by row     ...   N_1 entries  N_0 entries   z_0    w
    target     .                         .            .             .      i_L

N_0 = m, N_l = n_l N_{l-1}; z_1: [N_0] -> [N_0], z_l: [N_{l-1}] -> [N_{l-1}]; z_0 in [m]; w = (w_1, ..., w_{L-1}), w_l in [n_l], one token.
i_1 = z_1(z_0), i_l = z_l(w_{l-1}, i_{l-1}), where entry (a, i) of z_l stands at a N_{l-2} + i; the answer is i_L. All ids start at 0.
Nothing can be composed while reading. Source: [CPW], [Ye26]; theory.md, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from separatrix.bits import Count, Power
from separatrix.errors import SizeError
from separatrix.tasks._base import LARGEST_SIZE, Batch, Task, Tokens, check_names, require

MOST_STEPS = 64


@dataclass(frozen=True, kw_only=True)
class SeqComp(Task):
    """z_0, w and every function uniform. 1 <= L <= 64, m >= 2, L-1 branching numbers n_l >= 1 (SizeError otherwise)."""

    name: ClassVar[str] = "seqcomp"
    title: ClassVar[str] = "sequential composition of L functions, the one needed first standing last"
    usage: ClassVar[str] = "L, and m, n_1, ..., n_{L-1}, or n (prompt length; then n_l = 2)"
    source: ClassVar[str] = "[CPW], [Ye26]"

    L: int
    m: int
    branching: tuple[int, ...]

    def __post_init__(self) -> None:
        require(self.name, "L", self.L, 1, MOST_STEPS)
        require(self.name, "m", self.m, 2, LARGEST_SIZE)
        if len(self.branching) != self.L - 1:
            raise SizeError(f"{self.name}: L={self.L} needs {self.L - 1} branching numbers n_1, ...; {len(self.branching)} are given")
        for number, value in enumerate(self.branching, 1):
            require(self.name, f"n_{number}", value, 1, LARGEST_SIZE)
        if self.length > LARGEST_SIZE:
            raise SizeError(f"{self.name}: the prompt would have {self.length:.3g} tokens; at most 10^12")

    @classmethod
    def of_length(cls, L: int, n: int) -> Self:
        """The largest m whose prompt, with every n_l = 2, fits in n tokens. Raises SizeError when none does."""
        require(cls.name, "L", L, 1, MOST_STEPS)
        m = (n - 2) // (2**L - 1)
        if m < 2:
            raise SizeError(f"{cls.name}: n={n} is too short for L={L}; the smallest is {2 * (2**L - 1) + 2}")
        return cls(L=L, m=m, branching=(2,) * (L - 1))

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        steps = require(cls.name, "L", sizes.get("L"), 1, MOST_STEPS)
        if "n" in sizes:
            check_names(cls.name, sizes, ("L", "n"), needed=("L", "n"))
            return cls.of_length(steps, require(cls.name, "n", sizes["n"], 4, LARGEST_SIZE))
        names = tuple(f"n_{number}" for number in range(1, steps))
        check_names(cls.name, sizes, ("L", "m", *names, "n"), needed=("L", "m", *names))
        return cls(L=steps, m=sizes["m"], branching=tuple(sizes[name] for name in names))

    def sizes(self) -> dict[str, Any]:
        return {"L": self.L, "m": self.m} | {f"n_{number}": value for number, value in enumerate(self.branching, 1)}

    def N(self, level: int) -> int:
        """N_l for 0 <= l <= L-1."""
        return self.m * prod(self.branching[:level])

    def entries(self, level: int) -> int:
        """Entries of z_l, 1 <= l <= L: N_{l-1}, each a value in [N_{l-1}]."""
        return self.N(level - 1)

    def offset(self, level: int) -> int:
        """Position of the first entry of z_l, 1 <= l <= L."""
        return sum(self.entries(higher) for higher in range(level + 1, self.L + 1))

    def position(self, level: int, w_before: Tokens | int, i_before: Tokens | int) -> Any:
        """Position of entry (w_{l-1}, i_{l-1}) of z_l; for l = 1, w_before is 0 and i_before is z_0. Takes integers or arrays."""
        row = self.N(level - 2) if level > 1 else 0
        return self.offset(level) + np.asarray(w_before) * row + np.asarray(i_before)

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

    def split_w(self, w: Tokens | int) -> tuple[Any, ...]:
        """(w_1, ..., w_{L-1}) of a token w: w_1 counts fastest."""
        parts, rest = [], np.asarray(w)
        for number in self.branching:
            parts.append(rest % number)
            rest = rest // number
        return tuple(parts)

    def join_w(self, parts: tuple[Any, ...]) -> Any:
        """Inverse of `split_w`."""
        token: Any = 0
        for number, part in zip(reversed(self.branching), reversed(parts), strict=True):
            token = token * number + np.asarray(part)
        return token

    @property
    def length(self) -> int:
        return self.position_z0 + 2

    @property
    def vocabulary(self) -> int:
        return max(self.N(self.L - 1), self.w_values)

    @property
    def answers(self) -> int:
        return self.N(self.L - 1)

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.answers)

    @property
    def prefix_length(self) -> int:
        return self.entries(self.L)

    def prefix_classes(self) -> Count:
        """N^N with N = N_{L-1}, for the prefix z_L: every entry of it is asked for by some continuation."""
        return Power(self.N(self.L - 1), self.entries(self.L))

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = np.empty((self._batch(batch), self.length), np.int64)
        for level in range(1, self.L + 1):
            start, count = self.offset(level), self.entries(level)
            tokens[:, start : start + count] = rng.integers(count, size=(batch, count))
        tokens[:, self.position_z0] = rng.integers(self.m, size=batch)
        tokens[:, self.position_w] = rng.integers(self.w_values, size=batch)
        return Batch(tokens, self._follow(tokens)[:, -1])

    def answer(self, tokens: Tokens) -> Tokens:
        return self.intermediate(tokens)[:, -1]

    def intermediate(self, tokens: Tokens) -> Tokens:
        """i_1, ..., i_L, shape (batch, L). Raises SizeError for tokens that are no instance."""
        tokens = self._checked(tokens)
        self._check_ranges(tokens)
        return self._follow(tokens)

    def _check_ranges(self, tokens: Tokens) -> None:
        parts = [(f"z_{level}", self.offset(level), self.entries(level), self.entries(level)) for level in range(1, self.L + 1)]
        parts += [("z_0", self.position_z0, 1, self.m), ("w", self.position_w, 1, self.w_values)]
        for name, start, count, limit in parts:
            part = tokens[:, start : start + count]
            if part.size and part.max() >= limit:
                raise SizeError(f"{self.spec}: {name} holds {part.max()}; its values must lie in [0, {limit})")

    def _follow(self, tokens: Tokens) -> Tokens:
        """The chain i_1, ..., i_L."""
        row, w = np.arange(len(tokens)), self.split_w(tokens[:, self.position_w])
        current, chain = tokens[:, self.position_z0], []
        for level in range(1, self.L + 1):
            before = w[level - 2] if level > 1 else 0
            current = tokens[row, self.position(level, before, current)]
            chain.append(current)
        return np.stack(chain, axis=1)
