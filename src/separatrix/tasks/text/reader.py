"""From a prompt back to facts and a question, and what the facts say, hop by hop, if they are those
of an instance. Knows the wordings and nothing of how a prompt was drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from separatrix.core.errors import SizeError, SpecError
from separatrix.tasks.text.names import names
from separatrix.tasks.text.templates import HOLE, TEMPLATES, Relation, Template

QUESTION: Final = "\n\nQuestion: "
"""Stands between the facts and the question."""
_NAME: Final = re.compile(r"\b(?!The\b)[A-Z][a-z]+\b")
_SPACING: Final = re.compile(r"^\s|\s$|[^\S \n]| \s|\n | \n")
"""White space that no prompt has."""
_SHOWN: Final = 80


@dataclass(frozen=True)
class Fact:
    """A sentence of the prompt, its relation's wording and the two names."""

    text: str
    sentence: str
    subject: str
    object: str


@dataclass(frozen=True)
class Reading:
    """A prompt understood: its facts in order, the relations that the question follows (first
    hop first) from `subject`, and its last line.
    """

    facts: list[Fact]
    hops: tuple[Relation, ...]
    subject: str
    cue: str


@dataclass(frozen=True)
class _Wording:
    """What the words of some templates mean, by the beginnings that tell them apart."""

    templates: tuple[Template, ...]
    sentences: dict[str, Relation]
    questions: dict[str, Relation]
    phrases: dict[str, Relation]
    question: re.Pattern[str]
    phrase: re.Pattern[str]


@cache
def _wording(names: tuple[str, ...]) -> _Wording:
    templates = tuple(TEMPLATES[name] for name in names)
    relations = [relation for template in templates for relation in template.relations]
    questions = {relation.question.split("{s}")[0]: relation for relation in relations}
    phrases = {relation.phrase.removesuffix("{s}"): relation for relation in relations}
    patterns = (
        re.compile("|".join(map(re.escape, beginnings))) for beginnings in (questions, phrases)
    )
    return _Wording(
        templates,
        {relation.sentence: relation for relation in relations},
        questions,
        phrases,
        *patterns,
    )


def read(prompt: str, templates: tuple[str, ...]) -> Reading:
    """The facts and the question of a prompt in the words of these templates. Raises SpecError
    for any other text.
    """
    if not isinstance(prompt, str):
        raise SpecError(f"a prompt is text, but this is a {type(prompt).__name__}")
    if found := _SPACING.search(prompt):
        raise SpecError(
            f"{_place(prompt, found.start())}: words stand one space apart, with no other white"
            " space between them or at either end"
        )
    told, parted, asked = prompt.partition(QUESTION)
    question, newline, cue = asked.partition("\n")
    if not parted or not newline:
        raise SpecError(
            f"'{short(prompt)}' is no prompt: facts, an empty line, a line 'Question: ...' and a"
            " line that asks for the answer"
        )
    if "\n" in told:
        raise SpecError(
            f"{_place(prompt, told.index(chr(10)))}: the facts stand on one line, an empty line"
            " above the question"
        )
    if "\n" in cue:
        raise SpecError(
            f"{_place(prompt, prompt.rindex(cue) + cue.index(chr(10)))}: nothing follows the line"
            " that asks for the answer"
        )
    wording = _wording(templates)
    hops, subject = _question(question, wording)
    return Reading(_facts(told, wording), hops, subject, cue)


def _facts(told: str, wording: _Wording) -> list[Fact]:
    texts = told.removesuffix(".").split(". ")
    sentences = _NAME.sub(HOLE, told).removesuffix(".").split(". ")
    names = _NAME.findall(told)
    facts = []
    if not told.endswith("."):
        raise SpecError(
            f"sentence {len(texts)}, '{short(texts[-1])}', does not end with a full stop"
        )
    for place, (text, sentence) in enumerate(zip(texts, sentences, strict=True)):
        relation = wording.sentences.get(f"{sentence}.")
        # a hole in the text itself would pass for a name
        if relation is None or HOLE in text:
            raise SpecError(
                f"sentence {place + 1}, '{short(text)}', is no fact in the words of"
                f" {_names(wording)}"
            )
        first, second = names[2 * place : 2 * place + 2]
        subject, object = (first, second) if relation.subject_first else (second, first)
        facts.append(Fact(f"{text}.", relation.sentence, subject, object))
    return facts


def _question(question: str, wording: _Wording) -> tuple[tuple[Relation, ...], str]:
    refused = SpecError(f"'{short(question)}' is no question in the words of {_names(wording)}")
    found = wording.question.match(question)
    if found is None:
        raise refused
    relation = wording.questions[found.group()]
    end = relation.question.split("{s}")[1]
    if not question.endswith(end):
        raise refused
    rest = question[found.end() : len(question) - len(end)]
    hops = [relation]
    while found := wording.phrase.match(rest):
        hops.insert(0, wording.phrases[found.group()])
        rest = rest[found.end() :]
    names = _NAME.findall(rest)
    if len(names) != 1 or rest != hops[0].subject.of(names[0]):
        raise refused
    if not any(template.has(hops) for template in wording.templates):
        raise SpecError(
            f"'{short(question)}' asks for hops that do not follow one another in {_names(wording)}"
        )
    return tuple(hops), names[0]


def _names(wording: _Wording) -> str:
    plural = "s" if len(wording.templates) > 1 else ""
    return f"the template{plural} {', '.join(template.name for template in wording.templates)}"


def _place(prompt: str, at: int) -> str:
    """Where in a prompt, as an error names it, with white space spelt out."""
    before = prompt[max(0, at - 20) : at]
    return f"character {at + 1}, {prompt[at]!r}{f' after {before!r}' if before else ''}"


def short(text: str) -> str:
    """Text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


Table = dict[str, Fact]
"""Facts by subject."""


def facts_per_chain(k: int, decoys: int) -> int:
    """k facts; with decoys one beside each and one that leads on."""
    return 2 * k + 1 if decoys else k


def names_needed(k: int, n: int, decoys: int) -> int:
    """Names of n facts: k + 1 for every whole chain and those of a shorter one; with decoys k + 2
    and two for each fact left over.
    """
    whole, rest = divmod(n, facts_per_chain(k, decoys))
    if decoys:
        return whole * (k + 2) + 2 * rest
    return whole * (k + 1) + (rest + 1 if rest else 0)


def most_facts(k: int, decoys: int) -> int:
    """The largest n up to which there are names for every one."""
    every = len(names())
    each = facts_per_chain(k, decoys)
    # from the last number of chains that leave names for all facts left over
    n = (every - 2 * each) // (k + 1 + decoys) * each
    while names_needed(k, n + 1, decoys) <= every:
        n += 1
    return n


@dataclass(frozen=True, kw_only=True)
class Told:
    """What an instance of n facts and k hops has to tell: `decoys` are the other relations of the
    hops, none where there are none, and `onward` those that may follow.
    """

    spec: str
    k: int
    n: int
    decoys: tuple[Relation, ...]
    onward: tuple[Relation, ...]
    way: int
    order: str

    @property
    def _chains(self) -> int:
        return self.n // facts_per_chain(self.k, bool(self.decoys))

    def tables(self, reading: Reading) -> list[Table]:
        """For every hop its facts by subject, or SizeError where they are ambiguous or not those
        of an instance.
        """
        hop_of = {hop.sentence: place for place, hop in enumerate(reading.hops)}
        decoy_of = {decoy.sentence: place for place, decoy in enumerate(self.decoys)}
        further = {relation.sentence for relation in self.onward}
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
            for hop, (table, beside) in enumerate(zip(tables, decoys, strict=True)):
                self._check_decoys(hop, table, beside)
            self._check_onward(tables[-1], onward)
        self._check_names([*tables, onward])
        if self.way and order != sorted(order, key=lambda hop: self.way * hop):
            raise SizeError(
                f"{self.spec}: the facts do not stand in the order of facts={self.order}"
            )
        return tables

    def _check_chains(self, tables: list[Table]) -> None:
        """Raises SizeError unless the facts form whole chains, and without decoys one of the
        rest.
        """
        for hop, table in enumerate(tables):
            due = self._chains + (not self.decoys and hop < self.n % self.k)
            if len(table) != due:
                raise SizeError(
                    f"{self.spec}: {len(table)} facts are of hop {hop + 1}; an instance has {due}"
                )
            reached = _objects(tables[hop - 1]) if hop else table.keys()
            if not table.keys() <= reached:
                raise SizeError(
                    f"{self.spec}: no fact of hop {hop} leads to {min(table.keys() - reached)}; its"
                    " chain is broken"
                )

    def _check_decoys(self, hop: int, table: Table, decoys: Table) -> None:
        if decoys.keys() != table.keys() or _objects(decoys) != _objects(table):
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
        if left := _objects(last) - onward.keys():
            raise SizeError(f"{self.spec}: no fact leads on from {min(left)}, the end of a chain")

    def _check_names(self, tables: list[Table]) -> None:
        things = {name for table in tables for name in (*table, *_objects(table))}
        if len(things) != names_needed(self.k, self.n, bool(self.decoys)):
            raise SizeError(
                f"{self.spec}: two things bear one name, or two chains meet; the names of an"
                " instance are distinct"
            )


def _objects(table: Table) -> set[str]:
    return {fact.object for fact in table.values()}
