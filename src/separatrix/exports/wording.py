"""Token tasks as questions in numbers: what is asked, then the tokens as words; and what a
task's docstrings say, for readers of an export.
"""

from __future__ import annotations

import inspect
import re
import sys

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Task, Thought
from separatrix.tasks.text import TextTask

CUE = "Answer:"
CUE_STEPS = "Answer step by step:"
"""The last line of a question, in words as in numbers."""
_MOST_WORDS = 1 << 20
_FORMS = re.compile(
    r"(?P<head>.*?: )(?P<first>.+) \((?P<one>\w+)\), or (?P<second>.+) \((?P<other>\w+)\)"
)
_INTERNALS = (
    (re.compile(r" \((?:else )?\w*Error(?: otherwise)?\)"), ""),
    (re.compile(r"\(\w*Error otherwise; "), "("),
    (re.compile(r":\s+level\(\"[a-z ]+\"\)(?: = 1)?|`"), ""),
)
_CODE = re.compile(r"\w+Error\b|\bRaises\b|level\(")
"""What docstrings say to programmers only; a sentence with it is left out."""
_SENTENCE = re.compile(r"(?<=[.:)])\s+(?=[A-Z])")


def asked(task: Task) -> Task:
    """The task a question is about: of a chain of thought, the one whose chain it is."""
    return task.task if isinstance(task, Thought) else task


def title(task: Task | TextTask) -> str:
    """The task's title; one that names two forms, "2-Sum: does ... (query), or do ...
    (decision)", with the task's own only.
    """
    found = _FORMS.fullmatch(type(task).title)
    form = task.sizes().get("form")
    if found and form in (found["one"], found["other"]):
        return found["head"] + found["first" if form == found["one"] else "second"]
    return type(task).title


def instruction(task: Task) -> str:
    """One line: the title, the sizes, where the answer is due, what an answer is. A shift is
    left out: it changes nothing that is asked.
    """
    task = asked(task)
    said = title(task)
    hidden = {"shift"} if said == type(task).title else {"shift", "form"}
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
    kind = "number" if isinstance(task, Task) else "name"
    return (
        f"Write the steps, then: The answer is {kind.upper()}."
        if steps
        else f"Answer with the {kind} alone."
    )


class Worder:
    """Tokens as words: one number each, separated by spaces."""

    def __init__(self, task: Task) -> None:
        self._instruction = instruction(task)
        self._cue = CUE_STEPS if isinstance(task, Thought) else CUE
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


def definition(task: Task | TextTask) -> str:
    """The docstring of the task's file, token table first, without where it comes from; of a
    chain of thought, that of its task and its own.
    """
    own = inspect.cleandoc(sys.modules[type(task).__module__].__doc__ or "")
    own = re.sub(r"(?ms)[ \n]Source:\s.*?(?=^$|\Z)| \(theory\.md[^)]*\)| \[here\]", "", own).strip()
    if not isinstance(task, Thought):
        return own
    return "\n\n".join(
        [definition(task.task), own, *([_pairs(task)] if task.form == "pairs" else [])]
    )


def _pairs(task: Thought) -> str:
    """The ids of pairs, read off `Thought.pair`."""
    zero, step = (int(task.pair(np.array(w), np.array(0))) for w in (0, 1))
    return (
        f"The id of a pair is vocabulary + w * values + value: here {zero} + {step - zero} w +"
        f" value, where {zero} is the number of ids that the prompt may hold, w the token w, and"
        f" value from 0 to {step - zero - 1}. Asked in words, the chain is written as plain values."
    )


def drawn(task: Task | TextTask) -> str:
    """How the task's sampler draws: the docstring of its class, without what is said about
    errors and other code, and the shift, if any.
    """
    if isinstance(task, Thought):
        return f"{drawn(task.task)}\n\nWhat is written behind a prompt follows from it."
    paragraphs = [_plain(part) for part in (inspect.getdoc(type(task)) or "").split("\n\n")]
    if isinstance(task, Task) and (meant := task.shifts.get(task.sizes().get("shift", ""))):
        paragraphs.append(f"Here: {meant}.")
    return "\n\n".join(part for part in paragraphs if part)


def _plain(text: str) -> str:
    for pattern, instead in _INTERNALS:
        text = pattern.sub(instead, text)
    if _CODE.search(text):
        text = " ".join(part for part in _SENTENCE.split(text) if not _CODE.search(part))
    return text
