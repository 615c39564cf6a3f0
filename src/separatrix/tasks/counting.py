"""Counting: how often a symbol occurs among n, and which one does most often."""

from __future__ import annotations

from fractions import Fraction
from math import comb, isqrt
from typing import Any, ClassVar, Literal, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.binomials import Binomial
from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import check_names, choice, ladder, size
from separatrix.tasks.base.layout import Growth, Layout, TwoRuns
from separatrix.tasks.base.task import Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import distinct, how_often

Form = Literal["ones", "queried"]


class Counting(Task):
    """Counting: how many of n bits are ones, or how often does a symbol occur among n?

        ones:  position  0    ...  n-1              queried:  position  0    ...  n-1  n
               input     x_1  ...  x_n                        input     x_1  ...  x_n  q
               target    .    ...  #{j: x_j = 1}              target    .    ...  .    #{j: x_j = q}

    Drawn: V = 2 for ones.

    Ones: the count is uniform over 0..n and the order uniform, so that a constant guess is right
    with probability 1/(n+1). The counts are the answer: whoever sees them is always right. All
    zeros and all ones are one prompt each, so that a single place is worth 2/(n+1) with any
    sampler: 0 speaks for the count 0, 1 for the count n. The token behind the latest one that
    differs from the last is the last one, or missing where all are the same.

    Queried: m = min(V, sqrt(2n)) symbols take part, uniform among all (m >= 2). They share the n
    places in all ways alike, in uniform order, and one of the m at random is asked for. So its
    count is c with probability binomial(n-c+m-2, m-2) / binomial(n+m-1, m-1), 0 most often: a
    constant guess is right with probability (m-1)/(n+m-1). (With a count uniform over 0..n it would
    often be the largest, which all counts tell.) Who knows how often each symbol occurs in the
    whole prompt, the last token included, knows that every symbol that occurs is as likely to be
    the last one, and no more. The last two tokens tell whether x_n = q, which multiplies the odds
    of c by c. Where all tokens are the last one, "nearest key" sees nothing and knows c = n.

    Counted: Ones: n + 1, the answers. Queried: binomial(n + V - 1, V - 1), asking for every symbol
    lists the counts (theory.md, section 3).

    From: [Wen25] (counting); theory.md, sections 2 and 3
    """

    name = "counting"
    title = (
        "counting: how many of n bits are ones (ones), or how often the last token occurs before"
        " (queried)"
    )
    titles: ClassVar[dict[str, str]] = {
        "ones": "counting: how many of n bits are ones",
        "queried": "counting: how often the last token occurs before",
    }
    usage = "n, form=ones|queried (default ones), V (symbols; queried)"
    source = "[Wen25]"
    measured = ("counts", "last tokens")
    grid = ladder("""
        n=24 n=16,V=4,form=queried n=24,V=8,form=queried n=64 n=128,V=16,form=queried n=256
        n=512,V=32,form=queried
    """)

    n: int = size(1)
    V: int = size(2, default=2)
    form: Form = choice(Form, default="ones")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form == "ones" and self.V != 2:
            raise SizeError(
                f"{self.name}: V is {self.V}; ones are counted among bits, V = 2; ask for one of V"
                " symbols with form=queried"
            )

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        if sizes.get("form") == "queried":
            check_names(cls.name, cls.usage, sizes, [*sizes], needed=("n", "V"))
        return super().from_sizes(sizes)

    def layout(self) -> Layout:
        """Two runs: one token more is a one, and ones are asked for."""
        n = self.n
        queried = self.form == "queried"
        return Layout(
            length=n + queried,
            ids={"symbol": self.V},
            answers={"number": n + 1},
            prefix=n,
            classes=Binomial(n + self.V - 1, self.V - 1) if queried else Exact(n + 1),
            runs=TwoRuns.halves(n, (((1,), 1),) if queried else ()),
            grows=Growth("ones among n bits" if self.form == "ones" else f"V = {self.V:,}"),
        )

    @property
    def symbols(self) -> int:
        """m, the symbols that take part in a prompt (queried)."""
        return min(self.V, max(2, isqrt(2 * self.n)))

    @property
    def chance(self) -> Fraction:
        if self.form == "ones":
            return Fraction(1, self.n + 1)
        return Fraction(self.symbols - 1, self.n + self.symbols - 1)

    def level(self, probe: str) -> Fraction:
        n = self.n
        if probe in self.measured:
            return super().level(probe)
        if self.form == "queried":
            # all n tokens are the last one in 1 of so many ways to share the places
            alone = Fraction(1, comb(n + self.symbols - 1, self.symbols - 1))
            return self.chance + (alone if probe == "nearest key" else 0)
        own = {"position": Fraction(2, n + 1), "nearest key": Fraction(3 * n - 2, n * (n + 1))}
        return own.get(probe, self.chance)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        if self.form == "ones":
            counts = rng.integers(self.n + 1, size=batch)
            bits = rng.permuted((np.arange(self.n) < counts[:, None]).astype(np.uint8), axis=1)
            return Batch(bits.astype(np.int64), counts)
        counts = self._shared(batch, rng)
        symbols = distinct(batch, self.symbols, self.V, rng)
        tokens = np.empty((batch, self.length), np.int64)
        tokens[:, :-1] = rng.permuted(
            np.repeat(symbols.ravel(), counts.ravel()).reshape(batch, self.n), axis=1
        )
        tokens[:, -1] = symbols[:, 0]
        return Batch(tokens, counts[:, 0].copy())

    def _shared(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Counts (batch, m): uniform ways to share n places, by m-1 bars among n+m-1 places."""
        places = self.n + self.symbols - 1
        bars = np.sort(distinct(batch, self.symbols - 1, places, rng), axis=1)
        ends = np.full((batch, 1), places)
        return np.diff(np.concatenate((0 * ends - 1, bars, ends), axis=1)) - 1

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if self.form == "ones":
            return tokens.sum(1)
        return (tokens[:, :-1] == tokens[:, -1:]).sum(1)


class Majority(Task):
    """Majority: which of k symbols occurs most often among n?

        k = 2:          position   0     1     ...   n-1
                        input      x_1   x_2   ...   x_n
                        target     .     .     ...   1 if more are 1

        k = 3, n = 7:   position   0   1   2   3   4   5   6
                        input      1   0   2   1   2   1   0
                        target     .   .   .   .   .   .   1

    Of symbols that occur equally often the smallest counts as the answer: with k = 2, 1 if there
    are more ones than zeros.

    Drawn: Sampled so that all answers have probability 1/k exactly.

    The winner occurs T = ceil((n + k - 1)/k) times, as rarely as one can without a tie, the others
    as evenly as they can, all in uniform order. With k = 2 and odd n there is one vote between two
    symbols.

    Counting is the task, so whoever sees the counts has solved it and is always right. A token at
    one place is the winner with probability T/n, and averaged over places no sampler without ties
    gets below that; hence the levels of "position" and "nearest key". (The token behind the latest
    one of other symbols Y, seen from a last token x: it is x if the one before is in Y, else a
    uniform one of the tokens not in Y. Adding up the cases x = winner, winner in Y, neither: T/n
    again.)

    Counted: binomial(t + k - 1, k - 1) for prefixes of t = ceil(n/2) tokens: all counts c_1 + ... +
    c_k = t are told apart [here].

    Proof. Let c != c' be two of them and r = n - t >= t - 1 tokens be left. Let i be the strongest
    symbol under c (by count, then the smaller id) of those with c_i > c'_i, and j one with c_j <
    c'_j. Continue with a times i and r - a times j. With a = r, i wins under c: it has c_i + r >=
    t, every other at most t - c_i < t. Let a be the smallest with which it does; it then loses
    under c'. If a = 0: i beats j under c, so c_i >= c_j + r, hence j has at least c_j + 1 + r >= t
    under c' and i at most c_i - 1 <= t - 1. If a > 0, somebody beat i under c with one i less and
    one j more. If it was j, then under c' it has as much and i no more than in that comparison. If
    it was m != j, then m is stronger than i under c, so c'_m >= c_m by the choice of i, while i
    again has no more. So this continuation tells c and c' apart. With k = 2 there are ceil(n/2) + 1
    classes, and no other length has more.

    From: theory.md, section 2 (counting); the count of classes is derived [here]
    """

    name = "majority"
    title = "majority: which of k symbols occurs most often among n tokens"
    source = "theory.md, section 2"
    measured = ("last tokens",)
    grid = ("n=15", "n=16,k=4", "n=33,k=5", "n=127", "n=256,k=16", "n=1023")

    n: int = size(3)
    k: int = size(2, lambda task: task.n, default=2, told="symbols")

    def layout(self) -> Layout:
        """Two runs: a tie of 0 and 1, or one vote more for 0; and one vote more, for 1."""
        prefix = (self.n + 1) // 2
        classes = Binomial(prefix + self.k - 1, self.k - 1)
        ids = {"symbol": self.k}
        return Layout(self.n, ids, ids, prefix, classes, runs=TwoRuns.halves(self.n))

    @property
    def least(self) -> int:
        """T, the smallest count that wins with every other symbol one below it at most."""
        return -(-(self.n + self.k - 1) // self.k)

    def level(self, probe: str) -> Fraction:
        if probe == "counts":
            return Fraction(1)
        if probe in ("position", "nearest key"):
            return Fraction(self.least, self.n)
        return super().level(probe)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        place = np.arange(self.n)
        ranks = np.where(place < self.least, 0, 1 + (place - self.least) % (self.k - 1))
        ranks = np.tile(ranks.astype(np.uint8) if self.k <= 256 else ranks, (batch, 1))
        ranks = rng.permuted(ranks, axis=1)
        if self.k == 2:
            labels = rng.integers(2, size=batch)
            return Batch(ranks ^ labels[:, None], labels)
        symbols = rng.permuted(np.broadcast_to(np.arange(self.k), (batch, self.k)), axis=1)
        return Batch(
            np.take_along_axis(symbols, ranks.astype(np.int64), axis=1), symbols[:, 0].copy()
        )

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        if self.k == 2:
            return (2 * tokens.sum(1) > self.n).astype(np.int64)
        return how_often(tokens, self.k).argmax(1)
