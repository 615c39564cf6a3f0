"""Composition in words: k hops through facts that stand in the prompt, among chains of facts of
the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from separatrix.errors import SizeError, SpecError, UnknownNameError
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.words import Words
from separatrix.tasks.text.base import TextItem, TextTask
from separatrix.tasks.text.names import PATTERN, names
from separatrix.tasks.text.reader import QUESTION, Fact, Reading, read, short
from separatrix.tasks.text.relations import Relation
from separatrix.tasks.text.templates import MIXED, MOST_HOPS, TEMPLATES

WORDS = Words(
    asks="""
        Composition in words: k hops through facts that stand in the prompt, among chains of facts
        of the same shape.
    """,
    table="""
        part       input                                               target
        n facts    Mavdok was born in the village of Fizgub. The ...   .
        question   In which district is the ...?                       .
        cue        Answer:                                             the answer (after its steps)
    """,
    rules="""
        Each relation of the question joins m = floor(n / k) chains of k facts, the one asked for
        among them, with names that no two things share; where k does not divide n, the n mod k
        facts left over form one more chain, which stops short. The candidates are the m ends of
        whole chains: the objects of the relation asked for last. Style "direct" asks for the
        answer, "steps" for the facts of the chain in order and then the answer. The facts stand in
        any order ("shuffled"), all those of the first hop first ("forward"), or all those of the
        last hop first, as in L-SeqComp ("backward").

        No shortcut: take any hop and hide which subject of it belongs to which object, and show
        everything else. Names, places and chains are drawn independently of one another, so that
        this joining is a uniform one among those that leave the chain asked for whole, and every
        candidate ends that chain under equally many of them. Whoever does not follow every hop is
        right with probability 1/m at best.
    """,
    drawn="""
        1 <= k <= 8 hops and 2k <= n facts, at most as many as there are names for.

        Every instance draws a template (mixed: a uniform one of all), then k of its relations that
        can follow one another, then different uniform names for all that the chains lead through:
        floor(n / k) chains of k facts each, and a shorter one of the facts left over. The first
        chain is the one asked for; the facts stand in uniform order (shuffled), or in uniform order
        among those of a hop (forward, backward). So all candidates, the ends of the whole chains,
        are equally likely answers.
    """,
    counted="None counted: prompts in words have no fixed length.",
    origin="the two-hop questions of [Peng24] and L-SeqComp of [CPW], told as text",
)

_CUES: Final = {"direct": "Answer:", "steps": "Answer step by step:"}
_ORDERS: Final = {"shuffled": 0, "forward": 1, "backward": -1}
"""How a fact's place grows with its hop."""


@dataclass(frozen=True)
class Story:
    """What an instance tells: chains of names, the one asked for first, joined by `hops`;
    `order` lists the facts by chain and hop as they stand.
    """

    hops: tuple[Relation, ...]
    chains: list[list[str]]
    order: list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class MultiHop(TextTask):
    """k hops through n facts told in words.

    Raises SizeError for bad sizes, and UnknownNameError for an unknown style, template or order.
    """

    name: ClassVar[str] = "multihop"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "k hops through n facts told in words"
    usage: ClassVar[str] = (
        f"k, n, style={'|'.join(_CUES)}, template={'|'.join((*TEMPLATES, MIXED))} ({MIXED}: any of"
        f" them), facts={'|'.join(_ORDERS)} (their order)"
    )
    source: ClassVar[str] = "[Peng24], [CPW], told as text"
    pattern: ClassVar[str] = PATTERN
    grid: ClassVar[tuple[str, ...]] = (
        "k=2,n=6",
        "k=2,n=12",
        "k=3,n=13",
        "k=2,n=64",
        "k=4,n=64",
        "k=4,n=256",
        "k=8,n=1024",
    )

    k: int
    n: int
    style: str = "direct"
    template: str = MIXED
    facts: str = "shuffled"

    def __post_init__(self) -> None:
        require(self.name, "k", self.k, 1, MOST_HOPS)
        least = 2 * self.k
        most = most_facts(self.k)
        if type(self.n) is int and self.n < least:
            raise SizeError(
                f"{self.name}: n is {self.n}; the chain of k={self.k} facts and one beside it need"
                f" n of at least {least}"
            )
        if type(self.n) is int and self.n > most:
            raise SizeError(
                f"{self.name}: n is too large; with k={self.k} there are names for n of at most"
                f" {most}"
            )
        require(self.name, "n", self.n, least, most)
        for size, value, known in (
            ("style", self.style, tuple(_CUES)),
            ("template", self.template, (*TEMPLATES, MIXED)),
            ("facts", self.facts, tuple(_ORDERS)),
        ):
            if value not in known:
                raise UnknownNameError.of(f"{size} of {self.name}", str(value), known)

    @property
    def sentences(self) -> int:
        return self.n

    @property
    def candidates(self) -> int:
        """Number of choices m, the right one included."""
        return self.n // self.k

    @property
    def numbers(self) -> dict[str, int]:
        used = _names_needed(self.k, self.n)
        return {
            "facts": self.n,
            "hops": self.k,
            "candidates": self.candidates,
            "names in a text": used,
            "names in all": len(names()),
        }

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.candidates)

    def level(self, probe: str) -> Fraction:
        """One hop is asked for by a key, and the name behind a key nearby is one way to find it."""
        return Fraction(1) if probe == "nearest key" and self.k == 1 else self.chance

    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        return [self.write(self.draw(rng)) for _ in range(self._batch(batch))]

    def draw(self, rng: np.random.Generator) -> Story:
        """What one instance tells."""
        whole, rest = divmod(self.n, self.k)
        templates = self._templates
        hops = TEMPLATES[templates[rng.integers(len(templates))]].hops(self.k, rng)
        every = names()
        drawn = iter(rng.choice(len(every), _names_needed(self.k, self.n), replace=False).tolist())
        lengths = [self.k] * whole + [rest] * (rest > 0)
        chains = [[every[next(drawn)] for _ in range(length + 1)] for length in lengths]
        order = [divmod(fact, self.k) for fact in rng.permutation(self.n).tolist()]
        if way := _ORDERS[self.facts]:
            # a stable sort: facts of one hop stay in random order
            order.sort(key=lambda fact: way * fact[1])
        return Story(hops, chains, order)

    def write(self, story: Story) -> TextItem:
        """The instance that tells a story."""
        hops = story.hops
        chains = story.chains
        asked = story.chains[0]
        facts = [
            hops[hop].tell(chains[chain][hop], chains[chain][hop + 1]) for chain, hop in story.order
        ]
        thing = hops[0].subject.of(asked[0])
        for hop in hops[:-1]:
            thing = hop.phrase.format(s=thing)
        prompt = (
            f"{' '.join(facts)}{QUESTION}{hops[-1].question.format(s=thing)}\n{_CUES[self.style]}"
        )
        steps = tuple(hop.tell(asked[place], asked[place + 1]) for place, hop in enumerate(hops))
        return TextItem(
            prompt,
            asked[-1],
            steps,
            tuple(sorted(chain[-1] for chain in chains[: self.candidates])),
        )

    def target(self, item: TextItem) -> str:
        return (
            item.answer
            if self.style == "direct"
            else " ".join((*item.steps, f"The answer is {item.answer}."))
        )

    def answer(self, prompt: str) -> str:
        return self._chain(prompt)[-1].object

    def steps(self, prompt: str) -> list[str]:
        return [fact.text for fact in self._chain(prompt)]

    @property
    def _templates(self) -> tuple[str, ...]:
        return tuple(TEMPLATES) if self.template == MIXED else (self.template,)

    def _chain(self, prompt: str) -> list[Fact]:
        """The facts that the question leads through. Raises SpecError or SizeError for text that
        is no instance.
        """
        reading = read(prompt, self._templates)
        if reading.cue != _CUES[self.style]:
            raise SpecError(
                f"{self.spec}: the last line is '{short(reading.cue)}'; with style={self.style} it"
                f" is '{_CUES[self.style]}'"
            )
        if len(reading.hops) != self.k:
            raise SizeError(
                f"{self.spec}: the question has {len(reading.hops)} hops; an instance has"
                f" k={self.k}"
            )
        tables = self._tables(reading)
        chain = []
        at = reading.subject
        for table in tables:
            if at not in table:
                raise SizeError(
                    f"{self.spec}: the chain breaks at {at}: no fact of the prompt leads on from"
                    " there"
                )
            chain.append(table[at])
            at = table[at].object
        return chain

    def _tables(self, reading: Reading) -> list[dict[str, Fact]]:
        """For every hop its facts by subject, or SizeError where they are ambiguous or not those
        of an instance.
        """
        hop_of = {hop.sentence: place for place, hop in enumerate(reading.hops)}
        tables: list[dict[str, Fact]] = [{} for _ in reading.hops]
        order: list[int] = []
        for fact in reading.facts:
            if fact.sentence not in hop_of:
                raise SizeError(
                    f"{self.spec}: '{fact.text}' tells of a relation that is no hop of the question"
                )
            order.append(hop_of[fact.sentence])
            other = tables[order[-1]].setdefault(fact.subject, fact)
            if other is not fact:
                what = (
                    "stands twice" if other.object == fact.object else f"contradicts '{other.text}'"
                )
                raise SizeError(f"{self.spec}: '{fact.text}' {what}")
        if len(order) != self.n:
            raise SizeError(
                f"{self.spec}: the prompt has {len(order)} facts; an instance has n={self.n}"
            )
        self._check_chains(tables)
        if (way := _ORDERS[self.facts]) and order != sorted(order, key=lambda hop: way * hop):
            raise SizeError(
                f"{self.spec}: the facts do not stand in the order of facts={self.facts}"
            )
        return tables

    def _check_chains(self, tables: list[dict[str, Fact]]) -> None:
        """Raises SizeError unless the facts form floor(n / k) chains of k facts, and one of the
        rest, of names that differ.
        """
        for hop, table in enumerate(tables):
            due = self.candidates + (hop < self.n % self.k)
            if len(table) != due:
                raise SizeError(
                    f"{self.spec}: {len(table)} facts are of hop {hop + 1}; an instance has {due}"
                )
            reached = {fact.object for fact in tables[hop - 1].values()} if hop else table.keys()
            if not table.keys() <= reached:
                raise SizeError(
                    f"{self.spec}: no fact of hop {hop} leads to {min(table.keys() - reached)}; its"
                    " chain is broken"
                )
        things = tables[0].keys() | {fact.object for table in tables for fact in table.values()}
        if len(things) != _names_needed(self.k, self.n):
            raise SizeError(
                f"{self.spec}: two things bear one name, or two chains meet; the names of an"
                " instance are distinct"
            )


def _names_needed(k: int, n: int) -> int:
    """Names of n facts: k + 1 for every whole chain, and those of the facts left over."""
    return n // k * (k + 1) + (n % k + 1 if n % k else 0)


def most_facts(k: int) -> int:
    """The largest n that there are names for."""
    whole, left = divmod(len(names()), k + 1)
    # names left over make one shorter chain, which has one fact fewer than names
    return whole * k + max(left - 1, 0)
