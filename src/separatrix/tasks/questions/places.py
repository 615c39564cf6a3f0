"""One question at many places of a prompt: k-hop induction, and state tracking."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import PLAIN, Batch, Tokens
from separatrix.tasks.khop import KHop
from separatrix.tasks.questions.base import ALL, Questions
from separatrix.tasks.tracking import Group, Parity, Permutation


class Hops(Questions):
    """k-hop induction heads asked at many places of one prompt, for what stands up to each.

        k = 1, V = 4, n = 8, queries=all:   position   0   1   2   3   4   5   6   7
                                            input      b   d   a   c   d   b   c   a
                                            target     .   .   .   .   a   d   d   c

    The answer due after a token is that of the task for a prompt that ends there. queries=all asks
    after the last (floor(n/V) - k) V tokens, queries=r after the last r of them.

    Drawn: Seen from its end a prompt is cut into blocks of V tokens, each an independent uniform
    permutation of the letters (the oldest is a part of one). From a place in a block k complete
    blocks stand before, k hops find a letter: these are the places asked for. All letters are drawn
    alike, so that every answer is uniform on them. No chain is planted: as many answers as there
    are places could not share a prompt with places that tell nothing.

    A hop from a letter c looks into a block not looked into before: if c is last there, it leads to
    the first place of the newer block, else to the place behind c. So, whatever the newer blocks
    hold, no letter has more than 2/V: 1/V for being first in the newer block, and 1/(V-1) for
    standing behind c, which is not last with probability 1 - 1/V. Who does not see the newer block
    either has at most u = 1/V + 1/(V (V-2)), since any but two letters may be first in it.

    A single place may reach 2/V. Counts tell what stands in the newest block, which is the newer
    one of the last hop with probability V^(1-k). The last three tokens and what stands behind a
    nearest key show the block before it as well, or stand in the block that the last hop looks
    into.

    Counted: Those of the task: the answer after the last token is asked for.

    From: [San24], arXiv 2402.09268, who ask at every place
    """

    measured = ("counts", "last tokens", "nearest key")

    task: KHop

    def __post_init__(self) -> None:
        if self.task.shift != PLAIN:
            raise self.task.refused(
                f"queries= asks where k hops surely find a letter, which shift={self.task.shift}"
                " does not promise; leave one of them out"
            )
        super().__post_init__()

    @property
    def most(self) -> int:
        return (self.task.n // self.task.V - self.task.k) * self.task.V

    @property
    def told(self) -> str:
        return f"asked after each of the last {self.number:,} tokens, for what stands up to it"

    def level(self, probe: str) -> Fraction:
        own = {"constant": self.chance, "position": Fraction(2, self.task.V)}
        return own.get(probe, Fraction(1))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        V = self.task.V
        blocks = np.tile(np.arange(V), (batch, -(-self.task.n // V), 1))
        rng.permuted(blocks, axis=2, out=blocks)
        tokens = blocks.reshape(batch, -1)[:, -self.task.n :]
        return Batch(tokens, self._due(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return self._due(self._checked(tokens))

    def _due(self, tokens: Tokens) -> Tokens:
        first = self.length - self.number
        places = np.broadcast_to(np.arange(first, self.length), (len(tokens), self.number))
        *_, found = self.task.hopped(tokens, places)
        return self.targets(len(tokens), slice(first, None), found)

    def alone(self, front: Tokens, back: Tokens) -> Tokens:
        return back


_LOOKED_AT = 7
"""After so many tokens a look at them may be the answer."""
_LAST = 3
"""Tokens that the last tokens are, at most."""
_LEVELLED = 64
"""Levels fall with the length of a prompt: of longer ones, that of this length."""


class Prefixes(Questions):
    """State tracking asked after every token: the answer for what was read up to it.

        parity of n = 5, queries=all:   position   0   1   2   3   4
                                        input      1   0   1   1   0
                                        target     1   1   0   1   1

        queries=2:                      target     .   .   .   1   1

    The answer due after a token is that of the task for a prompt that ends there. queries=k asks
    after the last k tokens, queries=all after each of the n.

    Drawn: Prompts are those of the task, whose prefixes have uniform answers.

    Chance and levels are those of a uniform one of the answers asked for: the mean over their
    places. The first few are a look at a few tokens and tell nothing of a state: a shortcut may
    have all answers after fewer than 8 tokens (the last tokens: after up to 3), and behind them
    what it may have of a prompt that ends there. With k <= n - 7 no such place is asked, and the
    levels are chance where those of the task are.

    Counted: Those of the task: its prompts are the same, and its answer is due after the last.

    From: the tasks themselves; state tracking is trained so in Grazzi et al., arXiv 2411.12537
    """

    task: Parity | Group | Permutation

    @property
    def told(self) -> str:
        places = (
            "every token" if self.queries == ALL else f"each of the last {self.number:,} tokens"
        )
        return f"asked after {places}, for what stands up to it"

    @property
    def _asked(self) -> range:
        return range(self.task.n - self.number + 1, self.task.n + 1)

    def layout(self) -> Layout:
        """Two runs as in the task: the answer after the last token differs."""
        return super().layout()._replace(runs=self.task.two_runs())

    def level(self, probe: str) -> Fraction:
        if probe in ("constant", "position"):
            return self.chance
        short = _LAST if probe == "last tokens" else _LOOKED_AT
        total = Fraction(0)
        asked = self._asked
        for read in range(asked.start, min(asked.stop, _LEVELLED)):
            total += 1 if read <= short else self._level_after(read, probe)
        more = asked.stop - max(asked.start, _LEVELLED)
        if more > 0:
            total += more * self._level_after(_LEVELLED, probe)
        return max(self.chance, total / self.number)

    def _level_after(self, read: int, probe: str) -> Fraction:
        return replace(self.task, n=max(2, read)).level(probe)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = self.task.draw(batch, rng).tokens
        return Batch(tokens, self._due(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return self._due(self._checked(tokens))

    def _due(self, tokens: Tokens) -> Tokens:
        asked = slice(self.task.n - self.number, None)
        if isinstance(self.task, Parity):
            tracked = np.cumsum(tokens, axis=1) % 2
        else:
            tracked = self.task.chain(tokens)
        return self.targets(len(tokens), asked, tracked[:, asked])
