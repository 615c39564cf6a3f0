"""2-Sum asked for several values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import PLAIN, Batch, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.classes_modulo import alike, avoiding, hidden
from separatrix.tasks.drawing.distinct import distinct, repeated
from separatrix.tasks.questions.base import Lookups
from separatrix.tasks.twosum import TwoSum

WORDS = Words(
    asks="2-Sum modulo M asked for several values, one after another.",
    table="""
        position   0     1     ...   n-1   n        n+1      ...
        input      x_1   x_2   ...   x_n   q_1      q_2      ...
        target     .     .     ...   .     0 or 1   0 or 1   ...

        n = 3, M = 11, queries=2:   position   0   1   2   3   4
                                    input      4   9   1   7   3
                                    target     .   .   .   1   0
    """,
    rules="""
        Behind the n values stand different values q: k of them with queries=k, n with queries=all.
        Each is answered 1 when some x_j + q = 0 mod M; the other questions do not count. Taken by
        form=query without a shift.
    """,
    drawn="""
        As for one question, k times over: k pairs of values that are equal modulo D (of the task)
        and of 2k different classes, either of a pair as likely the one as the other; the negatives
        of the first ones are put at different uniform places, and the other x's avoid all of both
        classes but these negatives. Then a fair coin for each question chooses q: the first of its
        pair (1) or the second (0). So the x's are independent of all coins, and so are the q's by
        themselves. M > 4 (k - 1) + 2 + 2D, so that there are as many classes.

        Levels are those of one question, but that the last tokens show an x at the first two
        questions only.
    """,
    counted="Those of the task: any value may be asked for first.",
    origin="[San23] (Match2) has a question for every token",
)


@dataclass(frozen=True, kw_only=True)
class Sums(Lookups):
    """Whether something cancels each of several different values."""

    words: ClassVar[Words] = WORDS

    task: TwoSum

    def __post_init__(self) -> None:
        if self.task.form != "query" or self.task.shift != PLAIN:
            raise SizeError(
                f"{self.task.spec}: queries= asks for values behind the others, drawn without a"
                " shift; take form=query and leave the shift out"
            )
        super().__post_init__()
        least = 4 * (self.number - 1) + 3 + 2 * hidden(self.task.M)
        if least > self.task.M:
            raise SizeError(
                f"{self.task.spec}: {self.number:,} questions of different classes that say nothing"
                f" by their residues need a larger M than {self.task.M:,}; ask fewer, or take M ="
                f" {16 * self.number + 8:,}"
            )

    @property
    def most(self) -> int:
        return self.task.n

    @property
    def told(self) -> str:
        return "then other values, one after another, each for the first n"

    def level(self, probe: str) -> Fraction:
        """Those of the task; "last tokens" as `words.drawn` has it."""
        one = self.task.level(probe)
        if probe != "last tokens":
            return one
        seen = min(2, self.number)
        return (seen * one + (self.number - seen) * self.chance) / self.number

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        M = self.task.M
        k = self.number
        one, two = self._pairs(batch, rng)
        tokens = avoiding(M, np.concatenate((one, two, M - two), axis=1), self.task.n, rng)
        np.put_along_axis(tokens, distinct(batch, k, self.task.n, rng), M - one, axis=1)
        labels = rng.integers(2, size=(batch, k))
        return self._joined(tokens, np.where(labels == 1, one, two), labels)

    def _pairs(self, batch: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        """Both (batch, k): pairs of values that are alike, all of different classes."""
        M = self.task.M
        D = hidden(M)
        size = (batch, self.number)
        one, two = (drawn.reshape(size) for drawn in alike(batch * self.number, M, D, rng))
        while True:
            classes = np.stack((np.minimum(one, M - one), np.minimum(two, M - two)), axis=2)
            row, place = repeated(classes.reshape(batch, -1), M)
            if not len(row):
                return one, two
            # of two pairs that share a class the later one is drawn again
            again = np.unique(row * self.number + place // 2)
            one.flat[again], two.flat[again] = alike(len(again), M, D, rng)
