"""The parts that prompts with needles in filler text share: their sizes, and how they are read."""

from __future__ import annotations

import re
from typing import Final

from separatrix.errors import SizeError, SpecError
from separatrix.tasks.base.sizes import require
from separatrix.tasks.text.filler import FILLER, SHORTEST
from separatrix.tasks.text.names import names
from separatrix.tasks.text.reader import QUESTION, short

CUE: Final = "Answer:"
LONGEST_TEXT: Final = 1 << 20
"""Most words of a text."""


def check_length(task: str, length: int, needles: int, told: int) -> None:
    """Raises SizeError for a text without room for `needles` sentences of `told` words in all, and
    for more names than there are: two for every needle.
    """
    require(task, "length", length, told + SHORTEST, LONGEST_TEXT)
    if 2 * needles > len(names()):
        raise SizeError(
            f"{task}: {needles:,} sentences need {2 * needles:,} names; there are {len(names()):,}"
        )


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
