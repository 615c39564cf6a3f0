"""Function evaluation at several arguments, or at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.task import Batch
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import distinct, independent, near
from separatrix.tasks.eva import Eva
from separatrix.tasks.questions.base import Lookups

WORDS = Words(
    asks="Function evaluation at several arguments, one after another.",
    table="""
        position   0      1      ...   n-1      n        n+1      ...
        input      f(0)   f(1)   ...   f(n-1)   x_1      x_2      ...
        target     .      .      ...   .        f(x_1)   f(x_2)   ...

        n = 3, V = 4, queries=2:   position   0   1   2   3   4
                                   input      3   0   2   2   0
                                   target     .   .   .   2   3
    """,
    rules="""
        Behind f stand different arguments: k of the n with queries=k, each once with queries=all
        (with shift=local those of the last ceil(sqrt(n))). The value of each is due after it.
    """,
    drawn="""
        Every set of k arguments in every order is as likely as any other, whatever f: each answer
        asks for a uniform entry, and what was asked before says nothing about it. Chance and levels
        are those of one question.
    """,
    counted="Those of the task: every entry may be asked for first.",
    origin="[Ye26], asked again",
)

_LISTED = 1024
"""Most questions that the two runs' prompts are written out for."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Lookups):
    """Values of a function at several different arguments, in a random order."""

    words: ClassVar[Words] = WORDS

    task: Eva

    @property
    def most(self) -> int:
        return near(self.task.n, self.task.shift)

    @property
    def told(self) -> str:
        return "then other arguments, one after another"

    def layout(self) -> Layout:
        return super().layout()._replace(runs=self._runs())

    def _runs(self) -> TwoRuns | None:
        """Those of the task; the place where the runs meet is asked for first."""
        runs = self.task.two_runs()
        if runs is None or not isinstance(self.queries, int) or self.queries > _LISTED:
            return None
        others = (place for place in range(self.queries) if place != runs.j)
        asked = (runs.j, *others)[: self.queries]
        return runs._replace(end=tuple(((place,), 1) for place in asked))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        n = self.task.n
        f = independent(batch, n, self.task.V, self.task.shift, rng)
        asked = n - self.most + distinct(batch, self.number, self.most, rng)
        return self._joined(f, asked, np.take_along_axis(f, asked, axis=1))
