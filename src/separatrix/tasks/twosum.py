"""2-Sum modulo M, per query (Match2) or as a decision."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar, Literal

from separatrix.core.errors import UnknownNameError
from separatrix.core.numbers.binomials import BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Sum
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import Words, ladder
from separatrix.tasks.base.layout import YES_OR_NO, Layout
from separatrix.tasks.base.task import (
    PLAIN,
    Batch,
    Family,
    FirstPart,
    Task,
    Tokens,
)
from separatrix.tasks.drawing.classes_modulo import (
    SMALL_MODULI,
    alike,
    avoiding,
    by_modulus,
    hidden,
    one_per_class,
    told_by_residues,
)
from separatrix.tasks.drawing.distinct import independent

WORDS = Words.read("""
    2-Sum modulo M, per query (Match2) or as a decision.

        per query:  position  0    1    ...  n-1  n         decision:  position  0    ...  n-1
                    input     x_1  x_2  ...  x_n  q                    input     x_1  ...  x_n
                    target    .    .    ...  .    0 or 1               target    .    ...  0 or 1

    Per query the answer is 1 when some x_j + q = 0 mod M; as a decision, when x_i + x_j = 0 mod M
    for some i != j. Values may repeat.

    Drawn: n >= 1 (2 as a decision), M >= 3. Sampled so that both answers have probability 1/2
    exactly.

    Values fall into N' = floor((M-1)/2) classes {x, -x} with x != -x, and 0 and, for even M, M/2.
    The label is a fair coin and chooses the last value drawn only: under label 1 the negative of a
    drawn one, under label 0 a value of another class, which is left free, that is equal to this
    negative modulo D. D is the largest of 360360, 27720, 2520, 840, 420, 210, 60, 30, 12, 6, 4, 2
    that leaves at least three values of 1..M-1 with every residue (four for even M; else 2 for odd
    M >= 5, or 1). The two are drawn together, either as likely as the other way round. Per query,
    x_j at a uniform place j has the negative; the other x's are independent and uniform over all
    values but -x_j and the free class; q is the last value. As a decision, n-1 tokens have classes
    that are not free and one fair sign per class, so that nothing cancels; the last value negates a
    uniform one of them and is put at a uniform place. So the other tokens say nothing about the
    label, no token alone does (the last value, like every token of a decision, is uniform over the
    classes under both labels), and neither does which tokens are equal: the last value is new under
    both labels. Nor do ids modulo any divisor of D say anything: modulo D the prompts of both
    labels are the same. (N' = 1, M = 3 or 4: no class can stay free; under label 0 the last value
    repeats the one that label 1 would negate, and counts tell.)

    Every other way to compare x with -q by less than their whole values gives part of the answer,
    less the longer the prompt; no sampler avoids all of them. Of numbers of sums that are right
    modulo p, one is larger by one under label 1, but for those that p and D share: worth at most
    half the largest probability of Binomial(n - 1, 1/p), and for several p half of 1 - (1 - t_1)(1
    - t_2)... of these distances. So D is larger for larger M: 4 at M = 17, 210 at M = 1031, 840 at
    M = 4099, which hides all moduli up to 8, and 10 and 12. All from 2 to 16 are tried, each by
    itself and together: per query 0.64 and 0.78 at n = 32, M = 1031, 0.59 and 0.67 at n = 64, M =
    4099. Their level is the bound for all of them.

    Counted: Per query: the sets of values that n tokens can have, sum_{j=1..min(n,M)} binomial(M,
    j) (theory.md, section 3).

    As a decision, after n-1 tokens, every sequence being allowed: one class for prefixes that hold
    a pair already; the others are told apart by the last token, hence by their set of values. Such
    a set takes one of the two signs in j classes and holds e of the values that are their own
    negatives, once each, with j + e <= n-1 and, if j = 0, e = n-1. (Theory.md's binomial(N', n-1),
    from distinct values of the half range, is the part with j = n-1 and one sign.)

    From: [San23] (Match2), [Ye26]; theory.md, sections 2 and 3
""")

Form = Literal["query", "decision"]


@dataclass(frozen=True, kw_only=True)
class TwoSum(Task):
    """2-Sum modulo M over n tokens, per query or as a decision."""

    name = "twosum"
    words = WORDS
    title = (
        "2-Sum modulo M: does some earlier token cancel the last (query), or do any two cancel"
        " (decision)"
    )
    titles: ClassVar[dict[str, str]] = {
        "query": "2-Sum modulo M: does some earlier token cancel the last",
        "decision": "2-Sum modulo M: do any two cancel",
    }
    usage = "n, M, form=query|decision (default query), shift=few|zipf"
    source = "[San23], [Ye26]"
    shifts: ClassVar[dict[str, str]] = {
        "few": "at most four different values (decision: classes), and the last one drawn",
        "zipf": (
            "the j-th most frequent of n random values (decision: classes) is drawn with a"
            " probability proportional to 1/j"
        ),
    }
    shortcuts = ("residues", "more residues")
    grid = ladder("""
        n=32,M=1031 n=64,M=4099 n=32,M=1031,form=decision n=64,M=32771 n=64,M=4099,form=decision
    """)

    n: int
    M: int
    form: Form = "query"
    shift: str = PLAIN

    def __post_init__(self) -> None:
        if self.form not in ("query", "decision"):
            raise UnknownNameError.of("form of twosum", str(self.form), ("query", "decision"))
        self._require(n=1 if self.form == "query" else 2, M=3)

    def layout(self) -> Layout:
        query = self.form == "query"
        ids = {f"number modulo {self.M}": self.M}
        return Layout(self.n + query, ids, YES_OR_NO, self.n - (not query), self._classes())

    def _classes(self) -> Count:
        """The count that `words.counted` derives."""
        if self.form == "query":
            return BinomialSum(self.M, min(self.n, self.M))
        t = self.n - 1
        own = 2 - self.M % 2
        signed = [
            (comb(own, e), BinomialSum(self.pairs, min(self.pairs, t - e), base=2))
            for e in range(min(own, t - 1) + 1)
        ]
        return Sum((*signed, (1, Exact(comb(own, t) + (t >= 2)))))

    def level(self, probe: str) -> Fraction:
        """Chance, but for probes that see two values which may cancel. Exact but for "nearest key",
        and for M >= 5.

        "last tokens": of a decision's pairs of places one cancels under label 1, and one more for
        each token that equals the one negated, of n-2 in N'-1 classes (all, if N' = 1); the places
        are as likely as any. Per query x_n cancels q if it is x_j, or else one of M-3 values (M-1
        if N' = 1) alike. Either is certain; other pairs are at least as likely under label 0. A
        sampler could avoid it only by never planting in the last places. "nearest key": per query
        -q stands before q under label 1 only, and where its id is near that of q the token behind
        it is seen, not it itself. An upper bound: enumerated for n <= 16 and M <= 64, this gains
        less than 1/(2n^2) where M >= 2n, and less than 1/8 where M < 2n. Small sizes (`_small`)
        have so few different prompts that weights for tokens, or the token behind the nearest,
        single some of them out: no promise is made, 1 is stated.
        """
        n = self.n
        if probe == "residues":
            others = self.n - 1 - (self.form == "decision")
            told = told_by_residues(others, self.M, SMALL_MODULI) if self.pairs > 1 else Fraction(1)
            return (1 + told) / 2
        if self._small and probe in ("counts", "nearest key"):
            return Fraction(1)
        if probe == "last tokens":
            classes = self.pairs - 1
            if self.form == "decision":
                met = (1 + (Fraction(n - 2, classes) if classes else n - 2)) / Fraction(
                    n * (n - 1), 2
                )
            else:
                met = Fraction(1, n) + Fraction(n - 1, n * (self.M - (3 if classes else 1)))
            return (1 + met) / 2
        if probe == "nearest key" and self.form == "query":
            return Fraction(1, 2) + (Fraction(1, 2 * n**2) if 2 * n <= self.M else Fraction(1, 8))
        return self.chance

    @property
    def _small(self) -> bool:
        """Whether there are too few tokens, or values, for counts to say nothing: found by
        probing all n <= 24 and M <= 67.
        """
        return (
            self.n < (4 if self.form == "query" else 6)
            or self.M < 9
            or (self.n < 8 and 3 * self.n > self.M)
        )

    @property
    def pairs(self) -> int:
        """Classes {x, -x} with x != -x: floor((M-1)/2)."""
        return (self.M - 1) // 2

    def first_part(self) -> FirstPart | None:
        """As a decision: sets of values of one sign, other than the last token's, that the n-2
        tokens before the last two give. The token before the last asks for a value.
        """
        if self.form != "decision" or self.n < 3 or self.pairs < 2:
            return None
        sets = BinomialSum(self.pairs - 1, min(self.n - 2, self.pairs - 1))
        return FirstPart("what stands before the last two tokens", sets)

    def family(self) -> Family[TwoSum]:
        """M/n stays when it is a whole number, else M."""
        smallest = 1 if self.form == "query" else 2
        return by_modulus(
            lambda n, M: TwoSum(n=n, M=M, form=self.form),
            n=self.n,
            M=self.M,
            smallest=smallest,
            least=3,
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        return Batch(
            self._query(labels, rng) if self.form == "query" else self._decision(labels, rng),
            labels,
        )

    def _query(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        rows = np.arange(len(labels))
        place = rng.integers(self.n, size=len(labels))
        met, negative, other = self._three(len(labels), rng)
        holes = np.stack((negative, other, self.M - other), axis=1)
        tokens = np.empty((len(labels), self.length), np.int64)
        tokens[:, :-1] = self._drawn(self.M, holes if self.pairs > 1 else holes[:, :1], self.n, rng)
        tokens[rows, place], tokens[:, -1] = met, np.where(labels == 1, negative, other)
        return tokens

    def _decision(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        batch = len(labels)
        rows = np.arange(batch)
        met, negative, other = self._three(batch, rng)
        own = np.minimum(met, negative)
        free = np.minimum(other, self.M - other)
        classes = 1 + self._drawn(
            self.pairs, (free - 1)[:, None][:, : self.pairs - 1], self.n - 1, rng
        )
        classes[rows, rng.integers(self.n - 1, size=batch)] = own
        tokens = np.empty((batch, self.n), np.int64)
        tokens[:, :-1] = np.where(one_per_class(classes, rng), self.M - classes, classes)
        # one sign for each class, and that of the one negated is known
        tokens[:, :-1] = np.where(classes == own[:, None], met[:, None], tokens[:, :-1])
        place = rng.integers(self.n, size=batch)
        tokens[:, -1] = tokens[rows, place]
        tokens[rows, place] = np.where(labels == 1, negative, other)
        return tokens

    def _three(self, batch: int, rng: np.random.Generator) -> tuple[Tokens, Tokens, Tokens]:
        """A value, its negative, and one that stands in for that under label 0: of another class,
        alike modulo D. (The value again where there is one class alone.)
        """
        if self.pairs == 1:
            met = 1 + (self.M - 2) * rng.integers(2, size=batch)
            return met, self.M - met, met
        negative, other = alike(batch, self.M, hidden(self.M), rng)
        return self.M - negative, negative, other

    def _drawn(self, values: int, holes: Tokens, n: int, rng: np.random.Generator) -> Tokens:
        """Shape (batch, n): of [values] without the row's holes, uniform or as the shift says."""
        if self.shift == PLAIN:
            return avoiding(values, holes, n, rng)
        kept = min(n, 4) if self.shift == "few" else n
        chosen = independent(len(holes), n, kept, self.shift, rng)
        return np.take_along_axis(avoiding(values, holes, kept, rng), chosen, axis=1)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if self.form == "query":
            return ((tokens[:, :-1] + tokens[:, -1:]) % self.M == 0).any(axis=1).astype(np.int64)
        # sorted by size, then sign, a value and its negative stand side by side
        small = np.minimum(tokens, self.M - tokens)
        keys = np.sort(2 * small + (tokens != small), axis=1)
        left = keys[:, :-1]
        right = keys[:, 1:]
        opposite = (left % 2 == 0) & (right == left + 1)
        # 0 and M/2 are their own negatives: two of the same cancel
        own_twice = (left == right) & (left % 2 == 0) & (left % self.M == 0)
        return (opposite | own_twice).any(axis=1).astype(np.int64)
