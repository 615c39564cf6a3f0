from __future__ import annotations

import re
from collections import defaultdict
from fractions import Fraction
from math import comb, perm
from typing import Final

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, require
from separatrix.tasks.text.base import TextItem
from separatrix.tasks.text.haystack import Haystack, Needle
from separatrix.tasks.text.names import PATTERN, names, some_names

_NEEDLE: Final = re.compile(rf"The code word of ({PATTERN}) is ({PATTERN})\.")


class Needles(Haystack):
    """Needles in a haystack: words kept under names, told between sentences of filler.

        part       input                                                        target
        text       The old miller passed the gate. The code word of Mavdok      .
                   is Fizgub. The small ferry ...                               .
        question   Question: What is the code word of Mavdok?                   .
        cue        Answer:                                                      Fizgub

    In a text of length words each of the keys has its code words, as many as values says, a
    sentence each. All names differ. Asked for are all code words of one key, by alphabet (values >
    1), or the one of each of several keys, in the order of the question (queries > 1). The
    candidates are all code words of the text.

    Drawn: keys >= 2, values >= 1, queries >= 1 and at most as many as keys; values or queries is 1.
    length, in words between white space, the question not counted, from 7 for each needle and 6
    more up to 2^20; a tokenizer makes one token of a word at least, so that 131,072 words are 128k
    tokens or more.

    Names are different uniform ones, the needles stand in uniform order at a uniform set of places
    among the sentences of filler, and the keys asked for are uniform. So all needles are alike but
    for the name in the question: what is asked for is at any place with the same probability, and
    whoever does not read names is right with the probability of a guess. The words of another key
    are not the answer: of m keys left, each word is with probability 1/m times that of a guess
    among its own.

    Filler is made of word lists of our own, "The grey kettle covered the small bell near the
    river.", in sentences of 6 to 12 words, and names nobody.

    Counted: None counted: prompts in words have no fixed length.

    From: RULER, arXiv 2404.06654: its needles with several keys, several values and several
    queries. There a needle is a word and a number of seven digits, and the filler is noise
    sentences or essays
    """

    name = "needles"
    title = (
        "needles in a haystack: code words of several names among filler; answer those asked for"
    )
    usage = "length (words), keys, values (of a key, default 1), queries (default 1)"
    grid = ladder("""
        length=80,keys=4 length=120,keys=4,values=2 length=120,keys=6,queries=2 length=1024,keys=8
        length=4096,keys=16,values=4 length=32768,keys=64 length=131072,keys=64,queries=4
    """)

    keys: int
    values: int = 1
    queries: int = 1

    def __post_init__(self) -> None:
        require(self.name, "keys", self.keys, 2, len(names()))
        require(self.name, "values", self.values, 1, len(names()))
        require(self.name, "queries", self.queries, 1, self.keys)
        if self.values > 1 and self.queries > 1:
            raise SizeError(
                f"{self.name}: values is {self.values} and queries is {self.queries}; one of them"
                " must be 1"
            )
        self._check_length()

    @property
    def needles(self) -> int:
        return self.keys * self.values

    @property
    def candidates(self) -> int:
        return self.needles

    @property
    def reply(self) -> tuple[str, int, bool]:
        return "names", self.values * self.queries, self.queries > 1

    @property
    def numbers(self) -> dict[str, int]:
        return {
            "words in a text": self.length,
            "needles": self.needles,
            "names asked for": self.queries,
            "words to answer with": self.values * self.queries,
        }

    @property
    def chance(self) -> Fraction:
        """A guess among the code words: of so many of them, or one after the other."""
        if self.queries > 1:
            return Fraction(1, perm(self.keys, self.queries))
        return Fraction(1, comb(self.needles, self.values))

    def level(self, probe: str) -> Fraction:
        """One code word out of all; no word of the one or two nearest keys is the answer."""
        if probe == "nearest key":
            others = min(2, self.keys - 1) * self.values
            return Fraction(1, max(1, self.needles - others))
        return Fraction(1, self.candidates)

    def _item(self, rng: np.random.Generator) -> TextItem:
        drawn = some_names(self.keys + self.needles, rng)
        keys, words = drawn[: self.keys], drawn[self.keys :]
        told = [(keys[i % self.keys], word) for i, word in enumerate(words)]
        told = [told[i] for i in rng.permutation(self.needles).tolist()]
        asked = [keys[i] for i in rng.choice(self.keys, self.queries, replace=False).tolist()]
        found = [pair for key in asked for pair in told if pair[0] == key]
        return TextItem(
            self._prompt([_tell(*pair) for pair in told], self._question(asked), rng),
            self._answer([word for _, word in found]),
            tuple(_tell(*pair) for pair in found),
            tuple(sorted(words)),
        )

    def _question(self, asked: list[str]) -> str:
        if self.queries > 1:
            *before, last = asked
            return f"What are the code words of {', '.join(before)} and {last}, in this order?"
        if self.values > 1:
            return f"What are the {self.values} code words of {asked[0]}, by alphabet?"
        return f"What is the code word of {asked[0]}?"

    def _answer(self, words: list[str]) -> str:
        return ", ".join(words if self.queries > 1 else sorted(words))

    def audited(self, item: TextItem) -> str:
        """The first by alphabet: which of several that is says nothing of places."""
        return min(item.answer.split(", "))

    def answer(self, prompt: str) -> str:
        return self._answer([fact.other for fact in self._found(prompt)])

    def steps(self, prompt: str) -> list[str]:
        return [fact.sentence for fact in self._found(prompt)]

    def _found(self, prompt: str) -> list[Needle]:
        told, question = self._taken_apart(prompt, {"needle": _NEEDLE})
        of: dict[str, list[Needle]] = defaultdict(list)
        for fact in told:
            of[fact.one].append(fact)
        known = {name for fact in told for name in (fact.one, fact.other)}
        if {len(each) for each in of.values()} != {self.values} or len(of) != self.keys:
            raise self.refused(
                f"an instance has {self.keys} keys with {self.values} code words each"
            )
        if len(known) != self.keys + self.needles:
            raise self.refused("two things bear one name; all names differ")
        asked = self._asked(question, self.queries, self._question)
        if unknown := set(asked) - of.keys():
            raise self.refused(f"nothing is told of {min(unknown)}")
        return [fact for key in asked for fact in of[key]]


def _tell(key: str, word: str) -> str:
    return f"The code word of {key} is {word}."
