from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from separatrix.core.errors import SpecError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import choice, size
from separatrix.tasks.text.base import QUESTION, TextItem, TextTask, short
from separatrix.tasks.text.names import MOST, names
from separatrix.tasks.text.templates import HOLE, MOST_HOPS, TEMPLATES, Relation, Stage, partner

_CUES: Final = {"direct": "Answer:", "steps": "Answer step by step:"}
_LEAST_CHAINS: Final = 3
"""Of two a decoy tells the other end."""
_RELATIONS: Final = [one for template in TEMPLATES for one in template.relations]
_NAME: Final = re.compile(r"\b(?!The\b)[A-Z][a-z]+\b")


class Fact(NamedTuple):
    """A relation, and the two names that it joins."""

    relation: Relation
    subject: str
    object: str

    @property
    def text(self) -> str:
        return self.relation.tell(self.subject, self.object)


Table = dict[str, Fact]


def _objects(table: Table) -> set[str]:
    return {fact.object for fact in table.values()}


@dataclass(frozen=True)
class Story:
    """Chains of names, the one asked for first, joined by `hops`, and all facts as told."""

    hops: tuple[Relation, ...]
    chains: list[list[str]]
    facts: list[Fact]


class MultiHop(TextTask):
    """Composition in words: k hops through facts that stand in the prompt, among facts of the same
    shape about the same things.

        part       input                                            target
        n facts    Mavdok was born in the village of Fizgub. ...    .
        question   In which district is the birthplace of Mavdok?   .
        cue        Answer:                                          the answer

    Of every stage on the way there are two relations, of which the question names one: the village
    where somebody was born, or married. m = floor(n / (2k + 1)) chains of k facts are told, the one
    asked for among them, with names that no two things share. Of each subject stands a second fact
    too, a decoy: by the other relation of the stage it leads to another chain. The end of every
    chain leads on, by a fact that is not asked for; facts left over are of that relation too, about
    other things. The candidates are the m ends of chains: the objects of the relation asked for
    last. Style "direct" asks for the answer, "steps" for the facts of the chain in order and then
    the answer.

    Words decide: who takes one decoy, or does not stop after k hops, has a wrong answer; a second
    decoy leads back to the chain asked for once in m - 1 times. Who takes either of the two facts k
    times, whatever they say, has 2^k ways to go, each right with probability 1/m + (1 - 1/m) ((m -
    2)/(2m - 2))^k. Some end at one thing, which "most ways" gains from. No other shortcut: take any
    hop and hide which subject of it belongs to which object by the relation asked for, and show
    everything else. The joining is uniform among those that agree with no decoy, so that every
    candidate but the one that the decoy of that hop leads to is as likely. Whoever does not follow
    every hop is right with probability 1/(m - 1) at best.

    Drawn: 3 (2k + 1) <= n facts, at most as many as there are names for.

    Every instance draws a uniform one of five stories, then k + 1 of its stages that follow one
    another, by a fair coin each which of its two relations is asked for, then different uniform
    names for all that the chains lead through. The first chain is the one asked for. Decoys join
    the subjects of a hop to its objects in a uniform way among those that agree with no fact asked
    for. The facts stand in uniform order. So all candidates, the ends of the chains, are equally
    likely answers, and each is named three times.

    Counted: None counted: prompts in words have no fixed length.

    From: the two-hop questions of [Peng24] and L-SeqComp of [CPW], told as text
    """

    name = "multihop"
    title = "k hops through n facts told in words"
    source = "[Peng24], [CPW], told as text"
    shortcuts = measured = ("most ways",)
    grid = ("k=2,n=25", "k=2,n=40", "k=3,n=56", "k=2,n=80", "k=4,n=144", "k=4,n=576", "k=8,n=1088")

    k: int = size(1, MOST_HOPS)
    n: int = size(lambda task: _LEAST_CHAINS * task.per_chain, lambda task: task.most)
    style: str = choice(Literal["direct", "steps"], default="direct")

    @property
    def sentences(self) -> int:
        return self.n

    @property
    def per_chain(self) -> int:
        """k facts, a decoy beside each, and one that leads on."""
        return 2 * self.k + 1

    def _needed(self, n: int) -> int:
        """Names of n facts: of whole chains, and two for each fact left over."""
        whole, rest = divmod(n, self.per_chain)
        return whole * (self.k + 2) + 2 * rest

    @property
    def most(self) -> int:
        """The largest n up to which there are names for every one."""
        each = self.per_chain
        # from the last number of chains that leave names for all facts left over
        n = (MOST - 2 * each) // (self.k + 2) * each
        while self._needed(n + 1) <= MOST:
            n += 1
        return n

    @property
    def candidates(self) -> int:
        """Number of choices m, the right one included."""
        return self.n // self.per_chain

    def level(self, probe: str) -> Fraction:
        return Fraction(1) if probe == "nearest key" and self.k == 1 else self.chance

    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        return [self._item(rng) for _ in range(self._batch(batch))]

    def _item(self, rng: np.random.Generator) -> TextItem:
        story = self.draw(rng)
        asked = story.chains[0]
        told = " ".join(fact.text for fact in story.facts)
        steps = tuple(hop.tell(*asked[at : at + 2]) for at, hop in enumerate(story.hops))
        ends = sorted(chain[self.k] for chain in story.chains[: self.candidates])
        prompt = f"{told}{QUESTION}{_question(story.hops, asked[0])}\n{_CUES[self.style]}"
        return TextItem(prompt, asked[self.k], steps, tuple(ends))

    def draw(self, rng: np.random.Generator) -> Story:
        stages = TEMPLATES[rng.integers(len(TEMPLATES))].line(self.k + 1, rng)
        asked = [
            stage[which] for stage, which in zip(stages, rng.integers(2, size=9), strict=False)
        ]
        named = rng.choice(len(names()), self._needed(self.n), replace=False).tolist()
        drawn = (names()[at] for at in named)
        whole = self.candidates
        rest = self.n - whole * self.per_chain
        chains = [[next(drawn) for _ in range(len(asked) + 1)] for _ in range(whole)]
        joined = [
            Fact(asked[hop], *chain[hop : hop + 2]) for chain in chains for hop in range(self.k + 1)
        ]
        joined += [Fact(asked[self.k], next(drawn), next(drawn)) for _ in range(rest)]
        joined += _decoys(stages[: self.k], asked, chains, rng)
        told = [joined[place] for place in rng.permutation(self.n)]
        return Story(tuple(asked[: self.k]), chains, told)

    def target(self, item: TextItem) -> str:
        return (
            item.answer
            if self.style == "direct"
            else f"{' '.join(item.steps)}\nAnswer: {item.answer}"
        )

    def answer(self, prompt: str) -> str:
        return self._chain(prompt)[-1].object

    def steps(self, prompt: str) -> list[str]:
        return [fact.text for fact in self._chain(prompt)]

    def _chain(self, prompt: str) -> list[Fact]:
        """The facts that the question leads through. Raises SpecError or SizeError."""
        told, question = self._apart(prompt, _CUES[self.style])
        hops, at = self._hops(question)
        facts = self._told(told)
        if len(hops) != self.k:
            raise self.refused(f"the question has {len(hops)} hops; an instance has k={self.k}")
        chain = []
        for table in self._tables(facts, hops):
            if at not in table:
                raise self.refused(
                    f"the chain breaks at {at}: no fact of the prompt leads on from there"
                )
            chain.append(table[at])
            at = table[at].object
        return chain

    def _told(self, told: str) -> list[Fact]:
        known = {relation.sentence: relation for relation in _RELATIONS}
        facts = []
        for place, text in enumerate(re.split(r"(?<=\.) ", told), start=1):
            relation = known.get(_NAME.sub(HOLE, text))
            # a hole in the text itself would pass for a name
            if relation is None or HOLE in text:
                raise SpecError(
                    f"{self.spec}: sentence {place}, '{short(text)}', is no fact of this task"
                )
            named = _NAME.findall(text)
            facts.append(Fact(relation, *(named if relation.subject_first else named[::-1])))
        return facts

    def _hops(self, question: str) -> tuple[list[Relation], str]:
        """The relations that a question follows, the first hop first, and the name it begins at."""

        def found(text: str, wording: str) -> Relation | None:
            begins = ((one, getattr(one, wording).partition("{s}")[0]) for one in _RELATIONS)
            return next((one for one, begin in begins if text.startswith(begin)), None)

        hops: list[Relation] = []
        rest, wording = question, "question"
        while relation := found(rest, wording):
            hops.insert(0, relation)
            rest = rest[len(getattr(relation, wording).partition("{s}")[0]) :]
            wording = "phrase"
        named = _NAME.findall(rest)
        if not hops or len(named) != 1 or question != _question(hops, named[0]):
            raise SpecError(f"{self.spec}: '{short(question)}' is no question of this task")
        if not any(template.has(hops) for template in TEMPLATES):
            raise SpecError(
                f"{self.spec}: '{short(question)}' asks for hops that do not follow one another"
            )
        return hops, named[0]

    def _tables(self, facts: list[Fact], hops: list[Relation]) -> list[Table]:
        """For every hop its facts by subject. Raises SizeError for those of no instance."""
        tables, decoys = ([Table() for _ in hops] for _ in range(2))
        onward: Table = {}
        where: dict[Relation, Table] = {}
        for template in TEMPLATES:
            further = [one for one in template.relations if template.has((*hops, one))]
            where |= dict.fromkeys(further, onward)
        stages = [stage for template in TEMPLATES for stage in template.stages]
        where |= {partner(one, stages): decoys[hop] for hop, one in enumerate(hops)}
        where |= {one: tables[hop] for hop, one in enumerate(hops)}
        for fact in facts:
            if fact.relation not in where:
                raise self.refused(
                    f"'{fact.text}' tells of a relation that is no hop of the question"
                )
            other = where[fact.relation].setdefault(fact.subject, fact)
            if other is not fact:
                twice = "stands twice" if other == fact else f"contradicts '{other.text}'"
                raise self.refused(f"'{fact.text}' {twice}")
        if len(facts) != self.n:
            raise self.refused(f"the prompt has {len(facts)} facts; an instance has n={self.n}")
        m = self.candidates
        things = {name for table in (*tables, onward) for name in (*table, *_objects(table))}
        if (
            any(len(table) != m for table in tables)
            or not all(two.keys() <= _objects(one) for one, two in pairwise(tables))
            or any(
                others.keys() != table.keys()
                or _objects(others) != _objects(table)
                or any(table[at].object == others[at].object for at in others)
                for table, others in zip(tables, decoys, strict=True)
            )
            or len({fact.relation for fact in onward.values()}) != 1
            or _objects(tables[-1]) - onward.keys()
            or len(things) != self._needed(self.n)
        ):
            raise self.refused(
                f"the facts are no {m} chains of {self.k} between things of different names, with a"
                " decoy to another chain beside each, all led on from their ends by one relation"
            )
        return tables


def _question(hops: Sequence[Relation], name: str) -> str:
    """What is asked of the thing of that name, hop by hop."""
    *before, last = hops
    thing = hops[0].subject.replace(HOLE, name)
    for hop in before:
        thing = hop.phrase.format(s=thing)
    return last.question.format(s=thing)


def _decoys(
    stages: tuple[Stage, ...],
    asked: list[Relation],
    chains: list[list[str]],
    rng: np.random.Generator,
) -> list[Fact]:
    """For every subject of a hop a fact by the stage's other relation, to another chain."""
    places = np.arange(len(chains))
    facts = []
    for hop in range(len(stages)):
        other = partner(asked[hop], stages)
        to = rng.permutation(places)
        while (to == places).any():
            to = rng.permutation(places)
        facts += [
            Fact(other, chain[hop], chains[end][hop + 1])
            for chain, end in zip(chains, to.tolist(), strict=True)
        ]
    return facts
