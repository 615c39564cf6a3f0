"""Prompts with needles in filler text, from word lists of our own: needles, and variables."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb, perm
from typing import Final, NamedTuple

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.numbers.lazy import Ints, NDArray, np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.task import rows_of
from separatrix.tasks.drawing.distinct import distinct, shuffled, smallest
from separatrix.tasks.text.base import QUESTION, TextItem, TextTask, short
from separatrix.tasks.text.names import MOST, PATTERN, names

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


def _joined(*lists: list[str]) -> list[str]:
    return list(map("".join, product(*lists)))


_ADJECTIVES, _NOUNS, _VERBS, _ADVERBS = (
    [f" {word}" for word in _LISTS[kind]] for kind in ("adjective", "noun", "verb", "adverb")
)
_PLACES, _TIMES = (
    [f" {one} the {two}" for one in _LISTS[before] for two in _LISTS[behind]]
    for before, behind in (("where", "place"), ("when", "time"))
)
FILLER: Final = re.compile(rf"The(?: [a-z]+){{{SHORTEST - 1},{_LONGEST - 1}}}\.")
"""What such a sentence looks like."""


@cache
def _pieces() -> tuple[NDArray[np.object_], NDArray[np.uint32], NDArray[np.uint32]]:
    """All that sentences are made of, list after list. For each number of words above SHORTEST the
    lists of its beginning, middle and end: how many each list has, and where it begins.
    """
    lists = (
        _joined([" The"], _ADJECTIVES, _NOUNS),
        _joined(_VERBS, [" the"]),
        _joined(_VERBS, _ADVERBS, [" the"]),
        _NOUNS,
        _joined(_ADJECTIVES, _NOUNS),
        ["."],
        _joined(_PLACES, ["."]),
        _joined(_PLACES, _TIMES, ["."]),
    )
    # phrases of three words at the end, single ones in the middle
    chosen = [
        (0, 1 + (more % 3 > 0), 3 + (more % 3 > 1), 5 + more // 3)
        for more in range(_LONGEST - SHORTEST + 1)
    ]
    # of 32 bits, whose remainders take a fifth of the time
    sizes = np.array(list(map(len, lists)), np.uint32)
    every = np.array([piece for each in lists for piece in each], object)
    return every, sizes[chosen], (sizes.cumsum(dtype=np.uint32) - sizes)[chosen]


PIECES: Final = 4


def filler(rows: int, words: int, rng: np.random.Generator) -> list[Ints]:
    """For each row sentences of `words` words in all, at least SHORTEST, by the numbers of their
    pieces: `spelt` has these.
    """
    lengths = _lengths(rows, words, rng)
    more = lengths[lengths > 0] - SHORTEST
    _, sizes, starts = _pieces()
    # of as many numbers as all sizes divide
    shape = len(more), PIECES
    drawn = rng.integers(np.lcm.reduce(sizes.ravel()), size=shape, dtype=np.uint32)
    drawn %= sizes.take(more, axis=0)
    drawn += starts.take(more, axis=0)
    numbers = drawn.ravel().astype(np.int64)
    ends = PIECES * np.count_nonzero(lengths, axis=1).cumsum()
    return [numbers[start:end] for start, end in pairwise((0, *ends.tolist()))]


def spelt(numbers: Ints) -> list[str]:
    """Pieces of filler, with a blank before every word. Row by row they stay in a core's cache."""
    return _pieces()[0][numbers].tolist()


def _lengths(rows: int, words: int, rng: np.random.Generator) -> Ints:
    """Words of the sentences of each row, and 0 behind the last."""
    drawn = rng.integers(SHORTEST, _LONGEST + 1, size=(rows, words // SHORTEST + 1))
    left = words - drawn.cumsum(axis=1) + drawn
    # as long as what is left behind is a sentence too
    lengths = np.where(left > _LONGEST + SHORTEST, drawn, 0)
    rest = words - lengths.sum(axis=1)
    last = np.where(rest > _LONGEST, SHORTEST, rest)
    at = np.arange(rows), np.count_nonzero(lengths, axis=1)
    lengths[at] = last
    lengths[at[0], at[1] + 1] = rest - last
    return lengths


CUE: Final = "Answer:"
LONGEST_TEXT: Final = 1 << 20
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

    length: int = size(lambda task: TOLD * task.needles + SHORTEST, LONGEST_TEXT, told="words")

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self.needles > MOST:
            raise SizeError(
                f"{self.name}: {self.needles:,} sentences need {2 * self.needles:,} names; there"
                f" are {MOST:,}"
            )

    @property
    @abstractmethod
    def needles(self) -> int:
        """How many there are."""

    @property
    def sentences(self) -> int:
        """At most: the shortest filler throughout."""
        return self.needles + (self.length - TOLD * self.needles) // SHORTEST

    @property
    @abstractmethod
    def named(self) -> int:
        """How many names there are."""

    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        number = self._batch(batch)
        items: list[TextItem] = []
        while number > len(items):
            items += self._block(min(rows_of(self.length), number - len(items)), rng)
        return items

    def _block(self, rows: int, rng: np.random.Generator) -> list[TextItem]:
        """Instances that are drawn together, which takes a third of the time."""
        every = names()
        drawn = distinct(rows, self.named, len(every), rng, slots=0).tolist()
        orders = shuffled(rows, self.needles, rng).tolist()
        fillers = filler(rows, self.length - TOLD * self.needles, rng)
        # a uniform set of places among as many sentences as the row has
        sentences = np.array(list(map(len, fillers)))[:, None] // PIECES + self.needles
        column = np.arange(sentences.max())
        places = smallest(
            lambda: np.where(column < sentences, rng.random((rows, len(column))), 2), self.needles
        ).tolist()
        return [
            self._item([every[at] for at in each], order, text, at)
            for each, order, text, at in zip(drawn, orders, fillers, places, strict=True)
        ]

    @abstractmethod
    def _item(
        self, named: list[str], order: list[int], filler: Ints, places: list[int]
    ) -> TextItem:
        """About so many names, its needles in that order at these places."""

    def _prompt(self, needles: list[str], question: str, filler: Ints, places: list[int]) -> str:
        text = spelt(filler)
        # from the last on, so that places before it stay; each takes the blank in front of it along
        for at in range(len(places) - 1, -1, -1):
            text.insert(PIECES * (places[at] - at), f" {needles[at]}")
        text[0] = text[0][1:]
        text.append(f"{QUESTION}{question}\n{CUE}")
        return "".join(text)

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


_NEEDLE: Final = re.compile(rf"The code word of ({PATTERN}) is ({PATTERN})\.")


class Needles(Haystack):
    """Needles in a haystack: words kept under names, told between sentences of filler.

        part       input                                              target
        text       The old miller passed the gate. The code word of   .
                   Mavdok is Fizgub. The small ferry ...              .
        question   Question: What is the code word of Mavdok?         .
        cue        Answer:                                            Fizgub

    In a text of length words each of the keys has its code words, as many as values says, a
    sentence each. All names differ. Asked for are all code words of one key, by alphabet (values >
    1), or the one of each of several keys, in the order of the question (queries > 1). The
    candidates are all code words of the text.

    Drawn: values or queries is 1. length, in words between white space, the question not counted,
    from 7 for each needle and 6 more up to 2^20; a tokenizer makes one token of a word at least, so
    that 131,072 words are 128k tokens or more.

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
    grid = ladder("""
        length=80,keys=4 length=120,keys=4,values=2 length=120,keys=6,queries=2 length=1024,keys=8
        length=4096,keys=16,values=4 length=32768,keys=64 length=131072,keys=64,queries=4
    """)

    keys: int = size(2, MOST)
    values: int = size(1, MOST, default=1, told="of a key")
    queries: int = size(1, lambda task: task.keys, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values > 1 and self.queries > 1:
            raise SizeError(
                f"{self.name}: values is {self.values} and queries is {self.queries}; one of them"
                " must be 1"
            )

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

    @property
    def named(self) -> int:
        return self.keys + self.needles

    def _item(
        self, named: list[str], order: list[int], filler: Ints, places: list[int]
    ) -> TextItem:
        keys, words = named[: self.keys], named[self.keys :]
        told = {i: f"The code word of {keys[i % self.keys]} is {words[i]}." for i in order}
        # names and order are uniform, so that the first keys are
        found = [i for key in range(self.queries) for i in order if i % self.keys == key]
        return TextItem(
            self._prompt([*told.values()], self._question(keys[: self.queries]), filler, places),
            self._answer([words[i] for i in found]),
            tuple(told[i] for i in found),
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


_FIRST: Final = re.compile(rf"The variable ({PATTERN}) holds the word ({PATTERN})\.")
_COPY: Final = re.compile(rf"The variable ({PATTERN}) copies the variable ({PATTERN})\.")


class Variables(Haystack):
    """Variable tracking in words: which variables hold a word, at first or as copies of copies?

        part       input                                            target
        text       The variable Mavdok holds the word Fizgub. The   .
                   old miller passed the gate. The variable         .
                   Gofgem copies the variable Mavdok. The small     .
                   ferry ...                                        .
        question   Question: Which 2 variables hold the word        .
                   Fizgub, by alphabet?                             .
        cue        Answer:                                          Gofgem, Mavdok

    In a text of length words stand several chains: a variable that holds a word, one that copies
    it, one that copies the copy, and so on, hops copies in each. All names differ, and the
    sentences stand in any order: a copy may be told of before what it copies. Asked for are all
    variables of one chain, by alphabet.

    Drawn: length is counted as for needles.

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
    grid = ladder("""
        length=80,chains=3,hops=1 length=120,chains=4,hops=2 length=160,chains=4,hops=4
        length=1024,chains=4,hops=4 length=8192,chains=8,hops=4 length=32768,chains=8,hops=8
        length=131072,chains=16,hops=8
    """)

    chains: int = size(2, MOST)
    hops: int = size(1, MOST, told="copies in a chain")

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
    def named(self) -> int:
        return self.chains * (self.hops + 2)

    def _item(
        self, named: list[str], order: list[int], filler: Ints, places: list[int]
    ) -> TextItem:
        size = self.hops + 2
        ways = ["holds the word", *["copies the variable"] * self.hops]
        sentences = [
            f"The variable {named[start + at + 1]} {way} {named[start + at]}."
            for start in range(0, len(named), size)
            for at, way in enumerate(ways)
        ]
        word, *variables = named[:size]
        needles = [sentences[at] for at in order]
        return TextItem(
            self._prompt(needles, self._question([word]), filler, places),
            ", ".join(sorted(variables)),
            tuple(sentences[: self.hops + 1]),
            # the last variable of every chain, which takes all hops to find
            tuple(sorted(named[size - 1 :: size])),
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
