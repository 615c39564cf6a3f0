"""Sequential composition in its two orders: the function needed first standing last, or first."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.numbers.counts import Exact, Power
from separatrix.tasks.base.layout import Facts, Layout, Table
from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import PLAIN, FirstPart
from separatrix.tasks.base.words import Words
from separatrix.tasks.functions.composed import FUNCTIONS, LARGEST_PROMPT, MOST_STEPS, Functions

WORDS_OF_SEQCOMP = Words.read("""
    L-SeqComp: compose L functions that stand in the prompt, the one needed first standing last.

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

    Drawn: Uniform z_l, z_0 and w, so that every i_l is uniform. 1 <= L <= 64, m >= 2, every n_l >=
    1. values=functions: entries are independent. values=permutations, the default of form=uniform:
    every z_l is a uniform permutation. (Any functions may be asked about, however they are drawn.)

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
    [m] lead to, E[max_v |F^-1(v)|]/m: 0.75 at L = 1, m = 2 and at L = 3, m = 3, n = 2, 1; 0.52 at L
    = 2, m = 6, n_1 = 1; 0.19 at L = 2, m = 20, n_1 = 2. With n_l = 1 more steps leave fewer values:
    0.99 at L = 64, m = 16.

    L = 1 is evaluating a function, which boosted trees on raw tokens learn at m = 6 (0.99).

    Counted: N^N with N = N_{L-1}, for the prefix z_L: every entry of it is asked for by some
    continuation.

    From: [CPW], [Ye26]; theory.md, section 2
""")

__all__ = ["LARGEST_PROMPT", "MOST_STEPS", "SeqComp"]


@dataclass(frozen=True, kw_only=True)
class SeqComp(Functions):
    """L-SeqComp, z_L first: nothing can be composed while reading."""

    name = "seqcomp"
    words = WORDS_OF_SEQCOMP
    title = "sequential composition of L functions, the one needed first standing last"
    usage = (
        "L, and m, n_1, ..., n_{L-1}, or n (prompt length; then n_l = 2); form=uniform (n_l = 1),"
        " values=functions|permutations (default functions, with form=uniform permutations),"
        " shift=zipf|few|local, order=forward"
    )
    source = "[CPW], [Ye26]"

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


WORDS_OF_SEQCOMP_FORWARD = Words.read("""
    L-SeqComp read forward: the functions stand in the order in which they are needed, so that they
    can be composed while reading.

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
    probability (E[its multiplicity] + (N - 3)/N)/N. (N = 2 < L: the third is z_{L-1}(1), which is
    i_{L-1} with probability 1/2 + 1/4; the entry of z_L that it names is right with probability 3/4
    + 1/4 * 1/2.)

    L = 1 is evaluating a function, which boosted trees on raw tokens learn at m = 6 (0.99).

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
""")


@dataclass(frozen=True, kw_only=True)
class SeqCompForward(Functions):
    """L-SeqComp, z_1 first: carrying one value and the rest of w solves it."""

    name = "seqcomp-forward"
    words = WORDS_OF_SEQCOMP_FORWARD
    title = (
        "sequential composition of L functions in the order they are needed: z_0, w, z_1, ..., z_L"
    )
    usage = (
        "L, and m, n_1, ..., n_{L-1}, or n (prompt length; then n_l = 2); form=uniform (n_l = 1),"
        " values=functions|permutations (default functions, with form=uniform permutations),"
        " shift=zipf|few|local"
    )
    source = "theory.md, section 2, in the other order"

    def offset(self, level: int) -> int:
        require(self.name, "level", level, 0, self.L)
        return 2 + sum(self.entries(lower) for lower in range(1, level)) if level else 0

    def layout(self) -> Layout:
        return self._laid(3, Exact((2 * self.m - 1) * self.w_values))

    @property
    def _query_follows(self) -> bool:
        return False

    def _level_of_functions(self, probe: str) -> Fraction:
        N = self.answers
        match probe:
            case "counts" | "nearest key":
                return share_of_the_mode(N, N)
            case "position":
                return self._in_sight(1)
            case "last tokens":
                return Fraction(7, 8) if N == 2 and self.L > 1 else self._in_sight(min(3, N))
            case _:
                return self.chance
