"""Needles and variables in filler text: what is drawn, read by rules of their own, and answered."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError
from separatrix.tasks.text import Needles, TextTask, Variables, parse_text_task
from separatrix.tasks.text.haystack import FILLER, PIECES, filler, spelt
from separatrix.tasks.text.names import PATTERN

TASKS: list[TextTask] = [
    Needles(length=60, keys=2),
    Needles(length=80, keys=4),
    Needles(length=100, keys=3, values=3),
    Needles(length=90, keys=6, queries=3),
    Needles(length=40, keys=2, queries=2),
    Variables(length=40, chains=2, hops=1),
    Variables(length=150, chains=4, hops=3),
]


def read(prompt: str) -> tuple[list[str], str]:
    """(answer by the question's words, what is asked): every sentence by splitting at spaces."""
    text, rest = prompt.split("\n\nQuestion: ")
    question, cue = rest.split("\n")
    assert cue == "Answer:"
    sentences = [re.sub(r"\.$", "", s).split(" ") for s in text.split(". ")]
    asked = re.findall(PATTERN, question)
    kept = [(s[4], s[6]) for s in sentences if s[:4] == ["The", "code", "word", "of"]]
    if kept:
        words = [word for key in asked for of, word in kept if of == key]
        return (words if "in this order" in question else sorted(words)), question
    holds = {s[6]: s[2] for s in sentences if s[3:6] == ["holds", "the", "word"]}
    copies = {s[6]: s[2] for s in sentences if s[3:4] == ["copies"]}
    found = [holds[asked[0]]]
    while found[-1] in copies:
        found.append(copies[found[-1]])
    return sorted(found), question


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_answers_by_the_definition(task: TextTask) -> None:
    assert parse_text_task(task.spec) == task
    for item in task.sample(40, np.random.default_rng(0)):
        assert item.answer == ", ".join(read(item.prompt)[0]) == task.answer(item.prompt)
        assert list(item.steps) == task.steps(item.prompt)
        assert all(step in item.prompt for step in item.steps)
        assert task.audited(item) in item.choices
        assert len(item.choices) == task.candidates
        names = re.findall(PATTERN, item.prompt.partition("\n")[0])
        assert len(item.answer.split(", ")) == task.reply[1]
        assert set(item.answer.split(", ")) <= set(names)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_text_has_as_many_words_as_stated(task: TextTask) -> None:
    for item in task.sample(40, np.random.default_rng(1)):
        text = item.prompt.partition("\n\n")[0]
        assert len(text.split()) == task.sizes()["length"]
        assert len(text.split(". ")) <= task.sentences


def test_filler_of_any_length() -> None:
    rng = np.random.default_rng(2)
    for words in range(6, 80):
        for pieces in filler(20, words, rng):
            text = "".join(spelt(pieces))
            made = [f"{sentence}." for sentence in text[1:-1].split(". ")]
            assert len(text.split()) == words
            assert len(pieces) == PIECES * len(made)
            assert all(FILLER.fullmatch(sentence) for sentence in made)
            assert not re.search(PATTERN, text)


def test_every_piece_of_filler_is_drawn() -> None:
    """Words in their places, each about as often: 24 adjectives, 26 nouns, 20 verbs, 8 adverbs."""
    (pieces,) = filler(1, 1 << 18, np.random.default_rng(3))
    sentences = "".join(spelt(pieces))[1:-1].split(". ")
    for place, number in ((1, 24), (2, 26), (3, 20)):
        found = Counter(sentence.split()[place] for sentence in sentences)
        assert len(found) == number
        assert max(found.values()) < 1.5 * min(found.values())
    last = Counter(" ".join(sentence.split()[-3:]) for sentence in sentences)
    assert {f"{one} the {two}" for one in ("near", "above") for two in ("church", "hill")} <= {
        *last
    }
    assert Counter(len(sentence.split()) for sentence in sentences).keys() == set(range(6, 13))


@pytest.mark.parametrize(
    "task", [Needles(length=200, keys=2), Variables(length=200, chains=2, hops=1)], ids=str
)
def test_what_is_asked_for_stands_anywhere(task: TextTask) -> None:
    """Of the places in the text, tenth by tenth, each holds a needle asked for about as often."""
    places = []
    for item in task.sample(3000, np.random.default_rng(3)):
        sentences = item.prompt.partition("\n\n")[0].split(". ")
        steps = {step.removesuffix(".") for step in item.steps}
        places += [
            (number + 0.5) / len(sentences)
            for number, sentence in enumerate(sentences)
            if sentence.removesuffix(".") in steps
        ]
    found = np.histogram(places, bins=10, range=(0, 1))[0]
    # tenths do not cut texts of about 25 sentences evenly, hence the wide margin
    assert found.min() > 0.7 * len(places) / 10
    assert found.max() < 1.3 * len(places) / 10


def test_chance_by_hand() -> None:
    """One of 4; 2 of 8, in any order; an ordered pair of 6; a chain of 4."""
    assert Needles(length=80, keys=4).chance == Fraction(1, 4)
    assert Needles(length=120, keys=4, values=2).chance == Fraction(1, 28)
    assert Needles(length=120, keys=6, queries=2).chance == Fraction(1, 30)
    assert Variables(length=120, chains=4, hops=2).chance == Fraction(1, 4)


@pytest.mark.parametrize(
    "text",
    ["needles:length=131072,keys=64,queries=4", "variables:length=131072,chains=16,hops=8"],
)
def test_128k_tokens_are_made_and_read(text: str) -> None:
    task = parse_text_task(text)
    [item] = task.sample(1, np.random.default_rng(4))
    assert task.answer(item.prompt) == item.answer
    assert len(item.prompt.partition("\n\n")[0].split()) == 131072


@each(
    "text, said",
    [
        ("needles:keys=4", "size length is missing"),
        ("needles:length=33,keys=4", "length is 33"),
        ("needles:length=80,keys=1", "keys is 1"),
        ("needles:length=80,keys=4,queries=5", "queries is 5"),
        ("needles:length=200,keys=4,values=2,queries=2", "of them must be 1"),
        ("needles:length=900000,keys=9000", "18,000 names; there are"),
        ("variables:length=80,chains=1,hops=2", "chains is 1"),
        ("variables:length=33,chains=2,hops=1", "length is 33"),
        ("variables:length=33,chains=2", "size hops is missing"),
        ("needls:length=80,keys=4", "Did you mean 'needles'"),
    ],
)
def test_bad_sizes(text: str, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said):
        parse_text_task(text)


def test_what_is_no_instance_is_refused() -> None:
    task = Needles(length=80, keys=4)
    [item] = task.sample(1, np.random.default_rng(5))
    key = re.findall(PATTERN, item.prompt.partition("Question: ")[2])[0]
    others = sorted(set(re.findall(PATTERN, item.prompt)) - {key, item.answer})
    for bad, error in (
        (item.prompt.replace("Answer:", "Say:"), SpecError),
        (item.prompt.replace("What is", "Where is"), SpecError),
        (item.prompt.replace("The ", "A ", 1), SpecError),
        ("The old miller slept. " + item.prompt, SizeError),
        (item.prompt.replace(f"of {key} is", f"of {others[0]} is"), SizeError),
        (item.prompt.replace(f"word of {key}?", "word of Zzzzzz?"), SpecError),
        (item.prompt.replace(" is ", "  is ", 1), SpecError),
        (item.prompt.replace(" is ", "\u2009is ", 1), SpecError),
        (f"{item.prompt}\n", SpecError),
    ):
        assert bad != item.prompt
        with pytest.raises(error):
            task.answer(bad)


def test_copies_are_told_in_any_order() -> None:
    """Of two sentences either stands first half of the time; the answer is the same."""
    task = Variables(length=40, chains=2, hops=1)
    first = []
    for item in task.sample(400, np.random.default_rng(7)):
        one, copy = item.steps
        first.append(item.prompt.index(one) < item.prompt.index(copy))
        swapped = item.prompt.replace(one, "SWAP").replace(copy, one).replace("SWAP", copy)
        assert task.answer(swapped) == item.answer
    assert 140 < sum(first) < 260


@pytest.mark.parametrize(("chains", "hops"), [(3, 1), (8, 1), (4, 4)])
def test_the_copies_told_next_are_those_of_the_chain_by_chance(chains: int, hops: int) -> None:
    """Who names the holder, and then the copies that stand behind it, finds the last variable of
    the chain, or the whole chain, no more often than chance.
    """
    task = Variables(length=300, chains=chains, hops=hops)
    right = whole = 0
    for item in task.sample(600, np.random.default_rng(8)):
        sentences = re.findall(r"The variable \w+ (?:holds|copies) the \w+ \w+\.", item.prompt)
        at = sentences.index(item.steps[0])
        behind = [s for s in sentences[at + 1 :] + sentences[:at] if " copies " in s][:hops]
        named = {s.split()[2] for s in [item.steps[0], *behind]}
        whole += named == set(item.answer.split(", "))
        right += behind[-1].split()[2] == task.audited(item)
    for found in (right, whole):
        assert found < 600 / chains + 4 * (600 / chains) ** 0.5


def test_variables_that_are_no_chains_are_refused() -> None:
    task = Variables(length=40, chains=2, hops=1)
    [item] = task.sample(1, np.random.default_rng(6))
    first, copy = item.steps
    word = re.findall(PATTERN, first)[1]
    last = re.findall(PATTERN, copy)[0]
    for bad in (
        item.prompt.replace(f"word {word}, by", f"word {last}, by"),
        item.prompt.replace(copy, first),
    ):
        assert bad != item.prompt
        with pytest.raises(SeparatrixError):
            task.answer(bad)
