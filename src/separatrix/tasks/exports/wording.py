"""The texts of an export: what a task says of itself, and token tasks as questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Task
from separatrix.tasks.base.words import wrapped
from separatrix.tasks.text import TextTask

CUE = "Answer:"
CUE_STEPS = "Answer step by step:"
"""The last line of a question, in words as in numbers."""
_MOST_WORDS = 1 << 17


def definition(task: Task | TextTask) -> str:
    """What is asked, in lines: the examples, then the rules."""
    return wrapped(task.definition)


def drawn(task: Task | TextTask) -> str:
    """How instances are drawn, in lines."""
    return wrapped(task.how_drawn)


def instruction(task: Task) -> str:
    """One line: the title, the sizes, how tokens are written, where the answer is due, what an
    answer is. A shift is left out: it changes nothing that is asked.
    """
    said = task.own_title
    hidden = {"shift", "form"} if task.titles else {"shift"}  # the title tells the form
    sizes = ", ".join(
        f"{name} = {value}" for name, value in task.sizes().items() if name not in hidden
    )
    due = f" Give the answer that is due after the last {_thing(task)}." if task.several else ""
    spelling = f" {task.spelling}" if task.spelling else ""
    kind, size = task.reply
    if kind == "arrangement":
        answers = f"Answers are arrangements of 0 to {size - 1}."
    elif size == 2:
        answers = "Answers are 0 and 1."
    else:
        answers = f"Answers are numbers from 0 to {size - 1}."
    return f"{said[0].upper()}{said[1:]} ({sizes}).{spelling}{due} {answers}"


def _thing(task: Task) -> str:
    """What a token is called where it is written as a word."""
    return "word" if task.spelling else "number"


def noun(task: Task | TextTask) -> str:
    """What an answer is called."""
    if isinstance(task, Task):
        return task.reply[0]
    return task.noun if task.reply[1] == 1 else f"{task.noun}s"


def manner(task: Task | TextTask, *, steps: bool) -> str:
    """One sentence: what an answer looks like."""
    return (
        f"Write the steps, then a line: {CUE} {noun(task).upper()}"
        if steps
        else f"Answer with the {noun(task)} alone."
    )


def at_length(task: Task | TextTask) -> str:
    """One sentence for chat models, which think first: how to end."""
    return f"Think as long as you like, and end with one line: {CUE} {noun(task).upper()}"


class Worder:
    """Tokens as words, separated by spaces."""

    def __init__(self, task: Task) -> None:
        self._task = task.asked
        self._instruction = instruction(self._task)
        self._cue = CUE_STEPS if task.stepwise else CUE
        self._heading = "Input" if self._task.spelling or _brackets(self._task) else "Numbers"
        self._known: dict[int, str] = {}
        small = self._task.vocabulary <= _MOST_WORDS
        self._words = (
            np.array(list(map(self._task.word, range(self._task.vocabulary))), dtype=object)
            if small
            else None
        )

    def prompt(self, tokens: NDArray[np.int64]) -> str:
        """The question about tokens (length,)."""
        words = (
            map(self._word, tokens.tolist())
            if self._words is None
            else self._words[tokens].tolist()
        )
        return f"{self._instruction}\n{self._heading}: {' '.join(words)}\n{self._cue}"

    def _word(self, token: int) -> str:
        if token not in self._known:
            self._known[token] = self._task.word(token)
        return self._known[token]

    def answer(self, answer: int) -> str:
        return self._task.answer_word(answer)

    def chain(self, values: list[int]) -> list[str]:
        """The steps to an answer, the answer last."""
        *before, answer = values
        return [*map(self._task.word, before), self._task.answer_word(answer)]

    def written(self, chain: list[str]) -> str:
        """A chain of values and the answer, the last of them."""
        return f"{' '.join(chain)}.\n{CUE} {chain[-1]}"


def _brackets(task: Task) -> bool:
    """Whether tokens are no numbers, though nothing needs to be said of them."""
    return not task.word(0).isdigit()
