"""Several questions about one prompt: what the tasks that take `queries=` share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import shown
from separatrix.tasks.base.layout import Growth, Layout
from separatrix.tasks.base.task import NO_ANSWER, Around, Batch, Task, Tokens

TWICE = "a question is asked twice; each may be asked once"
ALL = "all"
"""The `queries` that asks everything the task can be asked."""


class Questions(Around):
    """A task with several answers per prompt: its questions one after another, `queries` of them,
    or all.

    Chance and levels are those of a uniform one of its answers. What is due is what stands before
    it, so that whoever answers all answers `task`. What was asked before tells nothing of the facts
    of which every answer asks for a uniform one, so that it does not help either. Constructions for
    `task` are silent about it; where `task` fails, it fails.
    """

    own: ClassVar[tuple[str, ...]] = ("queries",)
    """The sizes that are not those of `task`."""
    own_usage: ClassVar[str] = "queries=all|k"
    several: ClassVar[bool] = True

    queries: int | str = ALL

    def __post_init__(self) -> None:
        # messages, words of theorems and texts name the task that is asked
        for name in ("name", "source", "title", "shortcuts", "shifts", "shift"):
            object.__setattr__(self, name, getattr(self.task, name))
        object.__setattr__(self, "measured", (*type(self).measured, *self.task.measured))
        object.__setattr__(self, "usage", f"{self.task.usage}; {self.own_usage}")
        most = self.most
        if self.queries != ALL and (type(self.queries) is not int or not 1 <= self.queries <= most):
            raise self.task.refused(
                f"queries is {shown(self.queries)}; it must be {ALL}, or an integer from 1 to"
                f" {shown(most)}"
            )

    @property
    def most(self) -> int:
        """How many questions `queries=all` asks."""
        return self.task.sizes()["n"]

    @property
    @abstractmethod
    def told(self) -> str:
        """Where answers are due, in a few words."""

    @property
    def number(self) -> int:
        """How many questions are asked."""
        return self.queries if isinstance(self.queries, int) else self.most

    @classmethod
    def of(cls, task: Task, own: dict[str, Any]) -> Self:
        """The questions about a task that sizes such as {"queries": 8} ask for."""
        return cls(task=task, **own)

    def layout(self) -> Layout:
        """That of `task`: after its prefix, its question is the next or among the next."""
        return self.task.layout()._replace(table=None, runs=None, steps=0, grows=Growth())

    @property
    def token_ids(self) -> dict[str, range]:
        return self.task.token_ids

    def _own(self) -> dict[str, Any]:
        return {"queries": self.queries}

    def with_sizes(self, sizes: dict[str, Any]) -> Task:
        own = self._own() | {name: value for name, value in sizes.items() if name in self.own}
        rest = {name: value for name, value in sizes.items() if name not in self.own}
        return type(self).of(self.task.with_sizes(rest) if rest else self.task, own)

    def word(self, token: int) -> str:
        return self.task.word(token)

    def answer_word(self, answer: int) -> str:
        return self.task.answer_word(answer)

    @property
    def reply(self) -> tuple[str, int]:
        return self.task.reply

    @property
    def own_title(self) -> str:
        return f"{self.task.own_title}; {self.told}"

    @property
    def cited(self) -> str:
        return self.task.cited

    @property
    def extent(self) -> tuple[str, ...]:
        return (*super().extent, f"{self.number:,} questions")

    def alone(self, front: Tokens, back: Tokens) -> Tokens:
        """Prompts of `task` with the question alone that each row ends in, for shortcuts that look
        at what the task is made of.

        Rows begin at the first column of `front`, and end at the last of `back`.
        """
        return front


class Lookups(Questions):
    """Questions of one token each, behind what is asked about; none is asked twice."""

    others: ClassVar[str]
    whose: ClassVar[str] = ""

    @property
    def told(self) -> str:
        return f"then other {self.others}, one after another{self.whose}"

    @property
    def before(self) -> int:
        """Tokens before the questions."""
        return self.task.length - 1

    def layout(self) -> Layout:
        length = self.before + self.number
        return super().layout()._replace(length=length, table=self.task.table())

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        self._differ(tokens[:, self.before :], TWICE)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        for place in range(self.before, self.length):
            # each question alone is one of the task, which checks what stands before as well
            alone = np.concatenate((tokens[:, : self.before], tokens[:, [place]]), axis=1)
            targets[:, place] = self.task.answer(alone)
        return targets

    def alone(self, front: Tokens, back: Tokens) -> Tokens:
        return np.concatenate((front[:, : self.before], back[:, -1:]), axis=1)

    def _joined(self, before: Tokens, asked: Tokens, answers: Tokens) -> Batch:
        none = np.full(before.shape, NO_ANSWER, np.int64)
        return Batch(
            np.concatenate((before, asked), axis=1), np.concatenate((none, answers), axis=1)
        )
