from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

from separatrix.core.numbers.binomials import Binomial
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import require
from separatrix.tasks.base.layout import Growth, Layout, TwoRuns
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Task, Tokens


@dataclass(frozen=True, kw_only=True)
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

    Drawn: n >= 3, 2 <= k <= n. Sampled so that all answers have probability 1/k exactly.

    The winner occurs T = ceil((n + k - 1)/k) times, as rarely as one can without a tie, the others
    as evenly as they can, all in uniform order. With k = 2 and odd n there is one vote between two
    symbols.

    Counting is the task, so whoever sees the counts has solved it and is always right. A token at
    one place is the winner with probability T/n, and averaged over places no sampler without ties
    gets below that; hence the levels of "position" and "nearest key". (The token behind the latest
    one of other symbols Y, seen from a last token x: it is x if the one before is in Y, else a
    uniform one of the tokens not in Y. Adding up the cases x = winner, winner in Y, neither: T/n
    again.) Of the last three tokens the best guess is the symbol that occurs most often: right if
    two are the winner, and once in three times if they are three different symbols, the winner
    among them.

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
    usage = "n, k (symbols, default 2)"
    source = "theory.md, section 2"
    shifts: ClassVar[dict[str, str]] = {
        "clear": "the winner's count is uniform from the least that wins to n"
    }
    grid = ("n=15", "n=16,k=4", "n=33,k=5", "n=127", "n=256,k=16", "n=1023")

    n: int
    k: int = 2
    shift: str = PLAIN

    def __post_init__(self) -> None:
        symbols = self.k if type(self.k) is int else 2
        require(self.name, "n", self.n, 3, LARGEST_SIZE, drawn=symbols)
        self._require(k=(2, self.n))

    def layout(self) -> Layout:
        """Two runs: a tie of 0 and 1, or one vote more for 0; and one vote more, for 1."""
        prefix = (self.n + 1) // 2
        classes = Binomial(prefix + self.k - 1, self.k - 1)
        ids = {"symbol": self.k}
        return Layout(
            self.n,
            ids,
            ids,
            prefix,
            classes,
            runs=TwoRuns.halves(self.n),
            grows=Growth(f"k = {self.k:,}", max(3, self.k)),
        )

    @property
    def least(self) -> int:
        """T, the smallest count that wins with every other symbol one below it at most."""
        return -(-(self.n + self.k - 1) // self.k)

    def level(self, probe: str) -> Fraction:
        if probe == "counts":
            return Fraction(1)
        if probe in ("position", "nearest key"):
            return Fraction(self.least, self.n)
        return self._of_three() if probe == "last tokens" else self.chance

    def _of_three(self) -> Fraction:
        T = self.least
        rest = self.n - self.least
        each, more = divmod(rest, self.k - 1)
        same = more * (each + 1) ** 2 + (self.k - 1 - more) * each**2
        # three or two winners; or one with two unlike losers, where one guess of three is right
        right = comb(T, 3) + comb(T, 2) * rest + Fraction(T * (rest**2 - same), 2 * 3)
        return right / comb(self.n, 3)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        place = np.arange(self.n)
        top = np.full((batch, 1), self.least)
        if self.shift == "clear":
            top = rng.integers(self.least, self.n + 1, size=(batch, 1))
        ranks = np.where(place < top, 0, 1 + (place - top) % (self.k - 1))
        ranks = rng.permuted(ranks.astype(np.uint8) if self.k <= 256 else ranks, axis=1)
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
        cells = tokens + self.k * np.arange(len(tokens))[:, None]
        return (
            np.bincount(cells.ravel(), minlength=self.k * len(tokens))
            .reshape(len(tokens), self.k)
            .argmax(1)
            .astype(np.int64)
        )
