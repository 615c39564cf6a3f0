"""Composed functions, in two orders: the function needed first standing last, or first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, ClassVar, Literal, Self, TypeVar

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import check_names, choice, ladder, require, size
from separatrix.tasks.base.layout import Facts, Layout, Table
from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.base.task import PLAIN, Batch, Composition, Family, FirstPart, Task, Tokens
from separatrix.tasks.drawing.distinct import shuffled

MOST_STEPS = 64
LARGEST_PROMPT = 10**100
"""Longest prompt, and largest m and n_l: theorems that bite at n = 10^25 are stated for tasks of
that size.
"""
FUNCTIONS = "functions"
PERMUTATIONS = "permutations"
"""How values are drawn: independent, or so that no function takes one twice."""
FEW = 4
"""Most distinct values of a function under the shift "few"."""
NEAR = 2
"""How far an entry lies from its own index at most, under the shift "local"."""

Number = TypeVar("Number", int, Tokens)


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

    usage = (
        "L, and m, n_1, ..., n_{L-1}, or n (prompt length; then n_l = 2); form=uniform (n_l = 1),"
        " values=functions|permutations (default functions, with form=uniform permutations)"
    )
    thoughts = ("values", "pairs")
    shifts: ClassVar[dict[str, str]] = {
        "zipf": "every function prefers small values: value v about in proportion to 1/(v+1)",
        "few": f"every function takes at most {FEW} values in a prompt",
        "local": f"every entry of a function lies within {NEAR} of its own index: local chains",
    }

    shortcuts = ("modes",)
    measured = ("modes", "counts", "last tokens", "nearest key")
    grid = ladder("""
        L=1,m=6 L=2,m=8,form=uniform L=3,m=8,form=uniform L=2,n=64 L=3,n=128 L=3,n=512
    """)

    L: int = size(1, MOST_STEPS)
    m: int = size(2, LARGEST_PROMPT)
    branching: tuple[int, ...] = ()
    values: str = choice(Literal["functions", "permutations"], default=FUNCTIONS)

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.values == PERMUTATIONS and self.shift != PLAIN:
            raise SizeError(
                f"{self.name}: values=permutations and shift={self.shift} both say how functions"
                " are drawn; leave one of them out"
            )

    @classmethod
    def of_length(
        cls, L: int, n: int, *, uniform: bool = False, values: str = FUNCTIONS, shift: str = PLAIN
    ) -> Self:
        """The largest m whose prompt with n_l = 2 (uniform: 1) fits in n tokens, or SizeError."""
        steps = require(cls.name, "L", L, 1, MOST_STEPS)
        branch = 1 if uniform else 2
        units = sum(branch**level for level in range(steps))
        least = 2 * units + 2
        if require(cls.name, "n", n, 1, LARGEST_PROMPT, drawn=least) < least:
            raise SizeError(f"{cls.name}: n={n} is too short for L={L}; the smallest is {least}")
        return cls(
            L=L, m=(n - 2) // units, branching=(branch,) * (L - 1), values=values, shift=shift
        )

    def family(self) -> Family[Self]:
        """L and the n_l stay, m grows."""
        kept = f"L = {self.L}" + "".join(
            f", n_{i} = {value}" for i, value in enumerate(self.branching, 1)
        )
        return Family(kept, lambda m: replace(self, m=m, shift=PLAIN), 2, grows="m")

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        if "L" not in sizes:
            check_names(cls.name, cls.usage, {}, (), needed=("L",))
        L = require(cls.name, "L", sizes["L"], 1, MOST_STEPS)
        names = tuple(f"n_{number}" for number in range(1, L))
        shift = sizes.get("shift", PLAIN)
        uniform = "form" in sizes
        if uniform and sizes["form"] != "uniform":
            raise UnknownNameError.of(f"form of {cls.name}", str(sizes["form"]), ("uniform",))
        # with n_l = 1 functions that repeat values collapse to a few
        usual = PERMUTATIONS if uniform and shift == PLAIN else FUNCTIONS
        values = sizes.get("values", usual)
        own = () if uniform else names
        needed = () if "n" in sizes else ("m", *own)
        known = ("L", "m", "n", *names, "form", "values", "shift")
        check_names(cls.name, cls.usage, sizes, known, needed=needed)
        chosen = ("m", *names) if "n" in sizes else names if uniform else ()
        if given := [name for name in chosen if name in sizes]:
            who = "n chooses m and" if "n" in sizes else "form=uniform makes"
            raise SizeError(
                f"{cls.name}: {who} every n_l = {1 if uniform else 2}, but {', '.join(given)} is"
                " given too; leave one of them out"
            )
        if "n" in sizes:
            return cls.of_length(L, sizes["n"], uniform=uniform, values=values, shift=shift)
        branching = tuple(sizes[name] for name in names) if own else (1,) * (L - 1)
        return cls(L=L, m=sizes["m"], branching=branching, values=values, shift=shift)

    def with_sizes(self, sizes: dict[str, Any]) -> Functions:
        """n chooses m and the n_l, which are all 1 or all 2 as they are here; a smaller L drops the
        last n_l, a larger one takes n_l of the number that all others are.
        """
        L = sizes.get("L", self.L)
        alike = set(self.branching) or {1}
        kept = {name: value for name, value in self.sizes().items() if not name.startswith("n_")}
        if "n" in sizes:
            if alike not in ({1}, {2}):
                raise self.refused("n would make every n_l = 2; give L, m and the n_l instead")
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
        drawn = {"values": self.values, "shift": self.shift}
        unusual = {name: how for name, how in drawn.items() if how not in (FUNCTIONS, PLAIN)}
        return {"L": self.L, "m": self.m} | numbers | unusual

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
        """Position of entry (w_{l-1}, i_{l-1}) of z_l, 1 <= l <= L; of z_1 it is z_0."""
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
        """Inverse of `split_w`; 0 for L = 1. Raises SizeError unless there are L-1 parts."""
        if len(parts) != self.L - 1:
            raise self.refused(f"w has {self.L - 1} parts, {len(parts)} are given")
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

    def chain(self, tokens: Tokens) -> Tokens:
        """i_1, ..., i_L, shape (batch, L). Raises SizeError for tokens that are no instance."""
        tokens = self._checked(tokens)
        for level in range(1, self.L + 1):
            start = self.offset(level)
            count = self.entries(level)
            self._within(tokens[:, start : start + count], f"z_{level}", 0, count)
        self._within(tokens[:, self.position_z0], "z_0", 0, self.m)
        self._within(tokens[:, self.position_w], "w", 0, self.w_values)
        asked = (tokens[:, [self.position_z0]], tokens[:, [self.position_w]])
        return np.concatenate(self.composed(tokens, *asked), axis=1)

    def composed(self, tokens: Tokens, start: Tokens, w: Tokens, first: int = 1) -> list[Tokens]:
        """Of questions about the functions of each row the values of z_first, ..., z_L: i_1, ...,
        i_L where they start from z_0. In the shape (batch, any) of the starts, w broadcast to it.
        """
        chain = [start]
        for level, part in enumerate((w, *self.split_w(w)), start=1):
            if level >= first:
                place = self.position(level, part, chain[-1])
                chain.append(np.take_along_axis(tokens, place, axis=1))
        return chain[1:]

    def level(self, probe: str) -> Fraction:
        if self.values == PERMUTATIONS:
            # with L = 1 an entry and z_0 may both be seen: it is asked for or ruled out
            near = self.L == 1 and self.position_z0 and probe in ("last tokens", "nearest key")
            return Fraction(2, self.answers) if near else self.chance
        return self._level_of_functions(probe)

    @abstractmethod
    def _level_of_functions(self, probe: str) -> Fraction:
        """What a probe may reach where functions may repeat values."""

    def _in_sight(self, seen: int) -> Fraction:
        """At most, with `seen` <= N entries of z_L in sight: one is asked for, or agrees."""
        N = self.entries(self.L)
        return Fraction(seen, N) + Fraction(N - seen, N * N)


class SeqComp(Functions):
    """L-SeqComp: compose L functions that stand in the prompt, the one needed first standing last.

        position   0 ... N_{L-1}-1       ...   then          then          then   then
        input      z_L, row by row       ...   z_2 (N_1)     z_1 (N_0)     z_0    w
        target     .                     ...   .             .             .      i_L

        L = 2, m = 2, n_1 = 2:   position   0   1   2   3   4   5   6   7
                                 input      1   0   2   3   1   0   0   1
                                 target     .   .   .   .   .   .   .   3
        i_1 = z_1(0) = 1, i_2 = z_2(1, 1) = 3

    N_0 = m, N_l = n_l N_{l-1}; z_l: [N_{l-1}] -> [N_{l-1}]; z_0 in [m]; w = (w_1, ..., w_{L-1})
    with w_l in [n_l]. i_1 = z_1(z_0); i_l = z_l(w_{l-1}, i_{l-1}), the entry at w_{l-1} N_{l-2} +
    i_{l-1} of z_l; the answer is i_L. All ids start at 0 and the parts share them. w is one token
    that counts its tuples, w_1 fastest; with L = 1 it is always 0. Since the function needed first
    stands last, nothing can be composed while reading.

    Drawn: Uniform z_l, z_0 and w, so that every i_l is uniform. values=functions: entries are
    independent. values=permutations, the default of form=uniform: every z_l is a uniform
    permutation. (Any functions may be asked about, however they are drawn.)

    A constant guess is right with probability 1/N exactly, N = N_{L-1}. Permutations: no value is
    more frequent than another, and any one entry is the one asked for with probability 1/N, so that
    counts, places and rows say nothing. Who knows w and not z_0 has m values left: 1/m, which is
    1/N where every n_l = 1. With L = 1 the last three tokens hold an entry and the place asked for:
    2/N.

    Functions: as in eva, repeated values give some away. Counts may name the most frequent value of
    z_L, right with probability E[max_v |z_L^-1(v)|]/N; one place may hold the entry asked for,
    which makes 1/N + (1 - 1/N)/N. The token behind a nearest key is an entry of z_L at best, and no
    likelier the one asked for. With L = 1 the last three tokens show such an entry, else z_L is far
    from them. Who composes the rows that w asks for, whatever z_0, may name the value that most of
    [m] lead to ("modes"). With n_l = 1 more steps leave fewer values.

    L = 1 is evaluating a function, which boosted trees on raw tokens learn at m = 6.

    Counted: N^N with N = N_{L-1}, for the prefix z_L: every entry of it is asked for by some
    continuation.

    From: [CPW], [Ye26]; theory.md, section 2
    """

    name = "seqcomp"
    title = "sequential composition of L functions, the one needed first standing last"
    source = "[CPW], [Ye26]"

    def offset(self, level: int) -> int:
        require(self.name, "level", level, 0, self.L)
        return sum(self.entries(higher) for higher in range(level + 1, self.L + 1))

    def layout(self) -> Layout:
        """Facts are entries of z_L: where z_{L-1}, ..., z_1 are the identity, each is reached."""
        entries = self.entries(self.L)
        N = self.N(self.L - 1)
        start = self.offset(0)
        table = Table(entries, N, shared=start - entries, question=self.length - start)
        return self._laid(entries, Power(N, entries), table)

    def facts(self) -> Facts | None:
        """The entries of z_L, independent and uniform without shift and permutations."""
        if (self.values, self.shift) != (FUNCTIONS, PLAIN):
            return None
        return Facts(self.entries(self.L), self.N(self.L - 1))

    def first_part(self) -> FirstPart:
        """The row of z_L that w asks for: some z_{L-1}, ..., z_0 reaches every place in it."""
        row = Power(self.N(self.L - 1), self.N(max(self.L - 2, 0)))
        return FirstPart(f"a row of z_{self.L}", row)

    def _level_of_functions(self, probe: str) -> Fraction:
        if probe == "counts":
            return share_of_the_mode(self.answers, self.answers)
        return (
            self._in_sight(1)
            if probe in ("position", "nearest key") or (probe == "last tokens" and self.L == 1)
            else self.chance
        )


class SeqCompForward(Functions):
    """L-SeqComp read forward: the functions stand in the order in which they are needed, so that
    they can be composed while reading.

        position   0     1   then       then          ...   then
        input      z_0   w   z_1 (N_0)  z_2 (N_1)     ...   z_L, row by row
        target     .     .   .          .             ...   .            i_L after the last

        L = 2, m = 2, n_1 = 2:   position   0   1   2   3   4   5   6   7
                                 input      0   1   1   0   1   0   2   3
                                 target     .   .   .   .   .   .   .   3
        i_1 = z_1(0) = 1, i_2 = z_2(1, 1) = 3

    The functions, z_0, w and the answer are those of seqcomp; only their order differs, and with it
    everything that is hard: the theorems about L-SeqComp do not hold here.

    Drawn: Sizes and sampler as for seqcomp. A model that carries one value and the rest of w solves
    it, whatever n.

    A constant guess is right with probability 1/N exactly, N = N_{L-1}. Permutations: nothing else
    does better, but that w without z_0 leaves m values, as in seqcomp. Functions: counts may name
    the most frequent value of z_L, and so may the token behind some token of z_L, which is likelier
    a frequent value: at most E[max_v |z_L^-1(v)|]/N. One place may hold the entry asked for: 1/N +
    (1 - 1/N)/N. The last three tokens are min(3, N) entries of z_L, whose mode is right with
    probability (E[its multiplicity] + (N - 3)/N)/N. L = 1 is evaluating a function, as in seqcomp.

    Counted: (2m - 1) n_1 ... n_{L-1}, for the prefix z_0, w, z_1(0) [here].

    With z_0 = 0 it holds i_1 = z_1(0), and what matters is (i_1, w), one of m n_1 ... n_{L-1}
    pairs. With z_0 > 0 its entry is of no use, and what matters is (z_0, w), one of (m - 1) n_1 ...
    n_{L-1}. No two of these are equivalent. Let the functions to come be z_l(w_{l-1}, i) = w_{l-1}
    N_{l-2} + i, so that i_L names the pair (i_1, w). Two pairs (i_1, w) are told apart so. A prefix
    (z_0, w) has z_1(z_0) still to come: it is chosen unlike the i_1 of a prefix of the first kind;
    and unlike z_1(z_0') for another (z_0', w') with z_0 != z_0'; if z_0 = z_0', the tokens w
    differ.

    Likewise there are N_{L-1} classes after 2 tokens and N_{L-1} (2 - t/N_{l-1}) after t >= 1
    entries of z_l, at most 2 N_{L-1} - 1: so less than 2 + log2 N_{L-1} bits solve the task where
    the position is supplied (Theorem I, tightness). Three tokens are chosen since they stand at the
    same place in longer prompts, so that a shorter task's prefixes are prefixes of every longer
    one.

    From: theory.md, section 2, turned around [here]
    """

    name = "seqcomp-forward"
    title = (
        "sequential composition of L functions in the order they are needed: z_0, w, z_1, ..., z_L"
    )
    source = "theory.md, section 2, in the other order"

    def offset(self, level: int) -> int:
        require(self.name, "level", level, 0, self.L)
        return 2 + sum(self.entries(lower) for lower in range(1, level)) if level else 0

    def layout(self) -> Layout:
        return self._laid(3, Exact((2 * self.m - 1) * self.w_values))

    def _level_of_functions(self, probe: str) -> Fraction:
        N = self.answers
        match probe:
            case "counts" | "nearest key":
                return share_of_the_mode(N, N)
            case "position":
                return self._in_sight(1)
            case "last tokens":
                return self._in_sight(min(3, N))
            case _:
                return self.chance
