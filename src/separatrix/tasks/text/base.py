"""Tasks in natural language: sizes, a sampler, a reader that answers, a chance level, texts."""

from __future__ import annotations

import re
from abc import abstractmethod
from fractions import Fraction
from typing import Final, NamedTuple

from separatrix.core.errors import SpecError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import Described
from separatrix.tasks.text.names import PATTERN

QUESTION: Final = "\n\nQuestion: "
"""Stands between what is told and the question."""
_SPACING: Final = re.compile(r"^\s|\s$|[^\S ]| (?= )")
"""White space that no part of a prompt has."""
_SHOWN: Final = 80


def short(text: str) -> str:
    """Text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


class TextItem(NamedTuple):
    """An instance: the prompt, its one right answer, the sentences that lead to it in order, and
    all candidates, the answer among them, by alphabet. Of an answer of several names the candidates
    are those for the one that the audit guesses.
    """

    prompt: str
    answer: str
    steps: tuple[str, ...]
    choices: tuple[str, ...]


class TextTask(Described):
    """A task in words at a size. A prompt ends where the answer is due; " " and `target` follow."""

    noun = "name"
    """What an answer is called in a question."""
    due = "due after the prompt; with style=steps the sentences of the chain stand before it"
    made_of = ("sentences", 24)
    grows = "n"
    """The size that grows the prompt, all others kept."""
    pattern = PATTERN
    """A regular expression, without groups, of what an answer looks like: all answers match,
    other words of a text hardly ever.
    """

    @property
    def _made_of(self) -> int:
        return self.sentences

    @property
    @abstractmethod
    def sentences(self) -> int:
        """Sentences of a prompt, the question not counted."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Names that one name of an answer is guessed from."""

    @property
    def chance(self) -> Fraction:
        """Accuracy of a guess among the choices, exact."""
        return Fraction(1, self.candidates)

    def audited(self, item: TextItem) -> str:
        """The name of an answer that the audit guesses, one of `item.choices`."""
        return item.answer

    def level(self, probe: str) -> Fraction:
        """What a probe of `tasks.PROBES` may reach at that name: a guess, unless told."""
        return Fraction(1, self.candidates)

    @property
    def reply(self) -> tuple[str, int, bool]:
        """What an answer looks like: ("names", how many, whether their order counts)."""
        return "names", 1, False

    @abstractmethod
    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        """`batch` instances, drawn with `rng` only."""

    @abstractmethod
    def answer(self, prompt: str) -> str:
        """The right answer, read from the text. Raises SpecError or SizeError for no instance."""

    @abstractmethod
    def steps(self, prompt: str) -> list[str]:
        """The sentences that lead to the answer, in their order. Raises as `answer` does."""

    def _apart(self, prompt: str, cue: str) -> tuple[str, str]:
        """What a prompt tells, and its question. Raises SpecError for text of another form."""
        if not isinstance(prompt, str):
            raise SpecError(f"{self.spec}: a prompt is text, but this is a {type(prompt).__name__}")
        told, parted, rest = prompt.partition(QUESTION)
        question, newline, last = rest.partition("\n")
        if not parted or not newline:
            raise SpecError(
                f"{self.spec}: '{short(prompt)}' is no prompt: a text, an empty line, a line"
                f" 'Question: ...' and a line '{cue}'"
            )
        for part in (told, question, last):
            if found := _SPACING.search(part):
                near = part[max(0, found.start() - 20) : found.end()]
                raise SpecError(
                    f"{self.spec}: {near!r} ends in white space that no prompt has; words stand one"
                    " blank apart, all that is told on one line, and nothing follows the last"
                )
        if last != cue:
            raise SpecError(f"{self.spec}: the last line is '{short(last)}', not '{cue}'")
        return told, question

    def target(self, item: TextItem) -> str:
        """What is to be written after the prompt: the answer, or the steps and then the answer."""
        return item.answer

    @property
    def extent(self) -> tuple[str, ...]:
        """How large an instance is, in words: that differs from one to the next."""
        return ()

    @property
    def told_apart(self) -> None:
        """No count of prefixes: prompts in words have no fixed length."""
        return None
