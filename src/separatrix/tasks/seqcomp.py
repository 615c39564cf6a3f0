"""L-SeqComp: compose L functions that stand in the prompt, the one needed first standing last."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.counts import Power
from separatrix.tasks.base.facts import Facts, Table
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import PLAIN, FirstPart
from separatrix.tasks.base.words import Words
from separatrix.tasks.functions.composed import FUNCTIONS, LARGEST_PROMPT, MOST_STEPS, Functions

WORDS = Words(
    asks="""
        L-SeqComp: compose L functions that stand in the prompt, the one needed first standing last.
    """,
    table="""
        position   0 ... N_{L-1}-1       ...   then          then          then   then
        input      z_L, row by row       ...   z_2 (N_1)     z_1 (N_0)     z_0    w
        target     .                     ...   .             .             .      i_L

        L = 2, m = 2, n_1 = 2:   position   0   1   2   3   4   5   6   7
                                 input      1   0   2   3   1   0   0   1
                                 target     .   .   .   .   .   .   .   3
        i_1 = z_1(0) = 1, i_2 = z_2(1, 1) = 3
    """,
    rules="""
        N_0 = m, N_l = n_l N_{l-1}; z_l: [N_{l-1}] -> [N_{l-1}]; z_0 in [m]; w = (w_1, ..., w_{L-1})
        with w_l in [n_l]. i_1 = z_1(z_0); i_l = z_l(w_{l-1}, i_{l-1}), the entry at w_{l-1} N_{l-2}
        + i_{l-1} of z_l; the answer is i_L. All ids start at 0 and the parts share them. w is one
        token that counts its tuples, w_1 fastest; with L = 1 it is always 0. Since the function
        needed first stands last, nothing can be composed while reading.
    """,
    drawn="""
        Uniform z_l, z_0 and w, so that every i_l is uniform. 1 <= L <= 64, m >= 2, every n_l >= 1.
        values=functions: entries are independent. values=permutations, the default of form=uniform:
        every z_l is a uniform permutation. (Any functions may be asked about, however they are
        drawn.)

        A constant guess is right with probability 1/N exactly, N = N_{L-1}. Permutations: no value
        is more frequent than another, and any one entry is the one asked for with probability 1/N,
        so that counts, places and rows say nothing. Who knows w and not z_0 has m values left: 1/m,
        which is 1/N where every n_l = 1. With L = 1 the last three tokens hold an entry and the
        place asked for: 2/N.

        Functions: as in eva, repeated values give some away. Counts may name the most frequent
        value of z_L, right with probability E[max_v |z_L^-1(v)|]/N; one place may hold the entry
        asked for, which makes 1/N + (1 - 1/N)/N. The token behind a nearest key is an entry of z_L
        at best, and no likelier the one asked for. With L = 1 the last three tokens show such an
        entry, else z_L is far from them. Who composes the rows that w asks for, whatever z_0, may
        name the value that most of [m] lead to, E[max_v |F^-1(v)|]/m: 0.75 at L = 1, m = 2 and at L
        = 3, m = 3, n = 2, 1; 0.52 at L = 2, m = 6, n_1 = 1; 0.19 at L = 2, m = 20, n_1 = 2. With
        n_l = 1 more steps leave fewer values: 0.99 at L = 64, m = 16.

        L = 1 is evaluating a function, which boosted trees on raw tokens learn at m = 6 (0.99).
    """,
    counted="""
        N^N with N = N_{L-1}, for the prefix z_L: every entry of it is asked for by some
        continuation.
    """,
    origin="[CPW], [Ye26]; theory.md, section 2",
)

__all__ = ["LARGEST_PROMPT", "MOST_STEPS", "SeqComp"]


@dataclass(frozen=True, kw_only=True)
class SeqComp(Functions):
    """L-SeqComp, z_L first: nothing can be composed while reading."""

    name: ClassVar[str] = "seqcomp"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "sequential composition of L functions, the one needed first standing last"
    )
    usage: ClassVar[str] = (
        "L, and m, n_1, ..., n_{L-1}, or n (prompt length; then n_l = 2); form=uniform (n_l = 1),"
        " values=functions|permutations (default functions, with form=uniform permutations),"
        " shift=zipf|few|local, order=forward"
    )
    source: ClassVar[str] = "[CPW], [Ye26]"

    def offset(self, level: int) -> int:
        require(self.name, "level", level, 0, self.L)
        return sum(self.entries(higher) for higher in range(level + 1, self.L + 1))

    def layout(self) -> Layout:
        """The facts are the entries of z_L: where z_{L-1}, ..., z_1 are the identity, z_0 and w
        reach each.
        """
        entries = self.entries(self.L)
        N = self.N(self.L - 1)
        start = self.offset(0)
        table = Table(entries, N, shared=start - entries, question=self.length - start)
        return self._laid(entries, Power(N, entries), table)

    def facts(self) -> Facts | None:
        """The entries of z_L, independent and uniform unless a shift or values=permutations draws
        others; what comes before the answer and w ask for a uniform one.
        """
        if (self.values, self.shift) != (FUNCTIONS, PLAIN):
            return None
        return Facts(self.entries(self.L), self.N(self.L - 1))

    def first_part(self) -> FirstPart:
        """The row of z_L that w asks for: some z_{L-1}, ..., z_0 reaches every place in it."""
        row = Power(self.N(self.L - 1), self.N(max(self.L - 2, 0)))
        return FirstPart(f"a row of z_{self.L}", row)

    @property
    def _query_follows(self) -> bool:
        return True

    def _level_of_functions(self, probe: str) -> Fraction:
        if probe == "counts":
            return share_of_the_mode(self.answers, self.answers)
        return (
            self._in_sight(1)
            if probe in ("position", "nearest key") or (probe == "last tokens" and self.L == 1)
            else self.chance
        )
