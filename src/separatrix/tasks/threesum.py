"""3-Sum modulo M, per query or as a decision."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar, Literal

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.described import Words, ladder, require
from separatrix.tasks.base.layout import YES_OR_NO, Layout
from separatrix.tasks.base.task import LARGEST_SIZE, Batch, Family, Task, Tokens
from separatrix.tasks.drawing.classes_modulo import (
    SMALL_MODULI,
    by_modulus,
    one_per_class,
    told_by_numbers_of_sums,
)

WORDS = Words.read("""
    3-Sum modulo M, per query or as a decision.

        per query:  position  0    ...  n-1  n         decision:  position  0    ...  n-1
                    input     x_1  ...  x_n  q                    input     x_1  ...  x_n
                    target    .    ...  .    0 or 1               target    .    ...  0 or 1

    Per query the answer is 1 when some x_i + x_j + q = 0 mod M, i != j; as a decision, when some
    x_i + x_j + x_k = 0 mod M at three different places. Values may repeat.

    Drawn: n >= 2 (3 as a decision), M >= 5. Sampled so that both answers have probability 1/2
    exactly.

    Per query: q is uniform, and the others are a decision of 2-Sum with the sum -q. Values fall
    into classes {x, -q-x} with x != -q-x; n-1 tokens have independent uniform classes, all but one
    that is left free, and one fair side per class, so that no two add up to -q. The label chooses
    the last token drawn only, which is put at a uniform place: under label 1 the other side of a
    uniform one of them, under label 0 a fair side of the free class. Given q, every single token is
    uniform over the values in classes under both labels, and which tokens are equal has the same
    law.

    As a decision: n-1 tokens are drawn one by one, uniform over the values that complete no triple;
    so are n-1 others, which only serve to find the last token. One value is found that would
    complete a triple in the first and none in the second, one the other way round, both new to all.
    The last token is the former under label 1 and the latter under label 0, at a uniform place. The
    two sequences are exchangeable, so the last token has one law under both labels, and so has the
    rest; it is new under both. Hence counts, single places and repeats say nothing. Such values
    become rare as pairs fill [M], so that decisions are drawn from M = n^2/2 on.

    What still differs, by about 1/M, is the sum of all tokens, which three of them leave out under
    label 1, and in decisions over three to five tokens which two values stand together: 10^5
    prompts of those show it, of n >= 6 they do not. In decisions, how many pairs have equal sums or
    differences differs as well, the less the larger M/n^3: 0.55 at n = 7, M = 37, 0.52 at n = 16, M
    = 521, nothing seen in 20,000 prompts at n = 12, M = 4099. A gain of n^3/(128 M) is allowed.

    Choose M prime for the hard task: where d divides M, sums that are 0 mod M are 0 mod d too, so
    who adds modulo d knows part of the answer (0.59 from parities at n = 4, M = 16). With M odd,
    three tokens add up to M or 2M (or 0). Of numbers of sums that are right modulo p, one among
    n(n-1)/2 pairs, or n(n-1)(n-2)/6 triples, is larger by one. Taken as normal numbers, those for
    all p from 2 to 16 together are worth about 2/n, or 3.5/n^(3/2), less for a single p: at most
    0.53 at n = 24, M = 4099. All together reach 0.57 there, where the level is 0.58, 0.66 of 0.68
    at n = 12, M = 1031; as a decision 0.55 of 0.56 at n = 16, M = 4099, 0.62 of 0.63 at n = 10, M =
    499. So the sizes of the grid are long, with large M.

    Counted: Not known: what matters of n tokens is their set of pair sums, and no formula is known
    for how many such sets there are.

    From: [San23] (Match3); theory.md, section 2
""")

Form = Literal["query", "decision"]
LARGEST_TABLE = 1 << 24
"""Largest M of a decision that is drawn or answered: both keep a table of 2M bytes per prompt,
for as many prompts at once as fit.
"""
_AT_ONCE = 1 << 21
_TRIES = 10_000
_PAIRS = 8


@dataclass(frozen=True, kw_only=True)
class ThreeSum(Task):
    """3-Sum modulo M over n tokens, per query or as a decision."""

    name = "threesum"
    words = WORDS
    title = (
        "3-Sum modulo M: do two earlier tokens and the last cancel (query), or do any three cancel"
        " (decision)"
    )
    titles: ClassVar[dict[str, str]] = {
        "query": "3-Sum modulo M: do two earlier tokens and the last cancel",
        "decision": "3-Sum modulo M: do any three cancel",
    }
    usage = "n, M, form=query|decision (default query)"
    source = "[San23]"
    shortcuts = ("pair sums", "residues", "more residues")
    grid = ladder("""
        n=24,M=4099 n=32,M=4099 n=16,M=4099,form=decision n=64,M=4099 n=24,M=16411,form=decision
        n=64,M=32771 n=32,M=32771,form=decision
    """)

    n: int
    M: int
    form: Form = "query"

    def __post_init__(self) -> None:
        if self.form not in ("query", "decision"):
            raise UnknownNameError.of("form of threesum", str(self.form), ("query", "decision"))
        require(self.name, "n", self.n, 2 if self.form == "query" else 3, LARGEST_SIZE)
        least = (self.n**2 + 1) // 2 if self.form == "decision" else 5
        require(self.name, "M", self.M, 5, LARGEST_SIZE, drawn=least)

    def layout(self) -> Layout:
        query = self.form == "query"
        ids = {f"number modulo {self.M}": self.M}
        return Layout(self.n + query, ids, YES_OR_NO, self.n - (not query))

    def level(self, probe: str) -> Fraction:
        """Chance, but for residues, by `told_by_numbers_of_sums`, for pair sums, where a bound is
        stated that probing up to n = 24 kept to, and for "nearest key" per query: of a token
        whose id is near that of q the one behind it is seen, and under label 1 two of them hang
        together with q. An upper bound: enumerated for n <= 4 and M <= 16, this gains less than
        1/(2n^2) where M >= 2n, and less than 1/8 where M < 2n. Small sizes (n < 4, or 6 as a
        decision, or M < 9) have very few different prompts, so that weights for tokens, or the last
        ones, single some of them out. No promise is made there: 1 is stated.
        """
        if (self.n < (4 if self.form == "query" else 6) or self.M < 9) and probe in (
            "counts",
            "last tokens",
            "nearest key",
            *self.shortcuts,
        ):
            return Fraction(1)
        if probe in self.shortcuts:
            sums = comb(self.n, 2 if self.form == "query" else 3)
            gain = (
                told_by_numbers_of_sums(sums, self.M, SMALL_MODULI) / 2
                if probe == "residues"
                else Fraction(self.n**3, 128 * self.M)
            )
            return Fraction(1, 2) + min(Fraction(1, 2), gain)
        if probe == "nearest key" and self.form == "query":
            return Fraction(1, 2) + (
                Fraction(1, 2 * self.n**2) if 2 * self.n <= self.M else Fraction(1, 8)
            )
        return self.chance

    def family(self) -> Family[ThreeSum]:
        """M/n stays when it is a whole number, else M."""
        smallest = 2 if self.form == "query" else 3
        return by_modulus(
            lambda n, M: ThreeSum(n=n, M=M, form=self.form),
            n=self.n,
            M=self.M,
            smallest=smallest,
            least=5,
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        if self.form == "query":
            return Batch(self._query(labels, rng), labels)
        least = (self.n**2 + 1) // 2
        if least > self.M:
            raise SizeError(
                f"{self.spec}: M is {self.M}; decisions over {self.n} tokens are drawn from M ="
                f" {least} on"
            )
        return Batch(
            np.concatenate([self._decision(part, rng) for part in self._parts(labels)]), labels
        )

    def _query(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        M = self.M
        batch = len(labels)
        rows = np.arange(len(labels))
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
        return self._placed(tokens, self.n - 1, np.where(labels == 1, partner, fresh) % M, q, rng)

    def _placed(
        self, tokens: Tokens, end: int, last: Tokens, q: Tokens | None, rng: np.random.Generator
    ) -> Tokens:
        """`tokens` with `last` at a uniform place among 0..end, the token that stood there at
        `end`, and q after it.
        """
        rows = np.arange(len(tokens))
        place = rng.integers(end + 1, size=len(tokens))
        tokens[:, end] = tokens[rows, np.minimum(place, end - 1)]
        tokens[rows, place] = last
        if q is not None:
            tokens[:, -1] = q
        return tokens

    def _parts(self, rows: Tokens) -> list[Tokens]:
        """`rows` in parts of so many that a table of 2M bytes each is small. Raises SizeError
        where one such table is too large.
        """
        if self.M > LARGEST_TABLE:
            raise SizeError(
                f"{self.spec}: M is {self.M}; decisions are drawn and answered up to M = 2^24, two"
                " bytes of memory per value"
            )
        size = max(1, _AT_ONCE // (2 * self.M))
        return [rows[start : start + size] for start in range(0, max(1, len(rows)), size)]

    def _decision(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        tokens = np.empty((len(labels), self.n), np.int64)
        left = np.arange(len(labels))
        for _ in range(_TRIES):
            if not len(left):
                return tokens
            (one, hit_one, good_one), (two, hit_two, good_two) = (
                self._without_triples(len(left), rng) for _ in range(2)
            )
            # what stands in either sequence is as good as hit: it is not new
            for old in self._cancelled_by(np.concatenate((one, two))):
                hit_one[old] = hit_two[old] = True
            own = self._completing(one, hit_two, rng)
            other = self._completing(two, hit_one, rng)
            ok = good_one & good_two & (own >= 0) & (other >= 0)
            drawn = np.empty((int(ok.sum()), self.n), np.int64)
            drawn[:, :-1] = one.T[ok]
            # by symmetry of the two, neither `one` alone nor the last value alone tells the label
            last = np.where(labels[left] == 1, own, other)[ok]
            tokens[left[ok]] = self._placed(drawn, self.n - 1, last, None, rng)
            left = left[~ok]
        raise SizeError(
            f"{self.spec}: prompts with both answers are too rare to be drawn; use a larger M"
        )

    def _without_triples(self, rows: int, rng: np.random.Generator) -> tuple[Tokens, Bools, Bools]:
        """Tokens (n-1, rows) no three of which cancel, the table of their pair sums, and whether
        the row could be filled.
        """
        x = np.empty((self.n - 1, rows), np.int64)
        start = 2 * self.M * np.arange(rows)
        sums = np.zeros(2 * self.M * rows, bool)
        good = np.ones(rows, bool)
        for place in range(self.n - 1):
            x[place] = rng.integers(self.M, size=rows)
            bad = np.arange(rows)
            for _ in range(64):
                low, high = self._cancelled_by(x[place, bad], start[bad])
                bad = bad[sums[low] | sums[high]]
                if not len(bad):
                    break
                x[place, bad] = rng.integers(self.M, size=len(bad))
            good[bad] = False
            sums[x[:place] + (x[place] + start)] = True
        return x, sums, good

    def _cancelled_by(self, values: Tokens, start: Tokens | None = None) -> tuple[Tokens, Tokens]:
        """Where the tables, of 2M sums for each row, have the two sums of two values of [M] that
        cancel `values`, shape (..., rows).
        """
        start = 2 * self.M * np.arange(values.shape[-1]) if start is None else start
        return start + self.M - values, start + (2 * self.M - values) % (2 * self.M)

    def _completing(self, x: Tokens, others: Bools, rng: np.random.Generator) -> Tokens:
        """Shape (rows,): a value that cancels a pair of `x` and none whose sums are in the table
        `others`; -1 where a few tries find none.
        """
        rows = np.arange(x.shape[1])
        one = rng.integers(len(x), size=(_PAIRS, len(rows)))
        two = (one + rng.integers(1, len(x), size=one.shape)) % len(x)
        values = (2 * self.M - x[one, rows] - x[two, rows]) % self.M
        low, high = self._cancelled_by(values)
        free = ~(others[low] | others[high])
        return np.where(free.any(0), values[free.argmax(0), rows], -1)

    def answer(self, tokens: Tokens) -> Tokens:
        """Per query in time n log n per prompt, as a decision in n^2/2 look-ups in a table of 2M
        bytes: SizeError for M > 2^24.
        """
        tokens = self._checked(tokens)
        if self.form == "decision":
            return np.concatenate([self._some_three(part) for part in self._parts(tokens)])
        x = tokens[:, :-1]
        total = (self.M - tokens[:, -1:]) % self.M
        other = (total - x) % self.M
        # sorted by the smaller side of the class, then by side: two that add up to the total stand
        # side by side
        small = np.minimum(x, other)
        keys = np.sort(3 * small + np.sign(x - other) + 1, axis=1)
        left = keys[:, :-1]
        right = keys[:, 1:]
        return (
            (((left % 3 == 0) & (right == left + 2)) | ((left % 3 == 1) & (right == left)))
            .any(axis=1)
            .astype(np.int64)
        )

    def _some_three(self, tokens: Tokens) -> Tokens:
        x = np.ascontiguousarray(tokens.T)
        start = 2 * self.M * np.arange(len(tokens))
        seen = np.zeros(2 * self.M * len(tokens), bool)
        found = np.zeros(len(tokens), bool)
        # of i < place < k the table has k, and i and place are summed: each triple is met once
        for place in range(self.n - 2, 0, -1):
            low, high = self._cancelled_by(x[place + 1], start)
            seen[low] = seen[high] = True
            found |= seen[x[:place] + (x[place] + start)].any(0)
        return found.astype(np.int64)
