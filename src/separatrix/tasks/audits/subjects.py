"""The subject of an audit: all that it needs to know of a task, of tokens or of words.

Of words, every sentence becomes its wording, the names taken out, and then its names; one that
names nobody is like any other such. The cue after the question is the same in every prompt and left
out. The candidates of a prompt are numbered in the order in which they are first named, and the
number is the answer's class. The other names get numbers at random: their order would tell which
facts share a name, and so do a part of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np

from separatrix.core.errors import SpecError
from separatrix.tasks import NO_ANSWER, PLAIN, Task
from separatrix.tasks.audits.learners import Learner, Prompts, cut
from separatrix.tasks.audits.shortcuts import shortcut
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.measured import stated
from separatrix.tasks.text import TextItem, TextTask
from separatrix.tasks.text.names import names

Draw = Callable[[int, np.random.Generator], tuple[Prompts, Tokens]]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """`draw(instances, rng)` gives prompts of at most `length` tokens and their right answers
    (instances,), classes in [0, answers).
    """

    spec: str
    answers: int
    length: int
    chance: Fraction
    level: Callable[[str], Fraction]
    draw: Draw
    shortcuts: Mapping[str, Learner[Prompts]]
    """Probes that look at what this kind of task is made of."""
    promised: bool = True
    """Whether the task promises its levels: no shift does."""
    note: str = ""


def of_tokens(task: Task) -> Subject:
    """The prompts as they are; where answers are due at several places, each cut at a uniform
    one of them. Raises SpecError for a chain of thought.
    """
    if task.stepwise:
        raise SpecError(
            f"{task.spec}: a chain of thought is there to be followed, and no shortcut; audit the"
            f" task without it: {task.asked.spec}"
        )

    shift = getattr(task, "shift", PLAIN)

    def draw(instances: int, rng: np.random.Generator) -> tuple[Prompts, Tokens]:
        tokens, targets = task.sample(instances, rng)
        if not task.several:
            return Prompts(tokens, tokens, task.vocabulary), targets
        # the largest of equally distributed numbers is at each place due equally often
        places = np.where(targets != NO_ANSWER, rng.random(targets.shape), -1.0).argmax(axis=1)
        return cut(tokens, places, nothing=task.vocabulary), targets[np.arange(instances), places]

    return Subject(
        spec=task.spec,
        answers=task.answers,
        length=task.length,
        chance=task.chance,
        # a shift may make its own chance larger than a level of the task without it
        level=lambda probe: max(stated(task, probe) or Fraction(1), task.chance),
        draw=draw,
        shortcuts={name: shortcut(name, task) for name in task.shortcuts},
        promised=shift == PLAIN,
        note=(
            ""
            if shift == PLAIN
            else (
                f"shift={shift} promises nothing about shortcuts; the levels are those of the task"
                " without it"
            )
        ),
    )


_SENTENCE = re.compile(r"[^.?!:\n]+")
_WORD = re.compile(r"\w+")
_NAMES_OF_A_FACT = 2


def of_words(task: TextTask) -> Subject:
    """The task as the probes see it; its answers are the candidates of a prompt, by number."""
    known = frozenset(names())

    def draw(instances: int, rng: np.random.Generator) -> tuple[Prompts, Tokens]:
        return _tokens(task, task.sample(instances, rng), known, rng)

    return Subject(
        spec=task.spec,
        answers=task.candidates,
        length=(1 + _NAMES_OF_A_FACT) * (task.sentences + 1),
        chance=Fraction(1, task.candidates),
        level=lambda probe: stated(task, probe) or Fraction(1),
        draw=draw,
        shortcuts={name: shortcut(name, task) for name in task.shortcuts},
    )


def _tokens(
    task: TextTask, items: list[TextItem], known: frozenset[str], rng: np.random.Generator
) -> tuple[Prompts, Tokens]:
    wordings: dict[str, int] = {}
    rows = []
    answers = []
    for item in items:
        sentences = [_WORD.findall(sentence) for sentence in _SENTENCE.findall(item.prompt)]
        # the cue behind the question names nobody
        while sentences and not known.intersection(sentences[-1]):
            sentences.pop()
        mentioned = dict.fromkeys(word for word in chain(*sentences) if word in known)
        candidates = [name for name in mentioned if name in item.choices]
        others = [name for name in mentioned if name not in item.choices]
        numbers = chain(
            range(len(candidates)), (len(candidates) + rng.permutation(len(others))).tolist()
        )
        number = dict(zip(candidates + others, numbers, strict=True))
        row: list[int] = []
        for words in sentences:
            named = not known.isdisjoint(words)
            # filler, which names nobody, is one word
            wording = " ".join("_" if word in known else word for word in words) if named else ""
            row += [
                # negative, to stand apart from names until the largest number of a name is known
                -1 - wordings.setdefault(wording, len(wordings)),
                *(number[word] for word in words if word in known),
            ]
        rows.append(row)
        answers.append(number[task.audited(item)])
    return _aligned(rows, len(wordings)), np.array(answers)


def _aligned(rows: list[list[int]], wordings: int) -> Prompts:
    """Names keep their numbers; wordings, which are negative, follow the largest of these."""
    lengths = np.array([len(row) for row in rows])
    longest = int(lengths.max())
    tokens = np.array([row + [0] * (longest - len(row)) for row in rows])
    largest = int(tokens.max())
    tokens = np.where(tokens < 0, largest - tokens, tokens)
    nothing = largest + wordings + 1
    return (
        Prompts(tokens, tokens, nothing)
        if lengths.min() == longest
        else cut(tokens, lengths - 1, nothing=nothing)
    )
