"""The texts of an export: what a task says of itself, and token tasks as questions in numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Task
from separatrix.tasks.base.words import wrapped
from separatrix.tasks.text import TextTask

CUE = "Answer:"
CUE_STEPS = "Answer step by step:"
"""The last line of a question, in words as in numbers."""
_MOST_WORDS = 1 << 20


def definition(task: Task | TextTask) -> str:
    """What is asked, in lines: the examples, then the rules."""
    return wrapped(task.definition)


def drawn(task: Task | TextTask) -> str:
    """How instances are drawn, in lines."""
    return wrapped(task.how_drawn)


def instruction(task: Task) -> str:
    """One line: the title, the sizes, where the answer is due, what an answer is. A shift is
    left out: it changes nothing that is asked.
    """
    said = task.own_title
    hidden = {"shift", "form"} if task.titles else {"shift"}  # the title tells the form
    sizes = ", ".join(
        f"{name} = {value}" for name, value in task.sizes().items() if name not in hidden
    )
    due = " Give the answer that is due after the last number." if task.several else ""
    # not "The answer is ...": a model that goes on with a question of its own must not seem to
    # answer
    numbers = (
        "Answers are 0 and 1."
        if task.answers == 2
        else f"Answers are numbers from 0 to {task.answers - 1}."
    )
    return f"{said[0].upper()}{said[1:]} ({sizes}).{due} {numbers}"


def manner(task: Task | TextTask, *, steps: bool) -> str:
    """One sentence: what an answer looks like."""
    return (
        f"Write the steps, then: The answer is {task.noun.upper()}."
        if steps
        else f"Answer with the {task.noun} alone."
    )


class Worder:
    """Tokens as words: one number each, separated by spaces."""

    def __init__(self, task: Task) -> None:
        self._instruction = instruction(task.asked)
        self._cue = CUE_STEPS if task.stepwise else CUE
        small = task.vocabulary <= _MOST_WORDS
        self._words = (
            np.array([str(token) for token in range(task.vocabulary)], dtype=object)
            if small
            else None
        )

    def prompt(self, tokens: NDArray[np.int64]) -> str:
        """The question about tokens (length,)."""
        words = map(str, tokens.tolist()) if self._words is None else self._words[tokens].tolist()
        return f"{self._instruction}\nNumbers: {' '.join(words)}\n{self._cue}"

    def written(self, chain: list[str]) -> str:
        """A chain of values and the answer, the last of them."""
        return f"{' '.join(chain)}. The answer is {chain[-1]}."
