"""k-hop induction asked at many places of one prompt."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import NO_ANSWER, PLAIN, Batch, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.khop import KHop
from separatrix.tasks.questions.base import Questions

WORDS = Words(
    asks="k-hop induction heads asked at many places of one prompt, for what stands up to each.",
    table="""
        k = 1, V = 4, n = 8, queries=all:   position   0   1   2   3   4   5   6   7
                                            input      b   d   a   c   d   b   c   a
                                            target     .   .   .   .   a   d   d   c
    """,
    rules="""
        The answer due after a token is that of the task for a prompt that ends there. queries=all
        asks after the last (floor(n/V) - k) V tokens, queries=r after the last r of them.
    """,
    drawn="""
        Seen from its end a prompt is cut into blocks of V tokens, each an independent uniform
        permutation of the letters (the oldest is a part of one). From a place in a block k complete
        blocks stand before, k hops find a letter: these are the places asked for. All letters are
        drawn alike, so that every answer is uniform on them. No chain is planted: as many answers
        as there are places could not share a prompt with places that tell nothing.

        A hop from a letter c looks into a block not looked into before: if c is last there, it
        leads to the first place of the newer block, else to the place behind c. So, whatever the
        newer blocks hold, no letter has more than 2/V: 1/V for being first in the newer block, and
        1/(V-1) for standing behind c, which is not last with probability 1 - 1/V. Who does not see
        the newer block either has at most u = 1/V + 1/(V (V-2)), since any but two letters may be
        first in it.

        A single place may reach 2/V. Counts tell what stands in the newest block, which is the
        newer one of the last hop with probability V^(1-k): u + V^-k. The last three tokens and what
        stands behind a nearest key show the block before it as well, (k - 1) V^(2-k) at most: u +
        (k - 1) V^(1-k), and for k <= 2 rather 2/V. The last tokens may lie in the block that the
        last hop looks into, after 2 of V places and with probability V^(1-k): 2/V^k more. With k =
        1 a nearest key stands in that block, for which another 2/V is stated; and of walks along
        pairs of any age a bound that probing kept to: 2/V + 2/2^k.
    """,
    counted="Those of the task: the answer after the last token is asked for.",
    origin="[San24], arXiv 2402.09268, who ask at every place",
)


@dataclass(frozen=True, kw_only=True)
class Hops(Questions):
    """The letters k hops from the last places of a prompt."""

    words: ClassVar[Words] = WORDS

    task: KHop

    def __post_init__(self) -> None:
        if self.task.shift != PLAIN:
            raise SizeError(
                f"{self.task.spec}: queries= asks where k hops surely find a letter, which"
                f" shift={self.task.shift} does not promise; leave one of them out"
            )
        super().__post_init__()

    @property
    def most(self) -> int:
        return (self.task.n // self.task.V - self.task.k) * self.task.V

    @property
    def told(self) -> str:
        return f"asked after each of the last {self.number:,} tokens, for what stands up to it"

    def prompts(self) -> Count:
        return self.task.prompts()

    def level(self, probe: str) -> Fraction:
        """As `words.drawn` derives."""
        V = self.task.V
        k = self.task.k
        unseen = Fraction(1, V) + Fraction(1, V * (V - 2))
        two = Fraction(2, V)
        match probe:
            case "constant":
                return self.chance
            case "counts":
                return min(two, unseen + Fraction(1, V**k))
            case "last tokens" | "nearest key":
                shown = unseen + Fraction((k - 1) * V, V**k) if k > 2 else two
                more = Fraction(2, V**k) if probe == "last tokens" or k == 1 else Fraction(0)
                return min(two, shown) + more
            case "walks":
                return min(Fraction(1), two + Fraction(2, 2**k))
            case _:
                return two

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        V = self.task.V
        blocks = np.tile(np.arange(V), (batch, -(-self.task.n // V), 1))
        rng.permuted(blocks, axis=2, out=blocks)
        tokens = blocks.reshape(batch, -1)[:, -self.task.n :]
        return Batch(tokens, self._due(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return self._due(self._checked(tokens))

    def _due(self, tokens: Tokens) -> Tokens:
        """All hops from all places at once; V where one finds nothing."""
        n = self.task.n
        behind = self._behind(tokens)
        first = n - self.number
        place = np.broadcast_to(np.arange(first, n), (len(tokens), self.number))
        for _ in range(self.task.k):
            # the last column is the place of those that found nothing
            place = np.take_along_axis(behind, place, axis=1)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        letters = np.concatenate((tokens, np.full((len(tokens), 1), self.task.V)), axis=1)
        targets[:, first:] = np.take_along_axis(letters, place, axis=1)
        return targets

    def _behind(self, tokens: Tokens) -> Tokens:
        """(batch, n + 1): where a hop leads from each place, n where it finds nothing."""
        n = self.task.n
        order = np.argsort(tokens, axis=1, kind="stable")
        letters = np.take_along_axis(tokens, order, axis=1)
        # of equal letters, in their order, each follows the one before it
        earlier = np.full(order.shape, n, np.int64)
        same = letters[:, 1:] == letters[:, :-1]
        earlier[:, 1:] = np.where(same, order[:, :-1] + 1, n)
        behind = np.full((len(tokens), n + 1), n, np.int64)
        np.put_along_axis(behind[:, :n], order, earlier, axis=1)
        return behind

    def alone(self, front: Tokens, back: Tokens) -> Tokens:
        return back
