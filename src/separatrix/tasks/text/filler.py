"""Sentences that say nothing of what is asked, from word lists of our own: any number of words."""

from __future__ import annotations

import re
from typing import Final

from separatrix.core.numbers.lazy import np

SHORTEST: Final = 6
_LONGEST: Final = 12
"""Words of a sentence."""
_WORDS: Final = {
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
_LISTS: Final = {kind: words.split() for kind, words in _WORDS.items()}
_PLACES: Final = [f"{one} the {two}" for one in _LISTS["where"] for two in _LISTS["place"]]
_TIMES: Final = [f"{one} the {two}" for one in _LISTS["when"] for two in _LISTS["time"]]
FILLER: Final = re.compile(rf"The(?: [a-z]+){{{SHORTEST - 1},{_LONGEST - 1}}}\.")
"""What such a sentence looks like."""


def filler(words: int, rng: np.random.Generator) -> list[str]:
    """Sentences of `words` words in all; `words` is 0 or at least SHORTEST."""
    lengths = _lengths(words, rng)
    # one column of draws for each place of a sentence
    draws = rng.integers(1 << 30, size=(len(lengths), 8)).tolist()
    return [_sentence(length, drawn) for length, drawn in zip(lengths, draws, strict=True)]


def _lengths(words: int, rng: np.random.Generator) -> list[int]:
    """Lengths that add up to `words`: uniform ones, then one or two that fit."""
    lengths: list[int] = []
    for length in rng.integers(SHORTEST, _LONGEST + 1, size=words // SHORTEST).tolist():
        if words <= _LONGEST + SHORTEST:
            break
        # what is left must be a sentence too
        length = min(length, words - SHORTEST)
        lengths.append(length)
        words -= length
    if words > _LONGEST:
        lengths.append(SHORTEST)
        words -= SHORTEST
    return lengths + [words] * (words > 0)


def _sentence(length: int, drawn: list[int]) -> str:
    """A sentence of that many words: a core of six, phrases of three, and single words."""
    more = length - SHORTEST
    parts = [
        "The",
        _of(_LISTS["adjective"], drawn[0]),
        _of(_LISTS["noun"], drawn[1]),
        _of(_LISTS["verb"], drawn[2]),
    ]
    if more % 3:
        parts.append(_of(_LISTS["adverb"], drawn[3]))
    parts.append("the")
    if more % 3 == 2:
        parts.append(_of(_LISTS["adjective"], drawn[4]))
    parts.append(_of(_LISTS["noun"], drawn[5]))
    if more >= 3:
        parts.append(_of(_PLACES, drawn[6]))
    if more >= 6:
        parts.append(_of(_TIMES, drawn[7]))
    return f"{' '.join(parts)}."


def _of(words: list[str], drawn: int) -> str:
    return words[drawn % len(words)]


def among(needles: list[str], words: int, rng: np.random.Generator) -> str:
    """A text of `words` words: the needles in their order at a uniform set of places among filler
    sentences.
    """
    told = sum(needle.count(" ") + 1 for needle in needles)
    sentences = filler(words - told, rng)
    places = rng.choice(len(sentences) + len(needles), len(needles), replace=False)
    rest = iter(sentences)
    wanted = dict(zip(sorted(places.tolist()), needles, strict=True))
    return " ".join(
        wanted[place] if place in wanted else next(rest)
        for place in range(len(sentences) + len(needles))
    )
