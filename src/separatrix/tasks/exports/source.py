"""Rows of an export by column: of a task of tokens, with labels, or in words; its wording."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from separatrix.core.errors import SpecError
from separatrix.core.numbers.lazy import Ints, np
from separatrix.tasks import NO_ANSWER, Task
from separatrix.tasks.base.described import wrapped
from separatrix.tasks.base.task import Batch
from separatrix.tasks.drawing.distinct import one_of
from separatrix.tasks.exports.replies import Shape
from separatrix.tasks.labels import IGNORED, LABELS, label_vocabulary, token_labels
from separatrix.tasks.text import TextItem, TextTask

CUE = "Answer:"
CUE_STEPS = "Answer step by step:"
"""The last line of a question, in words as in numbers."""
AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})
"""Words of a task -> what is written instead: nothing."""


def instruction(task: Task) -> str:
    """One line: title, sizes, how tokens are written, where and what an answer is; no shift."""
    said = task.own_title
    hidden = {"shift", "form"} if task.titles else {"shift"}  # the title tells the form
    sizes = ", ".join(
        f"{name} = {value}" for name, value in task.sizes().items() if name not in hidden
    )
    thing = "word" if task.spelling else "number"
    due = f" Give the answer that is due after the last {thing}." if task.several else ""
    spelling = f" {task.spelling}" if task.spelling else ""
    kind, size = task.reply
    if kind == "arrangement":
        answers = f"Answers are arrangements of 0 to {size - 1}."
    elif size == 2:
        answers = "Answers are 0 and 1."
    else:
        answers = f"Answers are numbers from 0 to {size - 1}."
    return f"{said[0].upper()}{said[1:]} ({sizes}).{spelling}{due} {answers}"


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


def legend(instead: Mapping[str, str]) -> str:
    """One sentence: what words stand for that are written instead of others."""
    told = ", ".join(f"{word} for {meant}" for meant, word in instead.items())
    return f"Words stand for what is more than one token: {told}."


Rows = dict[str, Any]
"""Columns by name: lists, or for integers arrays (rows,) or (rows, length)."""
Kind = Literal["int", "ints", "text", "texts"]
MOST_CHOICES = 10
"""Most answers offered as choices: of numbers, the single digits, which every tokenizer writes
as one token.
"""
MOST_BALANCED = 100
"""Most answers that are kept as frequent as they are drawn; with more, waiting for the right one
would take long.
"""
_NUMBERS = "the question in words, for readers of the definition"


class Column(NamedTuple):
    name: str
    kind: Kind
    meaning: str


class Drawn(NamedTuple):
    """Instances before they are worded.

    `keys[i]` says what of row i must not occur twice, `answers[i]` its answer (0 for all where
    these are many), and `render(rows)` makes the columns of these rows.
    """

    keys: list[tuple[bytes, ...]]
    answers: list[int]
    render: Callable[[Ints], Rows]


def text_columns(question: str, *, steps: bool, choices: bool) -> tuple[Column, ...]:
    """What both kinds of tasks have."""
    every = (
        Column("prompt", "text", f"{question}; what follows it is a space and the completion"),
        Column("answer", "text", "the right answer"),
        Column(
            "completion",
            "text",
            "what is to be written: the answer, or the steps and then the answer",
        ),
        Column("steps", "texts", "what leads to the answer, in order"),
        Column("choices", "texts", "all candidates, the answer among them"),
    )
    left_out = {"steps": not steps, "choices": not choices}
    return tuple(column for column in every if not left_out.get(column.name))


def key_of(data: Ints | bytes) -> bytes:
    # 128 bits: among 2^33 keys, two agree by chance with probability below 2^-60
    return hashlib.blake2b(
        data if isinstance(data, bytes) else np.ascontiguousarray(data).data, digest_size=16
    ).digest()


class TokenSource:
    """Tokens and targets as the task draws them, and the same as a question; or, as `labels`, input
    ids and labels alone: what a model trains on, and nothing to read.

    Of a task with answers at several places the question is asked at one of them, drawn uniformly.
    Of a chain of thought it is asked after the prompt. Some words are written as others `instead`.
    """

    guess = "the best constant guess"
    """The guess that `chance` is the accuracy of."""
    stop = "."
    """What ends the steps where they are written one after the other."""

    def __init__(
        self, task: Task, instead: Mapping[str, str] = AS_THEY_ARE, *, labels: bool = False
    ) -> None:
        self.task = task
        asked = self.asked = task.asked
        self._labels = label_vocabulary(task) if labels else None
        self.spec = f"{task.spec},{LABELS}" if labels else task.spec
        """The text that asks for these rows."""
        self._instead = instead
        self._instruction = instruction(asked)
        plain = not asked.spelling and asked.word(0).isdigit()
        self._heading = "Numbers" if plain else "Input"
        self._word = cache(lambda token: self._spelt(asked.word(token)))
        self.length = task.length
        """Tokens of a row; of texts, about how many words."""
        self.stepwise = task.stepwise
        """Whether the question asks for the steps too."""
        above = [wrapped(asked.definition), *([legend(instead)] if instead else [])]
        self.lead = "".join(f"{part}\n\n" for part in above)
        """What stands above the first question, before the sentence about answers."""
        self.shape = Shape(*asked.reply)
        self.largest = max(task.vocabulary, task.answers, task.length, self._labels or 0)
        """The largest integer of a row."""
        few = asked.answers <= MOST_CHOICES
        self.choices = list(map(self._answer, range(asked.answers))) if few else None
        """Few answers to choose from: the same in every row, or the column that has them; None
        where there are many.
        """
        self.balanced = asked.answers <= MOST_BALANCED
        self.chance = asked.chance
        """Accuracy of the best constant guess at the answer to the question."""
        self.share = self.chance if self.balanced else Fraction(1)
        """The same; 1 where `Drawn.answers` says nothing."""
        self.words = 4 + asked.steps
        """About how many words answer with all steps."""
        self._places = task.several and not self.stepwise
        self.columns = self._described()

    def _described(self) -> tuple[Column, ...]:
        task = self.task
        told = f"the {task.length:,} tokens, integers from 0 to {task.vocabulary - 1:,}"
        if self._labels is not None:
            due = f"the token id due after each token, below {self._labels:,}"
            due += f", or {IGNORED} where none is due"
            return Column("input_ids", "ints", told), Column("labels", "ints", due)
        after_each = f"the answer due after each token, or {NO_ANSWER} where none is due"
        place = "index of the token after which the question asks for the answer"
        return (
            Column("tokens", "ints", told),
            Column("targets", "ints", after_each)
            if task.several
            else Column("target", "int", "the answer due after the last token"),
            *([Column("place", "int", place)] if self._places else ()),
            *text_columns(_NUMBERS, steps=self.asked.steps > 0, choices=False),
        )

    def prompt(self, tokens: Ints) -> str:
        """The question about tokens (length,)."""
        words = " ".join(map(self._word, tokens.tolist()))
        cue = CUE_STEPS if self.stepwise else CUE
        return f"{self._instruction}\n{self._heading}: {words}\n{cue}"

    def _spelt(self, word: str) -> str:
        return self._instead.get(word, word)

    def _answer(self, answer: int) -> str:
        return self._spelt(self.asked.answer_word(answer))

    def sizes(self) -> dict[str, Any]:
        """The sizes of the task and what follows from them, as plain data."""
        task = self.task
        count = task.prefix_classes()
        classes = None if count is None else {"after": task.prefix_length, "log2": count.log2_str()}
        ids = {"ids": self._labels, "ignored": IGNORED}
        return {
            "sizes": self.asked.sizes(),
            "length": task.length,
            "vocabulary": task.vocabulary,
            "answers": task.answers,
            "several": task.several,
            "prefix_classes": classes,
        } | ({} if self._labels is None else {"labels": ids})

    def draw(self, batch: int, rng: np.random.Generator) -> Drawn:
        tokens, targets = self.task.sample(batch, rng)
        ends = np.full(batch, self.asked.length - 1)
        keys: list[tuple[bytes, ...]] = [(key_of(row),) for row in tokens]
        if self._places:
            due = targets != NO_ANSWER
            ends = one_of(due, rng)
            answers = targets[np.arange(batch), ends]
            # neither a row nor a question about another row may come twice
            keys = [
                (*key, key_of(row[: end + 1]))
                for key, row, end in zip(keys, tokens, ends, strict=True)
            ]
        else:
            answers = targets[:, -1] if self.task.several else targets
        return Drawn(
            keys,
            answers.tolist() if self.balanced else [0] * batch,
            lambda rows: self._columns(tokens[rows], targets[rows], answers[rows], ends[rows]),
        )

    def _columns(self, tokens: Ints, targets: Ints, answers: Ints, ends: Ints) -> Rows:
        if self._labels is not None:
            return dict(token_labels(self.task, Batch(tokens, targets))._asdict())
        made: Rows = {"tokens": tokens, "targets" if self.task.several else "target": targets}
        if self._places:
            made["place"] = ends
        made["prompt"] = [
            self.prompt(row[: end + 1]) for row, end in zip(tokens, ends.tolist(), strict=True)
        ]
        made["answer"] = made["completion"] = list(map(self._answer, answers.tolist()))
        chains = self.asked.chain(tokens[:, : self.asked.length])
        if chains is not None:
            made["steps"] = [
                [*map(self._word, before), self._answer(answer)]
                for *before, answer in chains.tolist()
            ]
            if self.stepwise:
                made["completion"] = [
                    f"{' '.join(chain)}.\n{CUE} {chain[-1]}" for chain in made["steps"]
                ]
        return made


class TextSource:
    """Questions as the task words them."""

    guess = "a guess among the candidates"
    lead = "Answer the question from the facts. "
    stop = ""
    largest = 0
    share = Fraction(1)

    def __init__(self, task: TextTask) -> None:
        self.task = task
        self.spec = task.spec
        first = task.sample(1, np.random.default_rng(0))[0]
        self.length = len(first.prompt.split())
        self.stepwise = task.target(first) != first.answer
        self.shape = Shape(*task.reply, task.pattern)
        self._choices = self.shape.size == 1 and bool(first.choices)
        few = self._choices and len(first.choices) <= MOST_CHOICES
        self.choices = "choices" if few else None
        self.chance = task.chance
        self.words = 4 + sum(len(step.split()) for step in first.steps)
        self._steps = bool(first.steps)
        self.columns = text_columns("facts and question", steps=self._steps, choices=self._choices)

    def sizes(self) -> dict[str, Any]:
        return {"sizes": self.task.sizes()}

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


Source = TokenSource | TextSource


def source_of(
    task: Task | TextTask, instead: Mapping[str, str] = AS_THEY_ARE, *, labels: bool = False
) -> Source:
    """What exports ask of a task, some of its tokens written as others `instead`. Raises SpecError
    for labels of a task in words.
    """
    if isinstance(task, Task):
        return TokenSource(task, instead, labels=labels)
    if labels:
        raise SpecError(f"{task.spec}: a task in words has no token ids; leave {LABELS} out")
    return TextSource(task)
