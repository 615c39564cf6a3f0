"""From a prompt back to facts and a question, and what the facts say, hop by hop, if they are those
of an instance. Knows the wordings and nothing of how a prompt was drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from separatrix.core.errors import SpecError
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


def objects(table: Table) -> set[str]:
    return {fact.object for fact in table.values()}
