"""Rows of a task of tokens: the tokens and targets themselves, and the same as a question."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import NO_ANSWER, Task
from separatrix.tasks.exports.replies import Shape
from separatrix.tasks.exports.source import MOST_CHOICES, Column, Drawn, Rows, key_of, text_columns
from separatrix.tasks.exports.wording import Worder, definition

MOST_BALANCED = 100
"""Most answers that are kept as frequent as they are drawn; with more, waiting for the right one
would take long.
"""
_NUMBERS = "the question in words, for readers of the definition"


class TokenSource:
    """Tokens and targets as the task draws them, and the same as a question.

    Of a task with answers at several places the question is asked at one of them, drawn uniformly.
    Of a chain of thought it is asked after the prompt.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.spec = task.spec
        self.length = task.length
        self.stepwise = task.stepwise
        self.asked = task.asked
        self.worded = task.worded.spec
        self.lead = f"{definition(self.asked)}\n\n"
        self.guess = "the best constant guess"
        self.stop = "."
        self.shape = Shape(*self.asked.reply)
        self.largest = max(task.vocabulary, task.answers, task.length)
        self.choices = (
            [self.asked.answer_word(answer) for answer in range(self.asked.answers)]
            if self.asked.answers <= MOST_CHOICES
            else None
        )
        self.balanced = self.asked.answers <= MOST_BALANCED
        self.chance = self.asked.chance
        self.share = self.chance if self.balanced else Fraction(1)
        self.words = 4 + self.asked.steps
        self._places = task.several and not self.stepwise
        self._worder = Worder(task)
        tokens = Column(
            "tokens",
            "ints",
            f"the {task.length:,} tokens, integers from 0 to {task.vocabulary - 1:,}",
        )
        targets = (
            Column(
                "targets",
                "ints",
                f"the answer due after each token, or {NO_ANSWER} where none is due",
            )
            if task.several
            else Column("target", "int", "the answer due after the last token")
        )
        place = (
            (
                Column(
                    "place",
                    "int",
                    "index of the token after which the question asks for the answer",
                ),
            )
            if self._places
            else ()
        )
        self.columns: tuple[Column, ...] = (
            tokens,
            targets,
            *place,
            *text_columns(_NUMBERS, steps=self.asked.steps > 0, choices=False),
        )

    def sizes(self) -> dict[str, Any]:
        task = self.task
        count = task.prefix_classes()
        classes = None if count is None else {"after": task.prefix_length, "log2": count.log2_str()}
        return {
            "sizes": self.asked.sizes(),
            "length": task.length,
            "vocabulary": task.vocabulary,
            "answers": task.answers,
            "several": task.several,
            "prefix_classes": classes,
        }

    def facts(self) -> list[tuple[str, str]]:
        task = self.task
        return [
            ("tokens of a row", f"{task.length:,}"),
            ("token ids", f"0 to {task.vocabulary - 1:,}"),
            ("answers", f"0 to {task.answers - 1:,}"),
            ("answers due", "after several tokens" if task.several else "after the last token"),
        ]

    def draw(self, batch: int, rng: np.random.Generator) -> Drawn:
        tokens, targets = self.task.sample(batch, rng)
        ends = np.full(batch, self.asked.length - 1)
        if self._places:
            due = targets != NO_ANSWER
            ends = np.where(due, rng.random(due.shape), -1.0).argmax(axis=1)
            answers = targets[np.arange(batch), ends]
        else:
            answers = targets[:, -1] if self.task.several else targets
        keys = [(key_of(row),) for row in tokens]
        if self._places:  # neither a row nor a question about another row may come twice
            keys = [
                (*key, key_of(row[: end + 1]))
                for key, row, end in zip(keys, tokens, ends, strict=True)
            ]
        by_answer = answers.tolist() if self.balanced else [0] * batch
        return Drawn(
            keys,
            by_answer,
            lambda rows: self._columns(tokens[rows], targets[rows], answers[rows], ends[rows]),
        )

    def _columns(
        self,
        tokens: NDArray[np.int64],
        targets: NDArray[np.int64],
        answers: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Rows:
        made: Rows = {"tokens": tokens, "targets" if self.task.several else "target": targets}
        if self._places:
            made["place"] = ends
        made["prompt"] = [
            self._worder.prompt(row[: end + 1])
            for row, end in zip(tokens, ends.tolist(), strict=True)
        ]
        made["answer"] = made["completion"] = list(map(self._worder.answer, answers.tolist()))
        chains = self.asked.chain(tokens[:, : self.asked.length])
        if chains is not None:
            made["steps"] = list(map(self._worder.chain, chains.tolist()))
            if self.stepwise:
                made["completion"] = [self._worder.written(chain) for chain in made["steps"]]
        return made
