"""Prompts with needles in filler text, from word lists of our own, any number of words."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import require
from separatrix.tasks.text.base import QUESTION, TextTask, short
from separatrix.tasks.text.names import PATTERN, names

SHORTEST: Final = 6
_LONGEST: Final = 12
"""Words of a sentence."""
_LISTED: Final = {
    "adjective": """
        old small grey quiet narrow green tall dusty wooden early busy pale broad gentle heavy plain
        rough bright empty cold patient curious slow careful
    """,
    "noun": """
        miller lantern bridge orchard baker kettle ferry garden clerk barrel shepherd window market
        harbour weaver ladder mill teacher stable cart chimney gardener basket well sailor bell
    """,
    "verb": """
        watched passed painted mended followed carried measured described cleaned found remembered
        opened crossed drew needed visited noticed covered kept moved
    """,
    "adverb": "slowly again twice gladly later often alone quietly",
    "where": "near behind beside under past above",
    "place": "church river meadow tower road wall gate hill",
    "when": "before after during until",
    "time": "rain harvest fair frost storm feast thaw flood",
}
_LISTS: Final = {kind: words.split() for kind, words in _LISTED.items()}


def _phrases(before: str, behind: str) -> list[str]:
    return [f" {one} the {two}" for one in _LISTS[before] for two in _LISTS[behind]]


_ADJECTIVES, _NOUNS, _VERBS, _ADVERBS = (
    [f" {word}" for word in _LISTS[kind]] for kind in ("adjective", "noun", "verb", "adverb")
)
_PLACES, _TIMES = _phrases("where", "place"), _phrases("when", "time")
_CHOICES: Final = [
    *map(len, (_ADJECTIVES, _NOUNS, _VERBS, _ADVERBS, _ADJECTIVES, _NOUNS, _PLACES, _TIMES))
]
"""How many words or phrases each place of a sentence is drawn from."""
FILLER: Final = re.compile(rf"The(?: [a-z]+){{{SHORTEST - 1},{_LONGEST - 1}}}\.")
"""What such a sentence looks like."""


def filler(words: int, rng: np.random.Generator) -> list[str]:
    """Sentences of `words` words in all; `words` is 0 or at least SHORTEST."""
    lengths = _lengths(words, rng)
    # one column of draws for each place of a sentence
    draws = rng.integers(1 << 30, size=(len(lengths), len(_CHOICES))) % _CHOICES
    return [
        _sentence(length, *drawn) for length, drawn in zip(lengths, draws.tolist(), strict=True)
    ]


def _lengths(words: int, rng: np.random.Generator) -> list[int]:
    drawn = rng.integers(SHORTEST, _LONGEST + 1, size=words // SHORTEST)
    left = words - np.cumsum(drawn) + drawn
    # as long as what is left behind is a sentence too
    lengths = drawn[left > _LONGEST + SHORTEST].tolist()
    words -= sum(lengths)
    if words > _LONGEST:
        lengths.append(SHORTEST)
        words -= SHORTEST
    return lengths + [words] * (words > 0)


def _sentence(
    length: int, one: int, who: int, does: int, how: int, other: int, what: int, at: int, when: int
) -> str:
    """A sentence of that many words: a core of six, phrases of three, and single words."""
    more = length - SHORTEST
    adverb = _ADVERBS[how] if more % 3 else ""
    adjective = _ADJECTIVES[other] if more % 3 == 2 else ""
    place = _PLACES[at] if more >= 3 else ""
    time = _TIMES[when] if more >= 6 else ""
    said = f"The{_ADJECTIVES[one]}{_NOUNS[who]}{_VERBS[does]}{adverb}"
    return f"{said} the{adjective}{_NOUNS[what]}{place}{time}."


def among(needles: list[str], words: int, rng: np.random.Generator) -> str:
    """`words` words: the needles in order at a uniform set of places among filler sentences."""
    told = sum(needle.count(" ") + 1 for needle in needles)
    sentences = filler(words - told, rng)
    places = rng.choice(len(sentences) + len(needles), len(needles), replace=False)
    for place, needle in zip(sorted(places.tolist()), needles, strict=True):
        sentences.insert(place, needle)
    return " ".join(sentences)


CUE: Final = "Answer:"
LONGEST_TEXT: Final = 1 << 20
"""Most words of a text."""
TOLD: Final = 7
"""Words of a needle."""


NAME: Final = re.compile(PATTERN)


class Needle(NamedTuple):
    """A sentence about two names: the form that it has, they, and itself."""

    form: str
    one: str
    other: str
    sentence: str


class Haystack(TextTask):
    """Sentences about names, the needles, in a text of `length` words that is filler otherwise."""

    source = "arXiv 2404.06654"
    due = "due after the prompt"
    grows = "length"

    length: int

    @property
    @abstractmethod
    def needles(self) -> int:
        """How many there are."""

    def _check_length(self) -> None:
        """Raises SizeError without room for the needles, or two names for each."""
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

    def _prompt(self, needles: list[str], question: str, rng: np.random.Generator) -> str:
        return f"{among(needles, self.length, rng)}{QUESTION}{question}\n{CUE}"

    def _taken_apart(
        self, prompt: str, forms: dict[str, re.Pattern[str]]
    ) -> tuple[list[Needle], str]:
        """A prompt's needles and question. Raises SizeError (length), SpecError (a sentence)."""
        told, question = self._apart(prompt, CUE)
        if (words := told.count(" ") + 1) != self.length:
            raise self.refused(f"the text has {words:,} words; an instance has {self.length:,}")
        found: list[Needle] = []
        for part in told.removesuffix(".").split(". "):
            sentence = f"{part}."
            for form, pattern in forms.items():
                if match := pattern.fullmatch(sentence):
                    found.append(Needle(form, match[1], match[2], sentence))
                    break
            else:
                if not FILLER.fullmatch(sentence):
                    raise SpecError(f"{self.spec}: '{short(sentence)}' is no sentence of this task")
        return found, question

    def _asked(self, question: str, number: int, wording: Callable[[list[str]], str]) -> list[str]:
        """The names that a question asks for, all different. Raises SpecError."""
        asked = NAME.findall(question)
        if len(set(asked)) != number or question != wording(asked):
            raise SpecError(f"{self.spec}: '{short(question)}' is no question of this task")
        return asked
