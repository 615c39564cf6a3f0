"""The word problem of a group: what is the product of n of its elements? State tracking over
alternating and cyclic groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Composition, Family, Task, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.functions.arrangements import Arrangements, arrangements

WORDS = Words(
    asks="""
        The word problem of a group: what is the product of n of its elements? State tracking over
        alternating and cyclic groups.
    """,
    table="""
        G = C5:   position   0   1   2   3        position   0     1     ...   n-1
                  input      3   4   4   0        input      g_1   g_2   ...   g_n
                  target     .   .   .   1        target     .     .     ...   g_n o ... o g_1
    """,
    rules="""
        Of the cyclic group Cm, id r is the number r, and the product of numbers is their sum modulo
        m. Of the alternating group Ak, id r is the r-th even permutation of 0..k-1, counted from 0,
        in lexicographic order of (p(0), ..., p(k-1)). The element read first acts first: the answer
        sends j to g_n(...g_2(g_1(j))...). In A5, of 60 elements, ids 1 and 3 are (0, 1, 3, 4, 2)
        and (0, 2, 1, 4, 3); their product is (0, 2, 4, 3, 1), id 5.
    """,
    drawn="""
        n >= 2 elements of A3, A4, A5, A6 or of Cm with 2 <= m <= 720, independent and uniform,
        drawn for n >= 8; the chain is that of the products.

        Any n - 1 of the tokens leave the product uniform: no table of any place tells anything. In
        a cyclic group the order does not matter, so the answer is a function of the counts of all
        elements, and who counts exactly has it; so counts may do anything there. A4 has the
        quotient C3, and a model that tracks it alone is right with probability 1/4. A5 and A6 have
        no quotients: there is no smaller group to track.
    """,
    counted="""
        The order of the group, k!/2 or m, for prefixes of any length from 1 to n - 1 [here].

        Prefixes with one product have the same answers, and of two products g != h any continuation
        with product c is answered c o g and c o h, which differ. All products occur.
    """,
    origin="""
        the word problems of A_5, hard for NC^1 (Barrington 1989), and of cyclic groups, in ACC^0;
        Merrill, Petty, Sabharwal, arXiv 2404.08819, compare A_5, A_4 x Z_5 and Z_60
    """,
)

_GROUP = re.compile(r"A([3-6])|C([1-9][0-9]{0,2})")
_LEAST_DRAWN = 8
_LARGEST = 720


@dataclass(frozen=True, kw_only=True)
class Group(Composition, Task):
    """The product of n elements of an alternating or cyclic group."""

    name: ClassVar[str] = "group"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "the word problem of a group: g_1, ..., g_n of A_k or a cyclic one, the first acting first;"
        " answer their product"
    )
    usage: ClassVar[str] = "n, G=A3|A4|A5|A6|C2|C3|...|C720, shift=generators"
    source: ClassVar[str] = "Barrington 1989; arXiv 2404.08819"
    shifts: ClassVar[dict[str, str]] = {
        "generators": (
            "after the first, every element is one of two generators by a fair coin: 0 and 1 of Cm,"
            " the 3-cycle (0 1 2) and the longest even cycle j -> j + 1 of Ak (of the last k - 1"
            " things for even k)"
        )
    }
    grid: ClassVar[tuple[str, ...]] = (
        "n=16,G=C5",
        "n=24,G=A5",
        "n=32,G=A4",
        "n=64,G=A5",
        "n=64,G=C60",
        "n=256,G=A5",
    )

    n: int
    G: str
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE, drawn=_LEAST_DRAWN)
        found = _GROUP.fullmatch(self.G) if isinstance(self.G, str) else None
        if found is None or (found[2] and not 2 <= int(found[2]) <= _LARGEST):
            raise SizeError(
                f"{self.name}: G is {str(self.G)[:24]!r}; it must be A3, A4, A5, A6 or C2 to"
                f" C{_LARGEST}"
            )
        self._check_shift(self.shift)

    @property
    def degree(self) -> int:
        """k of A_k; 0 for a cyclic group."""
        return int(self.G[1:]) if self.G[0] == "A" else 0

    @property
    def _even(self) -> Arrangements | None:
        """The elements of A_k; None for a cyclic group."""
        return arrangements(self.degree, even=True) if self.degree else None

    def layout(self) -> Layout:
        """Two runs: one factor is another one; in a group no product stays the same."""
        order = self._even.order if self._even else int(self.G[1:])
        ids = {f"element of {self.G}": order}
        return Layout(
            length=self.n,
            ids=ids,
            answers=ids,
            prefix=self.n - 1,
            classes=Exact(order),
            runs=TwoRuns.halves(self.n),
            steps=self.n,
            spelling=self._even.spelling if self._even else "",
        )

    def family(self) -> Family[Self]:
        """G stays."""
        return self._growing(f"G = {self.G}", 2)

    def word(self, token: int) -> str:
        return self._even.word(token) if self._even else str(token)

    def level(self, probe: str) -> Fraction:
        """Chance, but for counts: in a commutative group they are all there is (A_3 is C_3), and of
        A_4 they tell the quotient C_3, whose classes have four elements.
        """
        if probe != "counts" or self.degree > 4:
            return self.chance
        return Fraction(1, 4) if self.degree == 4 else Fraction(1)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if self.n < _LEAST_DRAWN:
            raise SizeError(
                f"{self.spec}: n is {self.n}; it is drawn for n of at least {_LEAST_DRAWN}, since a"
                " look at the last few tokens is much of a shorter prompt"
            )
        tokens = rng.integers(self.vocabulary, size=(batch, self.n))
        if self.shift != PLAIN:
            tokens[:, 1:] = self._generators()[rng.integers(2, size=(batch, self.n - 1))]
        if self._even:
            return Batch(tokens, self._even.product(tokens))
        return Batch(tokens, tokens.sum(axis=1) % self.vocabulary)

    def _generators(self) -> Tokens:
        if not self._even:
            return np.array([0, 1])
        k = self.degree
        three = [1, 2, 0, *range(3, k)]
        still = 1 - k % 2
        cycle = [*range(still), *range(still + 1, k), still]
        return self._even.ids(np.array([three, cycle]))

    def intermediate(self, tokens: Tokens) -> Tokens:
        """The products g_1, g_2 o g_1, ... (batch, n). Raises SizeError for other prompts."""
        tokens = self._checked(tokens)
        return self._even.chain(tokens) if self._even else tokens.cumsum(axis=1) % self.vocabulary

    def answer_word(self, answer: int) -> str:
        return self.word(answer)

    @property
    def reply(self) -> tuple[str, int]:
        return self._even.reply if self._even else ("number", self.answers)
