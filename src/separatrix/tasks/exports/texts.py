"""Rows of a task in natural language."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from separatrix.tasks.exports.replies import Shape
from separatrix.tasks.exports.source import MOST_CHOICES, Drawn, Rows, key_of, text_columns
from separatrix.tasks.text import TextItem, TextTask


class TextSource:
    """Questions as the task words them."""

    def __init__(self, task: TextTask) -> None:
        first = task.sample(1, np.random.default_rng(0))[0]
        self.task = task
        self.spec = task.spec
        self.length = len(first.prompt.split())
        self.stepwise = task.target(first) != first.answer
        self.shape = Shape(*task.reply, task.pattern)
        self.choices: Literal["choices"] | None = (
            "choices" if self.shape.size == 1 and 0 < len(first.choices) <= MOST_CHOICES else None
        )
        self.worded = task.spec
        self.guess = "a guess among the candidates"
        self.lead = "Answer the question from the facts. "
        self.stop = ""
        self.largest = 0
        self.chance = task.chance
        self.share = Fraction(1)
        self.words = 4 + sum(len(step.split()) for step in first.steps)
        self._steps = bool(first.steps)
        self._choices = self.shape.size == 1 and bool(first.choices)
        self.columns = text_columns("facts and question", steps=self._steps, choices=self._choices)

    def sizes(self) -> dict[str, Any]:
        return {"sizes": self.task.sizes(), "numbers": self.task.numbers}

    def facts(self) -> list[tuple[str, str]]:
        return [(name, f"{number:,}") for name, number in self.task.numbers.items()]

    def draw(self, batch: int, rng: np.random.Generator) -> Drawn:
        items = self.task.sample(batch, rng)
        keys = [(key_of(item.prompt.encode()),) for item in items]
        return Drawn(keys, [0] * batch, lambda rows: self._columns([items[row] for row in rows]))

    def _columns(self, items: list[TextItem]) -> Rows:
        made: Rows = {
            "prompt": [item.prompt for item in items],
            "answer": [item.answer for item in items],
            "completion": [self.task.target(item) for item in items],
        }
        if self._steps:
            made["steps"] = [list(item.steps) for item in items]
        if self._choices:
            made["choices"] = [list(item.choices) for item in items]
        return made
