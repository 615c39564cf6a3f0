"""Sums modulo M that cancel, of two tokens (2-Sum, Match2), per query or decided, or of three."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import ClassVar, Literal

from separatrix.core.numbers.binomials import BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Sum
from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.described import choice, ladder, size
from separatrix.tasks.base.layout import YES_OR_NO, Growth, Layout
from separatrix.tasks.base.task import Batch, FirstPart, Task, Tokens
from separatrix.tasks.drawing.distinct import avoiding

Form = Literal["query", "decision"]


def one_per_class(classes: Tokens, rng: np.random.Generator) -> Bools:
    """A fair coin for every class of every row, shape as `classes`; equal for equal entries."""
    # equal classes stand side by side once sorted, and take the coin of the first of them
    order = np.argsort(classes, axis=1)
    ordered = np.take_along_axis(classes, order, axis=1)
    # indices where runs of equal classes begin, else 0: the running maximum finds each one's run
    first = np.zeros_like(classes)
    first[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], np.arange(1, classes.shape[1]), 0)
    coins = rng.integers(2, size=classes.shape, dtype=np.int8) == 1
    drawn = np.take_along_axis(coins, np.maximum.accumulate(first, axis=1), axis=1)
    result = np.empty_like(coins)
    np.put_along_axis(result, order, drawn, axis=1)
    return result


_HIDDEN = (360360, 27720, 2520, 840, 420, 210, 60, 30, 12, 6, 4, 2)
"""Numbers with many divisors."""


def hidden(M: int) -> int:
    """The largest D of a list of numbers with many divisors of which every value of 1..M-1 shares
    its residue with two others at least (three for even M); else 2 for odd M >= 5, or 1.
    """
    # with odd M and even D a value and its negative have different residues
    odd = M % 2
    members = (D for D in _HIDDEN if (3 if odd else 4) <= (M - 1) // D)
    return next(members, 2 if odd and M >= 5 else 1)


def alike(batch: int, M: int, D: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
    """Two values (batch,) each of 1..M-1 that agree modulo D, of different classes {x, M-x} with
    two members; the law of one is that of the other. There must be two such classes.
    """
    one = np.empty(batch, np.int64)
    two = np.empty(batch, np.int64)
    left = np.arange(batch)
    while len(left):
        drawn = 1 + rng.integers(M - 1, size=len(left))
        residue = drawn % D
        # those of residue 0 begin at D
        members = (M - 1 - residue) // D + (residue > 0)
        other = residue + D * (rng.integers(members) + (residue == 0))
        one[left], two[left] = drawn, other
        fits = (other != drawn) & (other != M - drawn) & (2 * drawn != M) & (2 * other != M)
        left = left[~fits]
    return one, two


class Cancelling(Task):
    """Whether `summands` of n tokens cancel modulo M: the last with others (query), or any."""

    summands: ClassVar[int]
    smallest_modulus: ClassVar[int]
    shortcuts = ("more residues",)
    measured = (*shortcuts, "last tokens", "nearest key")

    n: int = size(lambda task: task.summands - (task.form == "query"))
    M: int = size(lambda task: task.smallest_modulus)
    form: Form = choice(Form, default="query")

    @property
    def _small(self) -> bool:
        """Whether there are too few tokens, or values, for counts to say nothing: found by
        probing all n <= 24 and M <= 67. No promise is made then.
        """
        return self.n < (4 if self.form == "query" else 6) or self.M < 9

    def level(self, probe: str) -> Fraction:
        return Fraction(1) if self._small and probe == "counts" else super().level(probe)

    def layout(self) -> Layout:
        query = self.form == "query"
        ids = {f"number modulo {self.M}": self.M}
        return Layout(self.n + query, ids, YES_OR_NO, self.n - (not query), grows=self._growth())

    def _two_make(self, x: Tokens, total: Tokens) -> Tokens:
        """Whether two of each row of x (batch, any) make its total (batch, 1) modulo M."""
        other = (total - x) % self.M
        # sorted by the smaller side of the class {x, total - x}, then by side, two that do stand
        # side by side; what is its own other side does it twice
        keys = np.sort(3 * np.minimum(x, other) + np.sign(x - other) + 1, axis=1)
        left, right = keys[:, :-1], keys[:, 1:]
        opposite = (left % 3 == 0) & (right == left + 2)
        return (opposite | ((left % 3 == 1) & (right == left))).any(axis=1).astype(np.int64)

    def _growth(self) -> Growth:
        """M/n stays when it is a whole number, else M."""
        if self.M % self.n:
            return Growth(f"M = {self.M:,}")
        ratio = self.M // self.n
        return Growth(f"M = {ratio if ratio > 1 else ''}n", {"M": (ratio, 0)}, alone=True)


class TwoSum(Cancelling):
    """2-Sum modulo M, per query (Match2) or as a decision.

        per query:  position  0    1    ...  n-1  n         decision:  position  0    ...  n-1
                    input     x_1  x_2  ...  x_n  q                    input     x_1  ...  x_n
                    target    .    .    ...  .    0 or 1               target    .    ...  0 or 1

    Per query the answer is 1 when some x_j + q = 0 mod M; as a decision, when x_i + x_j = 0 mod M
    for some i != j. Values may repeat.

    Drawn: Sampled so that both answers have probability 1/2 exactly.

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
    M = 4099, which hides all moduli up to 8, and 10 and 12. An audit tries all from 2 to 40
    together ("more residues").

    Counted: Per query: the sets of values that n tokens can have, sum_{j=1..min(n,M)} binomial(M,
    j) (theory.md, section 3).

    As a decision, after n-1 tokens, every sequence being allowed: one class for prefixes that hold
    a pair already; the others are told apart by the last token, hence by their set of values. Such
    a set takes one of the two signs in j classes and holds e of the values that are their own
    negatives, once each, with j + e <= n-1 and, if j = 0, e = n-1. (Theory.md's binomial(N', n-1),
    from distinct values of the half range, is the part with j = n-1 and one sign.)

    From: [San23] (Match2), [Ye26]; theory.md, sections 2 and 3
    """

    name = "twosum"
    title = (
        "2-Sum modulo M: does some earlier token cancel the last (query), or do any two cancel"
        " (decision)"
    )
    titles: ClassVar[dict[str, str]] = {
        "query": "2-Sum modulo M: does some earlier token cancel the last",
        "decision": "2-Sum modulo M: do any two cancel",
    }
    source = "[San23], [Ye26]"
    grid = ladder("""
        n=32,M=1031 n=64,M=4099 n=32,M=1031,form=decision n=64,M=32771 n=64,M=4099,form=decision
    """)

    summands = 2
    smallest_modulus = 3

    def layout(self) -> Layout:
        return super().layout()._replace(classes=self._classes())

    def _classes(self) -> Count:
        if self.form == "query":
            return BinomialSum(self.M, min(self.n, self.M))
        t = self.n - 1
        own = 2 - self.M % 2
        signed = [
            (comb(own, e), BinomialSum(self.pairs, min(self.pairs, t - e), base=2))
            for e in range(min(own, t - 1) + 1)
        ]
        return Sum((*signed, (1, Exact(comb(own, t) + (t >= 2)))))

    @property
    def _small(self) -> bool:
        return super()._small or (self.n < 8 and 3 * self.n > self.M)

    @property
    def pairs(self) -> int:
        """Classes {x, -x} with x != -x: floor((M-1)/2)."""
        return (self.M - 1) // 2

    def first_part(self) -> FirstPart | None:
        """As a decision: sets of one sign from the n-2 tokens before the last two."""
        if self.form != "decision" or self.n < 3 or self.pairs < 2:
            return None
        sets = BinomialSum(self.pairs - 1, min(self.n - 2, self.pairs - 1))
        return FirstPart("what stands before the last two tokens", sets)

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
        tokens[:, :-1] = avoiding(self.M, holes if self.pairs > 1 else holes[:, :1], self.n, rng)
        tokens[rows, place], tokens[:, -1] = met, np.where(labels == 1, negative, other)
        return tokens

    def _decision(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        batch = len(labels)
        rows = np.arange(batch)
        met, negative, other = self._three(batch, rng)
        own = np.minimum(met, negative)
        free = np.minimum(other, self.M - other)
        taken = (free - 1)[:, None][:, : self.pairs - 1]
        classes = 1 + avoiding(self.pairs, taken, self.n - 1, rng)
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
        """A value, its negative, and what stands for that under label 0, alike modulo D."""
        if self.pairs == 1:
            met = 1 + (self.M - 2) * rng.integers(2, size=batch)
            return met, self.M - met, met
        negative, other = alike(batch, self.M, hidden(self.M), rng)
        return self.M - negative, negative, other

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if self.form == "query":
            return ((tokens[:, :-1] + tokens[:, -1:]) % self.M == 0).any(axis=1).astype(np.int64)
        return self._two_make(tokens, np.zeros((len(tokens), 1), np.int64))


class ThreeSum(Cancelling):
    """3-Sum modulo M: do two tokens cancel the last?

        position  0    1    ...  n-1  n
        input     x_1  x_2  ...  x_n  q
        target    .    .    ...  .    0 or 1

    The answer is 1 when some x_i + x_j + q = 0 mod M, i != j. Values may repeat.

    Drawn: Sampled so that both answers have probability 1/2 exactly.

    q is uniform, and the others are a decision of 2-Sum with the sum -q. Values fall into classes
    {x, -q-x} with x != -q-x; n-1 tokens have independent uniform classes, all but one that is left
    free, and one fair side per class, so that no two add up to -q. The label chooses the last token
    drawn only, which is put at a uniform place: under label 1 the other side of a uniform one of
    them, under label 0 a fair side of the free class. Given q, every single token is uniform over
    the values in classes under both labels, and which tokens are equal has the same law.

    What still differs, by about 1/M, is the sum of all tokens, which three of them leave out under
    label 1.

    Choose M prime for the hard task: where d divides M, sums that are 0 mod M are 0 mod d too, so
    who adds modulo d knows part of the answer (0.59 from parities at n = 4, M = 16). With M odd,
    three tokens add up to M or 2M (or 0). Of numbers of sums that are right modulo p, one among
    n(n-1)/2 pairs is larger by one. So the sizes of the grid are long, with large M.

    Counted: Not known: what matters of n tokens is their set of pair sums, and no formula is known
    for how many such sets there are.

    From: [San23] (Match3); theory.md, section 2
    """

    name = "threesum"
    title = "3-Sum modulo M: do two earlier tokens and the last cancel"
    titles: ClassVar[dict[str, str]] = {"query": title}
    source = "[San23]"
    grid = ("n=24,M=4099", "n=32,M=4099", "n=64,M=4099", "n=64,M=32771")

    summands = 3
    smallest_modulus = 5

    form: Literal["query"] = choice(Literal["query"], default="query")

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        M = self.M
        rows = np.arange(batch)
        q = rng.integers(M, size=batch)
        total = (M - q) % M
        half = total // 2
        odd = total % 2
        # class y of 1, 2, ... holds half + y and half + odd - y; what is left of [M] are the values
        # that are their own other side
        if M % 2:
            classes = (M - 1) // 2
            others = classes - 1
        else:
            classes = M // 2 - 1 + odd
            others = classes[:, None] - 1
        free = 1 + rng.integers(classes, size=batch)
        y = 1 + rng.integers(others, size=(batch, self.n - 1))
        y += y >= free[:, None]
        tokens = np.empty((batch, self.length), np.int64)
        side = one_per_class(y, rng)
        tokens[:, :-2] = (half[:, None] + np.where(side, y, odd[:, None] - y)) % M
        partner = total - tokens[rows, rng.integers(self.n - 1, size=batch)]
        fresh = half + np.where(rng.integers(2, size=batch) == 1, free, odd - free)
        tokens[:, -1] = q
        place = rng.integers(self.n, size=batch)
        tokens[:, -2] = tokens[rows, np.minimum(place, self.n - 2)]
        tokens[rows, place] = np.where(labels == 1, partner, fresh) % M
        return Batch(tokens, labels)

    def answer(self, tokens: Tokens) -> Tokens:
        """In n log n per prompt."""
        tokens = self._checked(tokens)
        return self._two_make(tokens[:, :-1], (self.M - tokens[:, -1:]) % self.M)
