"""Permutation composition: where do k things stand after n rearrangements? State tracking over
the symmetric group S_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial
from typing import ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Composition, Family, Task, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.functions.arrangements import MOST_THINGS, Arrangements, arrangements

WORDS = Words(
    asks="""
        Permutation composition: where do k things stand after n rearrangements? State tracking over
        the symmetric group S_k.
    """,
    table="""
        k = 3:   position   0   1   2        position   0     1     ...   n-1
                 input      1   3   4        input      p_1   p_2   ...   p_n
                 target     .   .   1        target     .     .     ...   p_n o ... o p_1
    """,
    rules="""
        Id r is the r-th permutation of 0..k-1, counted from 0, in lexicographic order of (p(0),
        ..., p(k-1)); id 0 is the identity. The permutation read first acts first: the answer sends
        j to p_n(...p_2(p_1(j))...). Above: p_1 = (0, 2, 1), p_2 = (1, 2, 0), p_3 = (2, 0, 1) send 0
        to 0, 1, 0; 1 to 2, 0, 2; and 2 to 1, 2, 1; so the product is (0, 2, 1), id 1.
    """,
    drawn="""
        n >= 2 permutations of 2 <= k <= 6 things, independent and uniform, drawn for n >= 8; the
        chain is that of the products.

        Any n - 1 of the tokens leave the product uniform, so that no token by itself, and no sum of
        what single tokens say, tells anything: neither a table of any place nor a regression on
        counts. What does tell is the parity: the sign of the product is the product of the signs,
        and a model that tracks this bit alone is right with probability 2/k!. (Likewise for the
        images of S_4 in S_3.) It is state tracking of a smaller group, not a way around it, and no
        sampler over all of S_k avoids it: 0.33 where k = 3, 0.08 where k = 4, which is why the
        sizes below begin with k = 4. (Of fewer than 8 tokens a look at the last three is much
        of the prompt, and comparing all of them with the last one tells more than chance: for k = 3
        by 0.05 where n = 3, 0.0002 where n = 7. Where k = 2 the parity is all there is: the answer
        is whether id 1 occurs an odd number of times.)

        Every shift keeps p_1 uniform and with it the answer.
    """,
    counted="""
        k!, for prefixes of any length t from 1 to n - 1 [here].

        Prefixes with one product have the same answers. Of two with products g != h, any
        continuation with product c is answered c o g and c o h, which differ. All k! products
        occur: p_1 can be any permutation and the others the identity.
    """,
    origin="""
        the word problem of S_5 (Barrington 1989); Merrill, Petty, Sabharwal, arXiv 2404.08819;
        theory.md, section 8
    """,
)

_LEAST_DRAWN = 8
_LEVELLED = 4096
"""Largest n whose level is computed exactly."""


@dataclass(frozen=True, kw_only=True)
class Permutation(Composition, Task):
    """The product of n permutations of k things."""

    name: ClassVar[str] = "permutation"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "permutation composition: p_1, ..., p_n of k things, the first acting first; answer their"
        " product"
    )
    usage: ClassVar[str] = "n, k (things that are permuted), shift=swaps|generators"
    source: ClassVar[str] = "Barrington 1989; arXiv 2404.08819"
    shifts: ClassVar[dict[str, str]] = {
        "swaps": (
            "after the first, every permutation exchanges two neighbours: a uniform i with i + 1"
        ),
        "generators": (
            "after the first, every permutation is (0 1) or the cycle j -> j + 1, by a fair coin"
        ),
    }
    shortcuts: ClassVar[tuple[str, ...]] = ("parities",)
    grid: ClassVar[tuple[str, ...]] = (
        "n=16,k=4",
        "n=32,k=4",
        "n=16,k=5",
        "n=64,k=5",
        "n=256,k=5",
    )

    n: int
    k: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE, drawn=_LEAST_DRAWN)
        require(self.name, "k", self.k, 2, MOST_THINGS)
        self._check_shift(self.shift)

    @property
    def _every(self) -> Arrangements:
        return arrangements(self.k)

    def layout(self) -> Layout:
        """Two runs: one factor is another one; in a group no product stays the same."""
        ids = {f"permutation of {self.k} things": factorial(self.k)}
        return Layout(
            length=self.n,
            ids=ids,
            answers=ids,
            prefix=self.n - 1,
            classes=Exact(factorial(self.k), f"{self.k}!"),
            runs=TwoRuns.halves(self.n),
            steps=self.n,
            spelling=self._every.spelling,
        )

    def family(self) -> Family[Self]:
        """k stays."""
        return self._growing(f"k = {self.k}", 2)

    def word(self, token: int) -> str:
        return self._every.word(token)

    def level(self, probe: str) -> Fraction:
        """Parities tell the sign, and no more: of the groups that S_k has as an image only this
        one commutes. Else chance, but for k = 2, where the answer is whether id 1 occurs an odd
        number of times.

        Counts: guessing by whether id 1 occurs more than m times is right in 2^(n-1) +- binom(n-1,
        m) of the 2^n prompts. For binom(n, 0) - binom(n, 1) + ... up to m is +- binom(n-1, m); the
        middle m is best. The nearest key: an earlier token unlike the last one is followed by one
        like it, so it tells the last token or that all n are equal. For even n both prompts of
        equal tokens have answer 0, and of the others 2^(n-1) have 1: right in 2 + 2^(n-1). For odd
        n the two differ. Of the others, those that end in b have parity 1 - b in 2^(n-2) cases, one
        more than parity b: right in 1 + 2^(n-1).
        """
        if probe == "parities":
            return Fraction(2, self.answers)
        if self.k > 2 or probe not in ("counts", "nearest key"):
            return self.chance
        # binom(n-1, m)/2^n falls with n, so that this is no less than the level
        n = min(self.n, _LEVELLED)
        gain = comb(n - 1, (n - 1) // 2) if probe == "counts" else 2 - n % 2
        return Fraction((1 << (n - 1)) + gain, 1 << n)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if self.n < _LEAST_DRAWN:
            raise SizeError(
                f"{self.spec}: with fewer than {_LEAST_DRAWN} tokens, a guess from a few of them is"
                f" right too often; draw with n of at least {_LEAST_DRAWN}"
            )
        tokens = rng.integers(self.vocabulary, size=(batch, self.n))
        if self.shift != PLAIN:
            moves = _swaps(self.k) if self.shift == "swaps" else _generators(self.k)
            tokens[:, 1:] = moves[rng.integers(len(moves), size=(batch, self.n - 1))]
        return Batch(tokens, self._every.product(tokens))

    def intermediate(self, tokens: Tokens) -> Tokens:
        """The products p_1, p_2 o p_1, ..., all n of them, shape (batch, n). Raises SizeError
        for tokens that are no instance.
        """
        return self._every.chain(self._checked(tokens))

    def answer_word(self, answer: int) -> str:
        return self.word(answer)

    @property
    def reply(self) -> tuple[str, int]:
        return self._every.reply

    def answer(self, tokens: Tokens) -> Tokens:
        return self._every.product(self._checked(tokens))


def _swaps(k: int) -> Tokens:
    """The ids of the exchanges of i with i + 1."""
    identity = np.tile(np.arange(k), (k - 1, 1))
    left = np.arange(k - 1)
    identity[left, left], identity[left, left + 1] = left + 1, left
    return arrangements(k).ids(identity)


def _generators(k: int) -> Tokens:
    return np.array([_swaps(k)[0], arrangements(k).ids(np.roll(np.arange(k), -1))])
