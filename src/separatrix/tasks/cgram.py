from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.layout import Growth, Layout, Table
from separatrix.tasks.base.task import Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import distinct, one_of, shuffled, spread

LONGEST_CONTEXT = 32
_CODE_BITS = 60


class CGram(Task):
    """c-gram retrieval: the token that followed the earlier occurrence of the last c tokens.

        c = 2, n = 13:   position   0  1  2  3  4  5  6  7  8  9  10 11 12
                         input      2  5  7  2  6  4  3  6  1  0  2  2  6
                         target     .  .  .  .  .  .  .  .  .  .  .  .  4
        the last two, 2 6, stood at 3 and 4, before 4; near misses: 2 5 (before 7), 3 6 (before 1)

    The last c tokens stand exactly once before, at any places i..i+c-1 with i + c <= n - 1; the
    answer is the token at i + c. All ids are alike.

    Drawn: n >= (c+1)^2 + c, V >= c b with b >= 2 and b^c >= the entries. (c = 1 is induction.)

    Drawn as entries, c tokens of context and one that follows, then the c tokens asked for; what is
    left of n is the end of one more entry, first. Each prompt deals b = floor(V/c) ids to each
    place of a context, at random, so that no place of another kind can look like a context,
    whatever follows: followers are any of the V ids. One context is asked for; for each of its c
    places at least d others differ from it there and nowhere else, d = min(b - 1, floor((entries -
    1)/c)), each with another id; the rest are different random ones. So c - 1 of the c tokens are
    shared by d + 1 contexts or more, alike but for that, and whoever knows these only picks the
    right one with probability 1/(d + 1) at most. Followers are drawn first, min(V, entries)
    different ones among them, then the answer uniformly over these, then one of the entries that it
    follows, then all contexts: so no token and no count says anything about the answer, which is
    uniform over the V ids.

    Where V > entries, ids that follow nothing are no answer: naming a follower is right with
    probability 1/entries. What follows the nearest context is the answer less often than others (as
    in recall): with probability (entries/V - 1)/(entries - 1), 0 where V > entries. What each token
    asked for speaks for by itself, all added up, is right more often ("skip grams"). Where no two
    followers are alike it is a solution, if contexts are counted at their own places alone.

    Counted: Not known: which continuations are allowed depends on the whole prefix.

    From: [Wen25], c-gram retrieval
    """

    name = "cgram"
    title = "c-gram retrieval: answer what followed the earlier occurrence of the last c tokens"
    source = "[Wen25]"
    shortcuts = measured = ("skip grams",)
    grid = ladder("""
        n=26,V=8,c=2 n=38,V=8,c=2 n=39,V=9,c=3 n=64,V=16,c=2 n=256,V=32,c=2 n=1024,V=64,c=3
    """)

    n: int = size(lambda task: (task.c + 1) ** 2 + task.c)
    V: int = size(lambda task: task.c * _root(task.entries, task.c))
    c: int = size(2, LONGEST_CONTEXT, default=2)

    @property
    def entries(self) -> int:
        """Contexts with what follows them in a prompt that is drawn."""
        return (self.n - self.c) // (self.c + 1)

    @property
    def ids_of_a_place(self) -> int:
        """b, the ids that a place of a context is dealt."""
        return min(self.V // self.c, 1 << _CODE_BITS // self.c)

    @property
    def near_misses(self) -> int:
        """d, the contexts drawn to differ from the one asked for in a given place only."""
        return min(self.ids_of_a_place - 1, (self.entries - 1) // self.c)

    def layout(self) -> Layout:
        """The table: contexts of the ids below b, each with one from b on behind it."""
        m = self.entries
        b = _root(m, self.c)
        spare = self.n - self.c - m * (self.c + 1)
        return Layout(
            length=self.n,
            ids={"letter": self.V},
            answers={"letter": self.V},
            prefix=self.n - self.c,
            table=Table(m, self.V - b, tokens=self.c + 1, shared=spare, question=self.c),
            grows=Growth(f"c = {self.c}, V = {self.V:,}"),
        )

    def level(self, probe: str) -> Fraction:
        """As `words.drawn` derives; V - 1 others share what the nearest one's follower lacks."""
        m = self.entries
        V = self.V
        if probe == "nearest key":
            return Fraction(m, V * (m - 1)) if m >= V else Fraction(1, m)
        return self.chance if m >= V or probe == "constant" else Fraction(1, m)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        m = self.entries
        c = self.c
        rows = np.arange(batch)
        followers = spread(batch, m, self.V, rng)
        if m < self.V:
            asked = rng.integers(m, size=batch)
        else:
            # the answer is drawn first and so is uniform, though some followers stand more often
            asked = one_of(followers == rng.integers(self.V, size=batch)[:, None], rng)
        each = self.ids_of_a_place
        spare = (self.n - c) % (c + 1)
        contexts = self._contexts(asked, rng)
        # one entry more, of which the last `spare` tokens are kept
        made = np.empty((batch, m + 1, c + 1), np.int64)
        made[:, 0, :c] = rng.integers(each, size=(batch, c))
        made[:, 1:, :c] = contexts
        if each > m + 1:
            # at most m + 1 numbers of a place are in use: ids are dealt to these alone
            each = m + 1
            made[:, :, :c] = _ranks(made[:, :, :c])
        ids = distinct(batch, c * each, self.V, rng)
        for place in range(c):
            made[:, :, place] = np.take_along_axis(
                ids[:, place * each :], made[:, :, place], axis=1
            )
        made[:, 0, c] = rng.integers(self.V, size=batch)
        made[:, 1:, c] = followers
        tokens = np.concatenate(
            (made.reshape(batch, -1)[:, c + 1 - spare :], made[rows, 1 + asked, :c]), axis=1
        )
        return Batch(tokens, followers[rows, asked])

    def _contexts(self, asked: Tokens, rng: np.random.Generator) -> Tokens:
        """(batch, entries, c): different contexts of numbers below b, one that is asked for."""
        batch = len(asked)
        m = self.entries
        c = self.c
        each = self.ids_of_a_place
        weights = each ** np.arange(c)
        right = rng.integers(each, size=(batch, c))
        near = self.near_misses
        # steps from 1 to b - 1 modulo b: a near miss never has the right id at its place
        wrong = 1 + distinct(batch * c, near, each - 1, rng).reshape(batch, c, near)
        wrong = (right[:, :, None] + wrong) % each
        whole = right @ weights
        # a context is a number with c digits of base b, of which a near miss changes one
        missed = whole[:, None, None] + (wrong - right[:, :, None]) * weights[:, None]
        first = np.column_stack((whole, missed.reshape(batch, -1)))
        codes = np.concatenate(
            (first, distinct(batch, m - first.shape[1], each**c, rng, besides=first)), axis=1
        )
        order = shuffled(batch, m, rng)
        rows = np.arange(batch)
        found = (order == 0).argmax(axis=1)
        # an exchange puts the first code where it is asked for; the order of the rest stays uniform
        order[rows, found], order[rows, asked] = order[rows, asked], 0
        return np.take_along_axis(codes, order, axis=1)[:, :, None] // weights % each

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        c = self.c
        before = self.n - c
        met = np.ones((len(tokens), before), np.bool_)
        for place in range(c):
            met &= tokens[:, place : before + place] == tokens[:, before + place, None]
        often = met.sum(axis=1)
        if (often != 1).any():
            bad = int(often[often != 1][0])
            raise self.refused(
                f"the last {c} tokens stand {bad} times before the end; they must stand there"
                " exactly once"
            )
        return tokens[np.arange(len(tokens)), met.argmax(axis=1) + c]


def _root(number: int, c: int) -> int:
    """The smallest b >= 2 with b^c >= number."""
    # floats give a start that is small enough; integers decide
    b = max(2, round(number ** (1 / c)) - 2)
    while b**c < number:
        b += 1
    return b


def _ranks(numbers: Tokens) -> Tokens:
    """Of each number (batch, entries, c) how many different smaller ones its column has."""
    order = np.argsort(numbers, axis=1)
    ordered = np.take_along_axis(numbers, order, axis=1)
    rank = np.zeros_like(numbers)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rank[:, 1:])
    ranks = np.empty_like(rank)
    np.put_along_axis(ranks, order, rank, axis=1)
    return ranks
