"""What prompts with needles in filler text share: their sizes, and how they are read."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.sizes import require
from separatrix.tasks.text.base import TextItem, TextTask
from separatrix.tasks.text.filler import FILLER, SHORTEST
from separatrix.tasks.text.names import PATTERN, names
from separatrix.tasks.text.reader import QUESTION, short

CUE: Final = "Answer:"
LONGEST_TEXT: Final = 1 << 20
"""Most words of a text."""
TOLD: Final = 7
"""Words of a needle."""


@dataclass(frozen=True, kw_only=True)
class Haystack(TextTask):
    """Sentences about names, the needles, in a text of `length` words that is filler otherwise."""

    source: ClassVar[str] = "arXiv 2404.06654"
    due: ClassVar[str] = "due after the prompt"
    pattern: ClassVar[str] = PATTERN

    length: int

    @property
    @abstractmethod
    def needles(self) -> int:
        """How many there are."""

    @abstractmethod
    def _item(self, rng: np.random.Generator) -> TextItem:
        """One instance."""

    def _check_length(self) -> None:
        """Raises SizeError for a text without room for its needles, and for more names than there
        are: two for every needle.
        """
        told = TOLD * self.needles
        require(self.name, "length", self.length, told + SHORTEST, LONGEST_TEXT)
        if 2 * self.needles > len(names()):
            raise SizeError(
                f"{self.name}: {self.needles:,} sentences need {2 * self.needles:,} names; there"
                f" are {len(names()):,}"
            )

    @property
    def sentences(self) -> int:
        """At most: the shortest filler throughout."""
        return self.needles + (self.length - TOLD * self.needles) // SHORTEST

    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        return [self._item(rng) for _ in range(self._batch(batch))]

    def target(self, item: TextItem) -> str:
        return item.answer


def taken_apart(spec: str, prompt: str, length: int) -> tuple[list[str], str]:
    """(sentences, question) of a prompt whose text has `length` words. Raises SpecError or
    SizeError.
    """
    if not isinstance(prompt, str):
        raise SpecError(f"{spec}: a prompt is text, but this is a {type(prompt).__name__}")
    told, parted, rest = prompt.partition(QUESTION)
    question, newline, cue = rest.partition("\n")
    if not parted or not newline or cue != CUE:
        raise SpecError(
            f"{spec}: '{short(prompt)}' is no prompt: a text, an empty line, a line 'Question: ...'"
            f" and a line '{CUE}'"
        )
    if (words := told.count(" ") + 1) != length:
        raise SizeError(f"{spec}: the text has {words:,} words; an instance has {length:,}")
    return [f"{part}." for part in told.removesuffix(".").split(". ")], question


def facts(
    spec: str, sentences: list[str], forms: dict[str, re.Pattern[str]]
) -> list[tuple[str, str, str, str]]:
    """The needles, in their order: (form, first name, second name, sentence). Raises SpecError for
    a sentence that is neither a needle nor filler.
    """
    found = []
    for sentence in sentences:
        for form, pattern in forms.items():
            if match := pattern.fullmatch(sentence):
                found.append((form, match[1], match[2], sentence))
                break
        else:
            if not FILLER.fullmatch(sentence):
                raise SpecError(f"{spec}: '{short(sentence)}' is no sentence of this task")
    return found
