"""State tracking: parity, ones modulo m, products in groups; and what each token rearranges."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, pairwise, permutations
from math import factorial, sqrt
from typing import Any, ClassVar

from flint import fmpz

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import shown, size
from separatrix.tasks.base.layout import YES_OR_NO, Growth, Layout, TwoRuns
from separatrix.tasks.base.task import PLAIN, Batch, Composition, Task, Tokens

MOST_THINGS = 6
"""Largest k: the table of all products of two permutations has (k!)^2 entries."""


@dataclass(frozen=True)
class Arrangements:
    """The permutations p of 0..k-1, or the even ones, in lexicographic order of (p(0), ...,
    p(k-1)). Id r is the r-th of them, counted from 0; the one read first acts first.
    """

    k: int
    even: bool

    @cached_property
    def rows(self) -> Tokens:
        """(order, k): row r is permutation r."""
        every = permutations(range(self.k))
        return np.array([p for p in every if not (self.even and inversions(p) % 2)], np.int64)

    @property
    def order(self) -> int:
        return factorial(self.k) // (2 if self.even and self.k > 1 else 1)

    def ids(self, permutations: Tokens) -> Tokens:
        """The ids of permutations (..., k), which must be among these."""
        # as digits to base k, the first one highest, they stand in the order of the numbers
        base = self.k ** np.arange(self.k)[::-1]
        return np.searchsorted(self.rows @ base, permutations @ base)

    @cached_property
    def table(self) -> Tokens:
        """(order^2,): entry a order + b is the id of b o a, a acting first."""
        return np.concatenate([self.ids(self.rows[:, first]) for first in self.rows])

    def product(self, tokens: Tokens) -> Tokens:
        """The products of rows (batch, n) of ids: of neighbours, then of these, and so on."""
        while (n := tokens.shape[1]) > 1:
            # the identity, id 0, makes their number even
            tokens = np.pad(tokens, ((0, 0), (0, n % 2)))
            tokens = self.table.take(tokens[:, ::2] * self.order + tokens[:, 1::2])
        return tokens[:, 0]

    def chain(self, tokens: Tokens) -> Tokens:
        """(batch, n): the products of the first 1, 2, ..., n ids of each row."""
        chain = tokens.T.copy()
        for state, step in pairwise(chain):
            step[:] = self.table.take(state * self.order + step)
        return chain.T


@lru_cache
def arrangements(k: int, *, even: bool = False) -> Arrangements:
    """The permutations of k things, or the even ones. Their tables are made once."""
    return Arrangements(k, even)


def inversions(p: tuple[int, ...]) -> int:
    return sum(one > other for one, other in combinations(p, 2))


_LEVELLED = 4096
"""Largest n whose level is computed exactly; beyond, it is that of this n, which is more."""


class Ones(Task):
    """How many of n bits are ones, modulo the number of answers."""

    n: int = size(2)

    def _laid(self, answers: Mapping[str, int], bits: str = "") -> Layout:
        """Two runs: one bit more is a one, and counts that differ by 1 differ modulo every m."""
        return Layout(
            self.n,
            {"bit": 2},
            answers,
            self.n - 1,
            Exact(sum(answers.values())),
            runs=TwoRuns.halves(self.n),
            grows=Growth(bits),
        )

    def answer(self, tokens: Tokens) -> Tokens:
        return self._checked(tokens).sum(axis=1) % self.answers


class Parity(Ones):
    """Parity: is the number of ones among n bits odd?

        n = 5:   position   0   1   2   3   4
                 input      1   0   1   1   0
                 target     .   .   .   .   1

    Ids are the bits; the answer is their sum modulo 2.

    Drawn: Independent fair bits. Any n - 1 of them leave the answer a fair coin, so that no look at
    fewer than all tells anything.

    The answer is a function of the number of ones: who counts all n exactly has it, so counts may
    do anything. A threshold on that number alone is right in 2^(n-1) + binom(n-1, floor((n-1)/2))
    of the 2^n prompts, which is 0.57 at n = 32.

    Counted: 2, for prefixes of any length t from 1 to n - 1: their own parity [here]. Any
    continuation is answered differently after an even and after an odd prefix.

    From: the parity function; for transformers Hahn, arXiv 1906.06755; modular of m = 2 asks the
    same of a uniform number of ones, group of C2 the same of the same bits
    """

    name = "parity"
    title = "parity: answer 1 if the number of ones among n bits is odd"
    source = "arXiv 1906.06755"
    shifts: ClassVar[dict[str, str]] = {
        "few": (
            "after the first bit, which stays fair, a bit is one with probability 1/sqrt(n): most"
            " prompts have few ones"
        )
    }
    grid = ("n=32", "n=48", "n=64", "n=256", "n=1024", "n=4096")

    def layout(self) -> Layout:
        return self._laid(YES_OR_NO, "bits")

    def level(self, probe: str) -> Fraction:
        """Counts are all there is; the nearest key tells the last bit or that all are equal."""
        if probe == "counts":
            return Fraction(1)
        n = min(self.n, _LEVELLED)
        gain = 2 - n % 2 if probe == "nearest key" else 0
        return Fraction((1 << (n - 1)) + gain, 1 << n)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        shape = (batch, self.n)
        tokens = rng.integers(2, size=shape)
        if self.shift == "few":
            ones = rng.random(shape) < 1 / sqrt(self.n)
            ones[:, 0] = tokens[:, 0]
            tokens = ones.astype(np.int64)
        return Batch(tokens, tokens.sum(axis=1) % 2)


class Modular(Ones):
    """Modular counting: how many of n bits are ones, modulo m?

        n = 6, m = 3:   position   0   1   2   3   4   5
                        input      1   0   1   1   0   1
                        target     .   .   .   .   .   1

    Ids are the bits; the answer is the number of ones modulo m. Above: 4 = 1 modulo 3.

    Drawn: n >= m >= 2. The number of ones is uniform below C, the largest multiple of m with C <= n
    + 1, so that answers are uniform; the places of the ones are uniform.

    The answer is a function of the number of ones: who counts all n exactly has it. Everything else
    sees that number roughly. To tell it up to an interval is worth little: whatever intervals of
    numbers the m answers are guessed on, that is right with probability at most 1/m + (m-1)/C,
    since an interval of k numbers holds at most ceil(k/m) of one residue. That is the level of
    every probe but exact counts, which are all there is. (With independent bits the number would
    lie within a few standard deviations, sqrt(n)/2 each, of n/2, and m thresholds on it would be
    right most of the time.)

    Counted: m, for the first n - 1 bits [here]: their number of ones modulo m. All m occur, and one
    more bit keeps them apart.

    From: the languages of strings whose number of ones is a multiple of m, for which see Merrill,
    Petty, Sabharwal, arXiv 2404.08819
    """

    name = "modular"
    title = "modular counting: how many of n bits are ones, modulo m"
    source = "arXiv 2404.08819"
    grid = ("n=48,m=3", "n=64,m=5", "n=96,m=4", "n=256,m=7", "n=1024,m=16", "n=4096,m=60")

    n: int = size(lambda task: task.m)
    m: int = size(2)

    def layout(self) -> Layout:
        return self._laid({f"number modulo {self.m}": self.m})

    @property
    def numbers(self) -> int:
        """C: how many numbers of ones are drawn, from 0 on."""
        return (self.n + 1) // self.m * self.m

    def level(self, probe: str) -> Fraction:
        if probe in ("constant", "counts"):
            return Fraction(1) if probe == "counts" else self.chance
        return min(Fraction(1), self.chance + Fraction(self.m - 1, self.numbers))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = np.empty((batch, self.n), np.int64)
        tokens[:] = np.arange(self.n) < rng.integers(self.numbers, size=(batch, 1))
        rng.permuted(tokens, axis=1, out=tokens)
        return Batch(tokens, tokens.sum(axis=1) % self.m)


_LEAST_DRAWN = 8


class Product(Composition, Task):
    """The product of n elements of a group, independent and uniform, the first acting first."""

    n: int = size(2)

    @property
    @abstractmethod
    def elements(self) -> Arrangements | None:
        """The elements as permutations, or None where they are numbers that are added."""

    def _laid(self, meaning: str, classes: Exact) -> Layout:
        """Two runs: one factor is another one; in a group no product stays the same."""
        ids = {meaning: classes.value}
        spelling = ""
        if self.elements:
            last = self.elements.k - 1
            spelling = f"A permutation p is written as the arrangement [p(0),...,p({last})]."
        told: dict[str, Any] = {"spelling": spelling, "steps": self.n}
        return Layout(self.n, ids, ids, self.n - 1, classes, None, TwoRuns.halves(self.n), **told)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(self.vocabulary, size=(batch, self.n))
        return Batch(tokens, self.answer(tokens))

    def drawn_from(self, size: str) -> int:
        return _LEAST_DRAWN if size == "n" else 0

    def chain(self, tokens: Tokens) -> Tokens:
        """The products p_1, p_2 o p_1, ..., (batch, n). Raises SizeError for no instance."""
        tokens = self._checked(tokens)
        if self.elements:
            return self.elements.chain(tokens)
        return tokens.cumsum(axis=1) % self.vocabulary

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return self.elements.product(tokens) if self.elements else tokens.sum(1) % self.vocabulary

    def word(self, token: int) -> str:
        elements = self.elements
        return str(elements.rows[token].tolist()).replace(" ", "") if elements else str(token)

    def answer_word(self, answer: int) -> str:
        return self.word(answer)

    @property
    def reply(self) -> tuple[str, int]:
        return ("arrangement", self.elements.k) if self.elements else ("number", self.answers)


class Permutation(Product):
    """Permutation composition: where do k things stand after n rearrangements? State tracking over
    the symmetric group S_k.

        k = 3:   position   0   1   2        position   0     1     ...   n-1
                 input      1   3   4        input      p_1   p_2   ...   p_n
                 target     .   .   1        target     .     .     ...   p_n o ... o p_1

    Id r is the r-th permutation of 0..k-1, counted from 0, in lexicographic order of (p(0), ...,
    p(k-1)); id 0 is the identity. The permutation read first acts first: the answer sends j to
    p_n(...p_2(p_1(j))...). Above: p_1 = (0, 2, 1), p_2 = (1, 2, 0), p_3 = (2, 0, 1) send 0 to 0, 1,
    0; 1 to 2, 0, 2; and 2 to 1, 2, 1; so the product is (0, 2, 1), id 1.

    Drawn: n >= 8 permutations, independent and uniform; the chain is that of the products.

    Any n - 1 of the tokens leave the product uniform, so that no token by itself, and no sum of
    what single tokens say, tells anything: neither a table of any place nor a regression on counts.
    What does tell is the parity: the sign of the product is the product of the signs, and a model
    that tracks this bit alone is right with probability 2/k!. (Likewise for the images of S_4 in
    S_3.) It is state tracking of a smaller group, not a way around it, and no sampler over all of
    S_k avoids it: 0.33 where k = 3, 0.08 where k = 4, which is why the sizes below begin with k =
    4. (Of fewer than 8 tokens a look at the last three is much of the prompt. Where k = 2 the
    parity is all there is: the answer is whether id 1 occurs an odd number of times.)

    Counted: k!, for prefixes of any length t from 1 to n - 1 [here].

    Prefixes with one product have the same answers. Of two with products g != h, any continuation
    with product c is answered c o g and c o h, which differ. All k! products occur: p_1 can be any
    permutation and the others the identity.

    From: the word problem of S_5 (Barrington 1989); Merrill, Petty, Sabharwal, arXiv 2404.08819;
    theory.md, section 8
    """

    name = "permutation"
    title = (
        "permutation composition: p_1, ..., p_n of k things, the first acting first; answer their"
        " product"
    )
    source = "Barrington 1989; arXiv 2404.08819"
    shifts: ClassVar[dict[str, str]] = {
        "swaps": "after the first, every permutation exchanges two neighbours, uniform i and i + 1"
    }
    shortcuts = ("parities",)
    grid = ("n=16,k=4", "n=32,k=4", "n=16,k=5", "n=64,k=5", "n=256,k=5")

    k: int = size(2, MOST_THINGS, told="things that are permuted")

    @property
    def elements(self) -> Arrangements:
        return arrangements(self.k)

    def layout(self) -> Layout:
        order = Exact(factorial(self.k), f"{self.k}!")
        return self._laid(f"permutation of {self.k} things", order)

    def level(self, probe: str) -> Fraction:
        """Parities tell the sign, and no more: of the groups that S_k has as an image only this
        one commutes. Where k = 2 they and counts are all there is.
        """
        if self.k == 2 and probe in ("counts", "nearest key", "parities"):
            return Fraction(1)
        return Fraction(2, self.answers) if probe == "parities" else self.chance

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens, targets = super().draw(batch, rng)
        if self.shift == PLAIN:
            return Batch(tokens, targets)
        tokens[:, 1:] = self._swaps[rng.integers(self.k - 1, size=(batch, self.n - 1))]
        return Batch(tokens, self.answer(tokens))

    @property
    def _swaps(self) -> Tokens:
        """Of two neighbours each."""
        identity = np.tile(np.arange(self.k), (self.k - 1, 1))
        left = np.arange(self.k - 1)
        identity[left, left], identity[left, left + 1] = left + 1, left
        return self.elements.ids(identity)


_GROUP = re.compile(r"A([3-6])|C([1-9][0-9]{0,2})")
_LARGEST = 720


class Group(Product):
    """The word problem of a group: what is the product of n of its elements? State tracking over
    alternating and cyclic groups.

        G = C5:   position   0   1   2   3        position   0     1     ...   n-1
                  input      3   4   4   0        input      g_1   g_2   ...   g_n
                  target     .   .   .   1        target     .     .     ...   g_n o ... o g_1

    Of the cyclic group Cm, id r is the number r, and the product of numbers is their sum modulo m.
    Of the alternating group Ak, id r is the r-th even permutation of 0..k-1, counted from 0, in
    lexicographic order of (p(0), ..., p(k-1)). The element read first acts first: the answer sends
    j to g_n(...g_2(g_1(j))...). In A5, of 60 elements, ids 1 and 3 are (0, 1, 3, 4, 2) and (0, 2,
    1, 4, 3); their product is (0, 2, 4, 3, 1), id 5.

    Drawn: n >= 8 elements, independent and uniform; the chain is that of the products.

    Any n - 1 of the tokens leave the product uniform: no table of any place tells anything. In a
    cyclic group the order does not matter, so the answer is a function of the counts of all
    elements, and who counts exactly has it; so counts may do anything there. A4 has the quotient
    C3, and a model that tracks it alone is right with probability 1/4. A5 and A6 have no quotients:
    there is no smaller group to track.

    Counted: The order of the group, k!/2 or m, for prefixes of any length from 1 to n - 1 [here],
    as of permutation.

    From: the word problems of A_5, hard for NC^1 (Barrington 1989), and of cyclic groups, in ACC^0;
    Merrill, Petty, Sabharwal, arXiv 2404.08819, compare A_5, A_4 x Z_5 and Z_60
    """

    name = "group"
    title = (
        "the word problem of a group: g_1, ..., g_n of A_k or a cyclic one, the first acting first;"
        " answer their product"
    )
    usage = "n, G=A3|A4|A5|A6|C2|C3|...|C720"
    source = "Barrington 1989; arXiv 2404.08819"
    grid = ("n=16,G=C5", "n=24,G=A5", "n=32,G=A4", "n=64,G=A5", "n=64,G=C60", "n=256,G=A5")

    G: str

    def __post_init__(self) -> None:
        super().__post_init__()
        found = _GROUP.fullmatch(self.G) if isinstance(self.G, str) else None
        if found is None or (found[2] and not 2 <= int(found[2]) <= _LARGEST):
            raise SizeError(
                f"{self.name}: G is {shown(self.G)}; it must be A3, A4, A5, A6 or C2 to C{_LARGEST}"
            )

    @property
    def degree(self) -> int:
        """k of A_k; 0 for a cyclic group."""
        return int(self.G[1:]) if self.G[0] == "A" else 0

    @property
    def elements(self) -> Arrangements | None:
        return arrangements(self.degree, even=True) if self.degree else None

    def layout(self) -> Layout:
        order = self.elements.order if self.elements else int(self.G[1:])
        return self._laid(f"element of {self.G}", Exact(order))

    def level(self, probe: str) -> Fraction:
        """Counts tell all of a commutative group (A_3 is C_3), of A_4 the quotient C_3."""
        if probe != "counts" or self.degree > 4:
            return self.chance
        return Fraction(1, 4) if self.degree == 4 else Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """A group of rearrangements to follow: permutations, even ones, or turns of cycles."""

    things: int
    followed: tuple[int, ...]
    """Things whose places together tell the answer."""
    swaps: int
    """Most exchanges of two things that one token's rearrangement is made of."""
    blocks: tuple[int, ...]
    """How many things there are in each block of things that change places among themselves."""
    order: int
    added: int
    """The largest number that a token adds, of numbers modulo the order; 0 where products do not
    commute.
    """
    rows: Callable[[], tuple[Tokens, Tokens]]
    """Where every token, and where every answer, sends each thing: (tokens, things) and (answers,
    things).
    """

    @cached_property
    def tables(self) -> tuple[Tokens, Tokens]:
        """`rows`, made once."""
        return self.rows()


def tracked(task: Task) -> Tracked | None:
    """What a task asks to follow, whatever it is called; None for a task of another kind."""
    match task:
        case Parity() | Modular():
            return _cycles(task.answers, 1)
        case Permutation():
            return _permutations(task.k, even=False)
        case Group(degree=0, vocabulary=m):
            return _cycles(m, m - 1)
        case Group(degree=k):
            return _permutations(k, even=True)
        case _:
            return None


def _permutations(k: int, *, even: bool) -> Tracked:
    every = arrangements(k, even=even)
    if every.order < 4:
        # id r is the number r: two of these arrangements in turn are their sum
        return _cycles(every.order, every.order - 1)
    # as many exchanges as things less cycles: of a cycle k - 1, which is odd where k is even
    swaps = k - 1 - (even and k % 2 == 0)
    # the last thing stands where none of the others does, of even permutations the last two
    followed = tuple(range(max(1, k - 1 - even)))
    return Tracked(
        things=k,
        followed=followed,
        swaps=swaps,
        blocks=(k,),
        order=every.order,
        added=0,
        rows=lambda: (every.rows, every.rows),
    )


def _cycles(m: int, added: int) -> Tracked:
    """Numbers modulo m, as turns of a cycle for each prime power in m; tokens all, or up to one."""
    lengths = [int(p) ** power for p, power in fmpz(m).factor()]
    starts = [sum(lengths[:i]) for i in range(len(lengths))]

    def turned(numbers: Tokens) -> Tokens:
        parts = [
            start + (np.arange(length) + numbers[:, None]) % length
            for start, length in zip(starts, lengths, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    return Tracked(
        things=sum(lengths),
        followed=tuple(starts),
        swaps=sum(lengths) - len(lengths),
        blocks=tuple(lengths),
        order=m,
        added=added,
        rows=lambda: (turned(np.arange(added + 1)), turned(np.arange(m))),
    )
