"""The adversaries of Theorems VI and VII, as far as both proofs go the same way: from R_2 to two
prompts. Source: theory.md, section 11.

As in the proofs: every cache and read is fixed one by one, in their order, by keeping its most
frequent value; the sets Z_1, T, Z_2, ..., Z_{L-1} and the families R_2, ..., R_L; both settings of
every flag. Asserted on the way (`StepBroken`):

- query: a read is fixed only where its query is one for the whole family, whatever the contents
  that the proof says do not matter;
- values, price: no message has more values than declared, no step fixes more messages of a kind
  than its price counts, and never fewer prefixes are left than was paid for;
- class: the state behind a content of z_1 does not depend on what stands before it;
- density: R_l keeps at least 2^-X_l of all prefixes, unless (B_l) failed before, and Lemma J finds
  what it promises where (B_l) holds;
- known: D(l), (i) and (ii): what is known at the tokens of a content is the same for all of R_l;
- causal: it depends on no later token.

What differs: functions z_l range over sets that are given (all functions, where they are few
enough), and densities refer to the product of these sets. Bad tuples are counted, not bounded. At
sizes that can be enumerated (A), (B_l) and (C) hold only where few messages have more than one
value. Elsewhere the adversary goes on with what really survives, and succeeds if two z_L that are
left differ at a place that is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from adversaries.classes_of_z_1 import Pick, Spread, most_frequent_class, spread_over
from adversaries.knowledge import Known
from adversaries.ledger import Ledger
from adversaries.many_contents import Content, Contents
from adversaries.many_readings import ManyReadings, ManyReadingsSizes, Prefix, joined
from adversaries.prices import Choice, Prices
from adversaries.rectangles import rectangle
from separatrix.core.errors import SizeError
from separatrix.protocols.collision import AdversaryFailed, Collision, collide
from separatrix.protocols.one_reading import Entries

MOST_PREFIXES = 1 << 17
"""Most prefixes z_L, ..., z_2 that an adversary looks at."""

Functions = Sequence[Entries]
"""The z_l that are tried, entry by entry."""


@dataclass(frozen=True)
class Play:
    """How an adversary ended: with a collision; `left` are the sizes of R_2, ..., R_L, `asserted`
    what was asserted how often.

    `promised`: all functions were tried and (A), (B_l), (C) hold, so that it had to end so.
    """

    collision: Collision
    left: tuple[int, ...]
    asserted: Counter[str]
    promised: bool


class Adversary(ABC):
    """One run of a proof against one protocol.

    `functions` are the z_L, ..., z_2 to try (all, if None); `pick` chooses the class of z_1, and
    anything but the default breaks the proof. Raises SizeError for another theorem's sizes, a
    choice that does not fit, or too many functions.
    """

    theorem: ClassVar[str]

    def __init__(
        self,
        line: ManyReadings,
        choice: Choice,
        functions: Sequence[Functions] | None = None,
        *,
        pick: Pick = most_frequent_class,
    ) -> None:
        sizes = line.sizes
        if sizes.theorem != self.theorem:
            raise SizeError(
                f"{sizes} has {sizes.R} reading layers for {sizes.L} functions: that is Theorem"
                f" {sizes.theorem}'s, not {self.theorem}'s"
            )
        self.line = line
        self.sizes = sizes
        self.prices = Prices(sizes, choice)
        self.choice = choice
        self.ledger = Ledger(self.prices)
        self.contents = Contents(self.prices)
        self.functions = _functions(sizes, functions)
        self.left: list[int] = []
        self.torn = False
        """Whether contents of one Z_1 lead to two states, as only another `pick` can make them."""
        self._pick = pick
        self._whole = functions is None
        self._promised = self.prices.class_holds()
        self._short = False
        """Whether Lemma J once found less than the share that X_l pays for."""

    def play(self) -> Play:
        """Every step, to two prompts. Raises StepBroken where an assertion fails, AdversaryFailed
        where too little survives.
        """
        family = self._first_family(self._all_prefixes())
        self._check(2, family)
        for level in range(2, self.sizes.L):
            family = self._step(level, family)
            self._check(level + 1, family)
        promised = self._promised and self._whole and self.prices.ends()
        collision = self._end(family, promised)
        return Play(collision, tuple(self.left), self.ledger.asserted, promised)

    # D(2)

    @abstractmethod
    def _first_family(self, family: list[Prefix]) -> list[Prefix]:
        """R_2 of all prefixes, with Z_1 and T for each group of w_2."""

    @abstractmethod
    def _state(self, prefix: Prefix, gamma: int, z_1: Entries) -> Hashable:
        """What must be one behind all contents of z_1 of a group."""

    def _spread(self, gamma: int, family: list[Prefix]) -> Spread:
        """Z_1 and T of a group: contents with one state behind them."""
        prices = self.prices
        low = gamma * prices.m_
        every = list(product(range(low, low + prices.m_), repeat=self.sizes.t))
        classes: dict[Hashable, list[Entries]] = {}
        for content in every:
            classes.setdefault(self._state(family[0], gamma, content), []).append(content)
        self.ledger.require(
            "class",
            len(most_frequent_class(classes)) * prices.states() >= len(every),
            "the largest class has less than its share of {} contents of z_1",
            len(every),
        )
        pool = self._pick(classes)
        found = spread_over(pool, prices.contents(1), self.choice.x, prices.Y(1))
        if len(found.values) < prices.Y(1):
            raise AdversaryFailed(
                self.theorem,
                "A",
                f"a class of {len(pool)} contents of z_1 takes {len(found.values)} values",
                holds=prices.class_holds(),
            )
        states = [self._state(family[0], gamma, content) for content in found.contents]
        self.torn = self.torn or len(set(states)) > 1
        for content, state in zip(found.contents, states, strict=True):
            for prefix in family:
                self.ledger.require(
                    "class",
                    self._state(prefix, gamma, content) == state,
                    "the state behind z_1 depends on the functions before it",
                )
        return found

    # D(l) to D(l+1)

    def _step(self, level: int, family: list[Prefix]) -> list[Prefix]:
        """R_{l+1} from R_l, with Z_l."""
        prices = self.prices
        ledger = self.ledger
        contents = self.contents
        middle = level - 1 + self.sizes.shift
        family = self._choose(level, family)
        ledger.open(prices.added(level), family)
        several = [contents.part(level, z) for z in contents.chosen[level]]
        behind = list(contents.all(level))

        # 1 and 2: the caches, then the reads of z_l's tokens, layer by layer
        for j in range(self.sizes.shift, middle + 1):
            family = ledger.cache(family, j, lambda P: P)
        for j in range(1, middle + 1):
            family = self._fix_own(family, j, several, behind[0])
        # 3: the reads of lower tokens that were put off; their queries know nothing of z_l
        if not prices.flag(level):
            grouped = level == 2 and not self.sizes.shift
            for lower, s, i in contents.lower(level, joined=grouped):
                asked = [(part, *one) for part in several for one in lower]
                family = ledger.read(family, middle, self._queries(asked, s + 1, i, middle - 1))
        # 4: what w reads; nor does its query know z_l
        for content in behind:
            asked = [(part, *content) for part in several]
            family = ledger.read(family, middle + 1, self._queries(asked, -1, 0, middle))
        # 5: the group before w
        if not prices.flag(level + 1):
            return self._fix_before_w(family, middle + 1, level + 1)
        family = ledger.cache(family, middle + 1, lambda P: P)
        family = self._fix_own(family, middle + 1, several, behind[0])
        for lower, s, i in contents.lower(level, joined=False):
            asked = [(part, *one) for part in several for one in lower]
            # without f_l a query may know z_l, so that each is paid by itself
            for group in [asked] if prices.flag(level) else [[one] for one in asked]:
                queries = self._queries(group, s + 1, i, middle)
                family = ledger.read(family, middle + 1, queries)
        return family

    def _fix_own(
        self, family: list[Prefix], j: int, several: list[Entries], behind: Content
    ) -> list[Prefix]:
        """What the tokens of z_l read in layer j, for each content of z_l."""
        for part in several:
            for i in range(len(part)):
                queries = self._queries([(part, *behind)], 0, i, j - 1)
                family = self.ledger.read(family, j, queries)
        return family

    def _fix_before_w(self, family: list[Prefix], j: int, level: int) -> list[Prefix]:
        """c_j just before w, for every content that ends there."""
        for content in self.contents.all(level, ws=1):

            def cut(prefix: Prefix, content: Content = content) -> Prefix:
                return self.line.along(prefix, content, len(content) - 1)

            family = self.ledger.cache(family, j, cut)
        return family

    def _choose(self, level: int, family: list[Prefix]) -> list[Prefix]:
        """Lemma J: Z_l, and the prefixes before it that all of Z_l can follow."""
        prices = self.prices
        several = prices.contents(level)
        points = self.contents.points(level)
        least = prices.Y(level)
        below = self._count_of_all(level + 1)
        paid = 2 * prices.values(prices.total(level)) ** several
        found = rectangle(
            family,
            self.functions[self.sizes.L - level],
            several,
            # for level 2 a value counts once in each group of w_2
            lambda z: frozenset((gamma, z[place]) for gamma, place in points),
            least,
            -(-below // paid),
        )
        # the promise of Lemma J hangs on the share that R_l has
        holds = prices.survives(found.bad, found.tuples, level) and not self._short
        self._promised = self._promised and holds
        if not found.prefixes:
            what = f"no {several} contents of z_{level} that are left take {least} values"
            raise AdversaryFailed(self.theorem, f"B_{level}", what, holds=holds)
        self.ledger.require(
            "density",
            found.together * below ** (several - 1) >= len(family) ** several,
            "fewer prefixes stand with a tuple, on average, than Jensen's inequality says",
        )
        enough = len(found.prefixes) * paid >= below
        self.ledger.require("density", enough or not holds, "Lemma J finds less than it says")
        self._short = self._short or not enough
        self.contents.chosen[level] = found.contents
        return found.prefixes

    # the end

    def _end(self, family: list[Prefix], promised: bool) -> Collision:
        """Two z_L that are left, and a content that asks for an entry at which they differ."""
        L = self.sizes.L
        one = family[0]
        for _, content, place in self.contents.asked(L):
            other = next((P for P in family if P.tokens[place] != one.tokens[place]), None)
            if other is not None:
                rest = joined(content)
                return collide(self.line, one.tokens + rest, other.tokens + rest)
        what = f"{len(family)} contents of z_{L} are left, and they agree wherever w may ask"
        raise AdversaryFailed(self.theorem, "C", what, holds=promised)

    # statements

    def _check(self, level: int, family: list[Prefix]) -> None:
        """|R_l| >= 2^-X_l of all, and D(l)."""
        prices = self.prices
        ledger = self.ledger
        self.left.append(len(family))
        every = self._count_of_all(level)
        ledger.require(
            "density",
            self._short or len(family) * prices.values(prices.total(level)) >= every,
            "R_{} keeps {} of {} prefixes",
            level,
            len(family),
            every,
        )
        top = level - 2 + self.sizes.shift + prices.flag(level)
        known_behind: dict[Entries, Known] = {}
        for content in self.contents.all(level):
            first = self._told(family[0], content, top, level)
            for prefix in family[1:]:
                told = self._told(prefix, content, top, level)
                for one, same in zip(told, first, strict=True):
                    ledger.require("known", one is same, "D({}) fails at {}", level, one.place)
            tokens = joined(content)
            for number, known in enumerate(first[:-1]):
                same = known_behind.setdefault(tokens[: number + 1], known)
                ledger.require(
                    "causal",
                    same is known,
                    "what is known at {} depends on later tokens",
                    known.place,
                )

    def _told(self, prefix: Prefix, content: Content, top: int, level: int) -> list[Known]:
        """e_top of all tokens of a content, and e_{l-1} (in VII e_l) of w."""
        cuts = self.line.cuts(prefix, content, len(content))
        found = [known for cut in cuts for known in cut.stage(top)]
        return [*found, cuts[-1].stage(level - 1 + self.sizes.shift)[0]]

    # what is known, and the prefixes that there are

    def _queries(
        self, contents: Sequence[Content], s: int, i: int, j: int
    ) -> Callable[[Prefix], Iterable[Known]]:
        """e_j at the i-th token of part s of each content."""
        return lambda prefix: [
            self.line.along(prefix, one, s + 1 or len(one)).stage(j)[i] for one in contents
        ]

    def _count_of_all(self, level: int) -> int:
        """How many prefixes z_L, ..., z_level there are."""
        return prod(len(functions) for functions in self.functions[: self.sizes.L - level + 1])

    def _all_prefixes(self) -> list[Prefix]:
        """Every P_2."""
        found: list[Prefix] = []
        levels = range(self.sizes.L, 1, -1)
        for chosen in product(*self.functions):
            parts = [self.contents.part(n, z) for n, z in zip(levels, chosen, strict=True)]
            # what stands behind matters to no protocol that keeps the rules
            content = (*parts, *self.contents.any())
            found.append(self.line.along(self.line.empty, content, len(parts)))
        return found


def _functions(
    sizes: ManyReadingsSizes, given: Sequence[Functions] | None
) -> tuple[tuple[Entries, ...], ...]:
    """The z_L, ..., z_2 to try."""
    lengths = [sizes.N[level - 1] for level in range(sizes.L, 1, -1)]
    if given is None:
        if prod(n**n for n in lengths) > MOST_PREFIXES:
            raise SizeError(
                f"z_L, ..., z_2 have more than {MOST_PREFIXES} contents together; give `functions`"
            )
        return tuple(tuple(product(range(n), repeat=n)) for n in lengths)
    found = tuple(tuple(dict.fromkeys(tuple(z) for z in one)) for one in given)
    if len(found) != len(lengths) or not all(found):
        raise SizeError(f"functions are {len(found)} sets; z_L, ..., z_2 are {len(lengths)}")
    for n, functions in zip(lengths, found, strict=True):
        if any(len(z) != n or min(z) < 0 or max(z) >= n for z in functions):
            raise SizeError(f"a function among those of {n} entries has another length or value")
    return found
