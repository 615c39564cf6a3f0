from __future__ import annotations

import re
from typing import Final

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, require
from separatrix.tasks.text.base import TextItem
from separatrix.tasks.text.haystack import NAME, Haystack
from separatrix.tasks.text.names import PATTERN, names, some_names

_FIRST: Final = re.compile(rf"The variable ({PATTERN}) holds the word ({PATTERN})\.")
_COPY: Final = re.compile(rf"The variable ({PATTERN}) copies the variable ({PATTERN})\.")


class Variables(Haystack):
    """Variable tracking in words: which variables hold a word, at first or as copies of copies?

        part       input                                                         target
        text       The variable Mavdok holds the word Fizgub. The old miller     .
                   passed the gate. The variable Gofgem copies the variable      .
                   Mavdok. The small ferry ...                                   .
        question   Question: Which 2 variables hold the word Fizgub, by          .
                   alphabet?                                                     .
        cue        Answer:                                                       Gofgem, Mavdok

    In a text of length words stand several chains: a variable that holds a word, one that copies
    it, one that copies the copy, and so on, hops copies in each. All names differ, and the
    sentences stand in any order: a copy may be told of before what it copies. Asked for are all
    variables of one chain, by alphabet.

    Drawn: chains >= 2, hops >= 1. length, in words between white space, the question not counted,
    from 7 for each variable and 6 more up to 2^20.

    Names are different uniform ones. The sentences of all chains stand in uniform order at a
    uniform set of places among sentences of filler; the chain asked for is uniform. So chains are
    alike but for the word in the question, and what stands near a sentence, or behind it, says
    nothing of its chain. Chance is that of a guess among whole chains, which whoever has not
    followed them cannot even name; one step leads from the word to the first variable of its chain,
    and hops more to the last one.

    Counted: None counted: prompts in words have no fixed length.

    From: RULER, arXiv 2404.06654, variable tracking: there "VAR X2 = VAR X1", one chain of four
    hops unless told, values of five digits, noise sentences as filler, a variable told of before it
    is copied
    """

    name = "variables"
    title = "variable tracking in words: chains of copies among filler; answer all that hold a word"
    usage = "length (words), chains, hops (copies in a chain)"
    grid = ladder("""
        length=80,chains=3,hops=1 length=120,chains=4,hops=2 length=160,chains=4,hops=4
        length=1024,chains=4,hops=4 length=8192,chains=8,hops=4 length=32768,chains=8,hops=8
        length=131072,chains=16,hops=8
    """)

    chains: int
    hops: int

    def __post_init__(self) -> None:
        require(self.name, "chains", self.chains, 2, len(names()))
        require(self.name, "hops", self.hops, 1, len(names()))
        self._check_length()

    @property
    def needles(self) -> int:
        return self.chains * (self.hops + 1)

    @property
    def candidates(self) -> int:
        return self.chains

    @property
    def reply(self) -> tuple[str, int, bool]:
        return "names", self.hops + 1, False

    @property
    def numbers(self) -> dict[str, int]:
        return {
            "words in a text": self.length,
            "chains": self.chains,
            "hops": self.hops,
            "variables to answer with": self.hops + 1,
        }

    def _item(self, rng: np.random.Generator) -> TextItem:
        size = self.hops + 2
        drawn = some_names(self.chains * size, rng)
        told = []
        for start in range(0, len(drawn), size):
            word, first, *copies = drawn[start : start + size]
            sources = [first, *copies]
            told.append(
                [
                    f"The variable {first} holds the word {word}.",
                    *(
                        f"The variable {copy} copies the variable {source}."
                        for copy, source in zip(copies, sources, strict=False)
                    ),
                ]
            )
        sentences = [sentence for chain in told for sentence in chain]
        order = rng.permutation(len(sentences)).tolist()
        word, *variables = drawn[:size]
        return TextItem(
            self._prompt([sentences[at] for at in order], self._question([word]), rng),
            ", ".join(sorted(variables)),
            tuple(told[0]),
            # the last variable of every chain, which takes all hops to find
            tuple(sorted(drawn[size - 1 :: size])),
        )

    def _question(self, asked: list[str]) -> str:
        return f"Which {self.hops + 1} variables hold the word {asked[0]}, by alphabet?"

    def audited(self, item: TextItem) -> str:
        """The last variable of the chain."""
        return NAME.findall(item.steps[-1])[0]

    def answer(self, prompt: str) -> str:
        return ", ".join(sorted(NAME.findall(step)[0] for step in self.steps(prompt)))

    def steps(self, prompt: str) -> list[str]:
        told, question = self._taken_apart(prompt, {"first": _FIRST, "copy": _COPY})
        # who copies a variable, and which one holds a word: name -> (variable, sentence)
        next_of: dict[str, tuple[str, str]] = {}
        met: set[str] = set()
        words: list[str] = []
        for form, variable, other, sentence in told:
            if variable in met or other in next_of:
                raise self.refused(f"'{sentence}' tells of a variable twice")
            next_of[other] = (variable, sentence)
            met.add(variable)
            words += [other] * (form == "first")
        chains = [self._chain(word, next_of) for word in words]
        if met & set(words) or [len(chain) for chain in chains] != [self.hops + 1] * self.chains:
            raise self.refused(
                f"an instance has {self.chains} chains of {self.hops + 1} variables, and names that"
                " all differ"
            )
        (asked,) = self._asked(question, 1, self._question)
        if asked not in words:
            raise self.refused(f"no variable holds the word {asked} at first")
        return chains[words.index(asked)]

    @staticmethod
    def _chain(word: str, next_of: dict[str, tuple[str, str]]) -> list[str]:
        chain = []
        at = word
        while at in next_of:
            at, sentence = next_of[at]
            chain.append(sentence)
        return chain
