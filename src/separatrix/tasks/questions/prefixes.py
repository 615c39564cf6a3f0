"""State tracking asked again and again: the answer for all that was read so far, after every token
or the last ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import NO_ANSWER, PLAIN, Batch, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.group import Group
from separatrix.tasks.modular import Modular
from separatrix.tasks.parity import Parity
from separatrix.tasks.permutation import Permutation
from separatrix.tasks.questions.base import ALL, Questions

WORDS = Words(
    asks="State tracking asked after every token: the answer for what was read up to it.",
    table="""
        parity of n = 5, queries=all:   position   0   1   2   3   4
                                        input      1   0   1   1   0
                                        target     1   1   0   1   1

        queries=2:                      target     .   .   .   1   1
    """,
    rules="""
        The answer due after a token is that of the task for a prompt that ends there. queries=k
        asks after the last k tokens, queries=all after each of the n.
    """,
    drawn="""
        Prompts are those of the task, whose prefixes have uniform answers. Of modular the number of
        ones is uniform on 0..n, and so it is on 0..t in the first t bits: their answer is 0 with
        probability ceil((t+1)/m)/(t+1), the most of all. (With shift=independent the number is
        uniform on 0..m-1 after m - 1 bits, and the bits behind them leave the answer uniform.)

        Chance and levels are those of a uniform one of the answers asked for: the mean over their
        places. The first few are a look at a few tokens and tell nothing of a state: a shortcut may
        have all answers after fewer than 8 tokens (the last tokens: after up to 3), and behind them
        what it may have of a prompt that ends there. With k <= n - 7 no such place is asked, and
        the levels are chance where those of the task are.
    """,
    counted="Those of the task: its prompts are the same, and its answer is due after the last.",
    origin="the tasks themselves; state tracking is trained so in Grazzi et al., arXiv 2411.12537",
)

_LOOKED_AT = 7
"""After so many tokens a look at them may be the answer."""
_LAST = 3
"""Tokens that the last tokens are, at most."""
_LEVELLED = 64
"""Levels fall with the length of a prompt: of longer ones, that of this length."""
MOST_COUNTED = 4096
"""Most questions of which the exact chance of modular is summed."""


@dataclass(frozen=True, kw_only=True)
class Prefixes(Questions):
    """Parity, group or permutation: the answers of the last prefixes of a prompt."""

    words: ClassVar[Words] = WORDS

    task: Parity | Modular | Group | Permutation

    @property
    def most(self) -> int:
        return self.task.n

    @property
    def told(self) -> str:
        places = (
            "every token" if self.queries == ALL else f"each of the last {self.number:,} tokens"
        )
        return f"asked after {places}, for what stands up to it"

    @property
    def _asked(self) -> range:
        """How many tokens were read where an answer is due."""
        return range(self.task.n - self.number + 1, self.task.n + 1)

    def prompts(self) -> Count:
        return self.task.prompts()

    def layout(self) -> Layout:
        """Two runs as in the task: the answer after the last token differs."""
        return super().layout()._replace(runs=self.task.two_runs())

    def level(self, probe: str) -> Fraction:
        """The mean over the places asked for, as `words.drawn` has it."""
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
        """What a probe may reach of prompts of so many tokens."""
        return replace(self.task, n=max(2, read)).level(probe)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = self.task.draw(batch, rng).tokens
        return Batch(tokens, self._due(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return self._due(self._checked(tokens))

    def _due(self, tokens: Tokens) -> Tokens:
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        first = self.task.n - self.number
        targets[:, first:] = self._tracked(tokens)[:, first:]
        return targets

    def _tracked(self, tokens: Tokens) -> Tokens:
        """The answers of all prefixes, in the shape of `tokens`."""
        if isinstance(self.task, Group | Permutation):
            return self.task.intermediate(tokens)
        return np.cumsum(tokens, axis=1) % self.task.answers


@dataclass(frozen=True, kw_only=True)
class Counted(Prefixes):
    """Modular counting, whose prefixes have nearly uniform answers."""

    task: Modular

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.number > MOST_COUNTED:
            raise SizeError(
                f"{self.task.spec}: queries={self.queries} asks {self.number:,} questions; of"
                f" modular at most {MOST_COUNTED:,} are taken"
            )

    @property
    def chance(self) -> Fraction:
        """Answer 0 is at every place as likely as any."""
        m = self.task.m
        if self.task.shift == PLAIN:
            return _mean([Fraction(-(-(t + 1) // m), t + 1) for t in self._asked])
        return _mean([Fraction(1, min(m, t + 1)) for t in self._asked])

    def level(self, probe: str) -> Fraction:
        """Counts are all there is. A probe that sees t of the bits before a place, whose numbers
        of ones are all as likely, has (t + 1)/(r - t + 1) for the likeliest number among all r at
        the most, and the numbers rise to it and fall: of one residue 1/m and that together. The
        nearest key tells the last bit, or that all r are equal, as 2 of r + 1 numbers are.
        """
        if probe in ("constant", "counts"):
            return Fraction(1) if probe == "counts" else self.chance
        seen, alike = (_LAST, 0) if probe == "last tokens" else (1, 2 * (probe == "nearest key"))
        every = [
            min(
                Fraction(1),
                Fraction(1, self.task.m) + Fraction(alike, r + 1) + Fraction(seen + 1, r - seen + 1)
                if r > seen
                else Fraction(1),
            )
            for r in self._asked
        ]
        return max(self.chance, _mean(every))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        if self.task.shift != PLAIN:
            return super().draw(batch, rng)
        n = self.task.n
        ones = rng.integers(n + 1, size=(self._batch(batch), 1))
        tokens = (np.arange(n) < ones).astype(np.int64)
        rng.permuted(tokens, axis=1, out=tokens)
        return Batch(tokens, self._due(tokens))


def _mean(values: list[Fraction]) -> Fraction:
    """The exact mean; halves are added first, so that numbers stay short for long."""
    whole = len(values)
    while len(values) > 1:
        values = [sum(values[at : at + 2], Fraction(0)) for at in range(0, len(values), 2)]
    return values[0] / whole
