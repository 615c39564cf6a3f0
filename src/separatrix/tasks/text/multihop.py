"""Composition in words: k hops through facts that stand in the prompt, among facts of the same
shape about the same things.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import Words, require
from separatrix.tasks.text.base import TextItem, TextTask
from separatrix.tasks.text.names import names, some_names
from separatrix.tasks.text.reader import (
    QUESTION,
    Fact,
    Reading,
    Table,
    facts_per_chain,
    most_facts,
    names_needed,
    objects,
    read,
    short,
)
from separatrix.tasks.text.templates import MIXED, MOST_HOPS, TEMPLATES, Relation, Stage, partner

WORDS = Words.read("""
    Composition in words: k hops through facts that stand in the prompt, among facts of the same
    shape about the same things.

        part       input                                                    target
        n facts    Mavdok was born in the village of Fizgub. Mavdok ...     .
        question   In which district is the birthplace of Mavdok?           .
        cue        Answer:                                                  the answer

    Of every stage on the way there are two relations, of which the question names one: the village
    where somebody was born, or married. m = floor(n / (2k + 1)) chains of k facts are told, the one
    asked for among them, with names that no two things share. Of each subject stands a second fact
    too, a decoy: by the other relation of the stage it leads to another chain. The end of every
    chain leads on, by a fact that is not asked for; facts left over are of that relation too, about
    other things. The candidates are the m ends of chains: the objects of the relation asked for
    last. Style "direct" asks for the answer, "steps" for the facts of the chain in order and then
    the answer. The facts stand in any order ("shuffled"), all those of the first hop first
    ("forward"), or all those of the last hop first, as in L-SeqComp ("backward").

    With decoys=0 the chains stand alone, as many as m = floor(n / k), and the n mod k facts left
    over form one more, which stops short.

    Words decide: who takes one decoy, or does not stop after k hops, has a wrong answer; a second
    decoy leads back to the chain asked for once in m - 1 times. Who takes either of the two facts k
    times, whatever they say, has 2^k ways to go, each right with probability 1/m + (1 - 1/m) ((m -
    2)/(2m - 2))^k, which is the level of "ends": 0.31 at k = 2, n = 25, 0.19 at k = 3, n = 56. Some
    end at one thing: who goes all ways and names the end of the most is right with probability 0.37
    at k = 2, n = 25, 0.26 at k = 3, n = 56, 0.16 at k = 4, n = 144 and 0.03 at k = 8, n = 1088,
    where chance is 1/5, 1/8, 1/16 and 1/64. No other shortcut: take any hop and hide which subject
    of it belongs to which object by the relation asked for, and show everything else. The joining
    is uniform among those that agree with no decoy, so that every candidate but the one that the
    decoy of that hop leads to is as likely. Whoever does not follow every hop is right with
    probability 1/(m - 1) at best, without decoys 1/m.

    Drawn: 1 <= k <= 8 hops and 3 (2k + 1) <= n facts (decoys=0: 2k <= n), at most as many as there
    are names for.

    Every instance draws a template (mixed: a uniform one of all), then k + 1 of its stages that
    follow one another, by a fair coin each which of its two relations is asked for, then different
    uniform names for all that the chains lead through. The first chain is the one asked for. Decoys
    join the subjects of a hop to its objects in a uniform way among those that agree with no fact
    asked for. The facts stand in uniform order (shuffled), or in uniform order among those of a hop
    (forward, backward). So all candidates, the ends of the chains, are equally likely answers, and
    each is named three times.

    Counted: None counted: prompts in words have no fixed length.

    From: the two-hop questions of [Peng24] and L-SeqComp of [CPW], told as text
""")

_CUES: Final = {"direct": "Answer:", "steps": "Answer step by step:"}
_ORDERS: Final = {"shuffled": 0, "forward": 1, "backward": -1}
"""How a fact's place grows with its hop."""
_LEAST_CHAINS: Final = (2, 3)
"""Without decoys, and with: of two chains a decoy tells the other end."""


@dataclass(frozen=True)
class Story:
    """What an instance tells: chains of names, the one asked for first, joined by `hops`, and all
    facts as they stand: relation, subject, object.
    """

    hops: tuple[Relation, ...]
    chains: list[list[str]]
    facts: list[tuple[Relation, str, str]]


@dataclass(frozen=True, kw_only=True)
class MultiHop(TextTask):
    """k hops through n facts told in words.

    Raises SizeError for bad sizes, and UnknownNameError for an unknown style, template or order.
    """

    name = "multihop"
    words = WORDS
    title = "k hops through n facts told in words"
    usage = (
        f"k, n, style={'|'.join(_CUES)}, template={'|'.join((*TEMPLATES, MIXED))} ({MIXED}: any of"
        f" them), facts={'|'.join(_ORDERS)} (their order), decoys=1|0 (default 1)"
    )
    source = "[Peng24], [CPW], told as text"
    shortcuts = ("ends", "most ways")
    grid = ("k=2,n=25", "k=2,n=40", "k=3,n=56", "k=2,n=80", "k=4,n=144", "k=4,n=576", "k=8,n=1088")

    k: int
    n: int
    style: str = "direct"
    template: str = MIXED
    facts: str = "shuffled"
    decoys: int = 1

    def __post_init__(self) -> None:
        require(self.name, "k", self.k, 1, MOST_HOPS)
        require(self.name, "decoys", self.decoys, 0, 1)
        least = _LEAST_CHAINS[self.decoys] * self._per_chain
        most = most_facts(self.k, self.decoys)
        if type(self.n) is int and self.n < least:
            needs = (
                f"three chains of k={self.k} facts with their decoys need n of at least {least}"
                if self.decoys
                else f"the chain of k={self.k} facts and one beside it need n of at least {least}"
            )
            raise SizeError(f"{self.name}: n is {self.n}; {needs}")
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
    def _per_chain(self) -> int:
        return facts_per_chain(self.k, self.decoys)

    @property
    def candidates(self) -> int:
        """Number of choices m, the right one included."""
        return self.n // self._per_chain

    @property
    def numbers(self) -> dict[str, int]:
        return {
            "facts": self.n,
            "hops": self.k,
            "candidates": self.candidates,
            "names in a text": names_needed(self.k, self.n, self.decoys),
            "names in all": len(names()),
        }

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.candidates)

    def level(self, probe: str) -> Fraction:
        """One hop is asked for by a key, and the name behind a key nearby is one way to find it.
        Who takes either of two facts k times is at the right chain after j + 1 decoys with
        probability (1 - p)/(m - 1), p that after j of them; without decoys, always.
        """
        if probe == "ends":
            away = Fraction(self.candidates - 2, 2 * (self.candidates - 1)) ** self.k
            return self.chance + (1 - self.chance) * (away if self.decoys else 1)
        return Fraction(1) if probe == "nearest key" and self.k == 1 else self.chance

    def _item(self, rng: np.random.Generator) -> TextItem:
        return self.write(self.draw(rng))

    def draw(self, rng: np.random.Generator) -> Story:
        """What one instance tells."""
        templates = self._templates
        stages = TEMPLATES[templates[rng.integers(len(templates))]].line(self.k + self.decoys, rng)
        asked = [
            stage[which] for stage, which in zip(stages, rng.integers(2, size=9), strict=False)
        ]
        drawn = iter(some_names(names_needed(self.k, self.n, self.decoys), rng))
        whole = self.candidates
        rest = self.n - whole * self._per_chain
        chains = [[next(drawn) for _ in range(len(asked) + 1)] for _ in range(whole)]
        joined = [
            (hop, asked[hop], chain[hop], chain[hop + 1])
            for chain in chains
            for hop in range(len(asked))
        ]
        if self.decoys:
            joined += [
                (self.k, asked[self.k], next(drawn), next(drawn)) for _ in range(rest)
            ] + _decoys(stages[: self.k], asked, chains, rng)
        elif rest:
            chains.append([next(drawn) for _ in range(rest + 1)])
            joined += [(hop, asked[hop], *chains[-1][hop : hop + 2]) for hop in range(rest)]
        told = [joined[place] for place in rng.permutation(self.n)]
        if way := _ORDERS[self.facts]:
            # a stable sort: facts of one hop stay in random order
            told.sort(key=lambda fact: way * fact[0])
        return Story(tuple(asked[: self.k]), chains, [fact[1:] for fact in told])

    def write(self, story: Story) -> TextItem:
        """The instance that tells a story."""
        hops = story.hops
        asked = story.chains[0]
        facts = [relation.tell(subject, object) for relation, subject, object in story.facts]
        thing = hops[0].subject.of(asked[0])
        for hop in hops[:-1]:
            thing = hop.phrase.format(s=thing)
        prompt = (
            f"{' '.join(facts)}{QUESTION}{hops[-1].question.format(s=thing)}\n{_CUES[self.style]}"
        )
        steps = tuple(hop.tell(asked[place], asked[place + 1]) for place, hop in enumerate(hops))
        ends = sorted(chain[self.k] for chain in story.chains[: self.candidates])
        return TextItem(prompt, asked[self.k], steps, tuple(ends))

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

    def _tables(self, reading: Reading) -> list[Table]:
        """For every hop its facts by subject, or SizeError where they are ambiguous or not those
        of an instance.
        """
        known = [TEMPLATES[name] for name in self._templates]
        stages = [stage for template in known for stage in template.stages]
        hop_of = {hop.sentence: place for place, hop in enumerate(reading.hops)}
        decoy_of: dict[str, int] = {}
        further: set[str] = set()
        if self.decoys:
            beside = (partner(hop, stages) for hop in reading.hops)
            decoy_of = {decoy.sentence: place for place, decoy in enumerate(beside)}
            further = {
                relation.sentence
                for template in known
                for relation in template.relations
                if template.has((*reading.hops, relation))
            }
        tables: list[Table] = [{} for _ in reading.hops]
        decoys: list[Table] = [{} for _ in reading.hops]
        onward: Table = {}
        order: list[int] = []
        for fact in reading.facts:
            if fact.sentence in hop_of:
                order.append(hop_of[fact.sentence])
                table = tables[order[-1]]
            elif fact.sentence in decoy_of:
                order.append(decoy_of[fact.sentence])
                table = decoys[order[-1]]
            elif fact.sentence in further:
                order.append(self.k)
                table = onward
            else:
                raise SizeError(
                    f"{self.spec}: '{fact.text}' tells of a relation that is no hop of the question"
                )
            other = table.setdefault(fact.subject, fact)
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
        if self.decoys:
            for hop, (table, others) in enumerate(zip(tables, decoys, strict=True)):
                self._check_decoys(hop, table, others)
            self._check_onward(tables[-1], onward)
        self._check_names([*tables, onward])
        way = _ORDERS[self.facts]
        if way and order != sorted(order, key=lambda hop: way * hop):
            raise SizeError(
                f"{self.spec}: the facts do not stand in the order of facts={self.facts}"
            )
        return tables

    def _check_chains(self, tables: list[Table]) -> None:
        """Raises SizeError unless the facts form whole chains, and without decoys one of the
        rest.
        """
        for hop, table in enumerate(tables):
            due = self.candidates + (not self.decoys and hop < self.n % self.k)
            if len(table) != due:
                raise SizeError(
                    f"{self.spec}: {len(table)} facts are of hop {hop + 1}; an instance has {due}"
                )
            reached = objects(tables[hop - 1]) if hop else table.keys()
            if not table.keys() <= reached:
                raise SizeError(
                    f"{self.spec}: no fact of hop {hop} leads to {min(table.keys() - reached)}; its"
                    " chain is broken"
                )

    def _check_decoys(self, hop: int, table: Table, decoys: Table) -> None:
        if decoys.keys() != table.keys() or objects(decoys) != objects(table):
            raise SizeError(
                f"{self.spec}: the decoys of hop {hop + 1} do not join its subjects to its objects"
            )
        for subject, fact in decoys.items():
            if fact.object == table[subject].object:
                raise SizeError(
                    f"{self.spec}: '{fact.text}' leads where '{table[subject].text}' does; a decoy"
                    " leads to another chain"
                )

    def _check_onward(self, last: Table, onward: Table) -> None:
        if len({fact.sentence for fact in onward.values()}) != 1:
            raise SizeError(f"{self.spec}: the ends of chains do not lead on by one relation")
        if left := objects(last) - onward.keys():
            raise SizeError(f"{self.spec}: no fact leads on from {min(left)}, the end of a chain")

    def _check_names(self, tables: list[Table]) -> None:
        things = {name for table in tables for name in (*table, *objects(table))}
        if len(things) != names_needed(self.k, self.n, self.decoys):
            raise SizeError(
                f"{self.spec}: two things bear one name, or two chains meet; the names of an"
                " instance are distinct"
            )


def _decoys(
    stages: tuple[Stage, ...],
    asked: list[Relation],
    chains: list[list[str]],
    rng: np.random.Generator,
) -> list[tuple[int, Relation, str, str]]:
    """Of every subject of a hop a fact by the other relation of its stage, which leads to another
    chain.
    """
    places = np.arange(len(chains))
    facts = []
    for hop in range(len(stages)):
        other = partner(asked[hop], stages)
        to = rng.permutation(places)
        while (to == places).any():
            to = rng.permutation(places)
        facts += [
            (hop, other, chain[hop], chains[end][hop + 1])
            for chain, end in zip(chains, to.tolist(), strict=True)
        ]
    return facts
