"""No shortcut through words: no probe of names, counts, places and neighbourhoods beats chance, and
every leaky variant is caught.

A probe gives every candidate a score, and the highest is its guess (ties are broken by lot). What
is fitted is fitted on one half of the instances and measured on the other. A probe more than three
standard errors above chance is drawn again with four times as many fresh instances, and is a leak
if it is above again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from separatrix.tasks.text import MultiHop, TextItem

Array = NDArray[Any]
Ints = NDArray[np.int64]
HALF = 2000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZES = [
    MultiHop(k=2, n=15),
    MultiHop(k=2, n=25),
    MultiHop(k=2, n=27),
    MultiHop(k=3, n=35, style="steps"),
]


@dataclass
class View:
    """What probes see of instances with m candidates each: arrays (instances, m), the candidates
    by alphabet.
    """

    items: Sequence[TextItem]
    rng: np.random.Generator
    right: Ints = field(init=False)
    word: Array = field(init=False)
    """Index of the word, and of the sentence, in which a candidate is first named; -1 where it
    is not.
    """
    sentence: Array = field(init=False)
    mentions: Array = field(init=False)
    subject: Array = field(init=False)
    """Index of the word that is the question's subject, (instances, 1)."""
    onward: Array = field(init=False)
    """Index at which the thing one hop on is named again, (instances, 1)."""
    co: list[list[tuple[str, ...]]] = field(init=False)
    """Other words of the candidate's sentence that are no names."""

    def __post_init__(self) -> None:
        rows = [_row(item) for item in self.items]
        self.right, self.word, self.sentence, self.mentions = (
            np.array([row[part] for row in rows]) for part in range(4)
        )
        self.subject, self.onward = (np.array([[row[part]] for row in rows]) for part in (4, 5))
        self.co = [row[6] for row in rows]

    @property
    def fit(self) -> slice:
        return slice(0, len(self.right) // 2)

    @property
    def test(self) -> slice:
        return slice(len(self.right) // 2, None)

    @cached_property
    def rank(self) -> Ints:
        """Place of each candidate among them in the text."""
        return self.word.argsort(axis=1).argsort(axis=1)

    @cached_property
    def nearness(self) -> Ints:
        """Place of each candidate among them by distance from the subject."""
        return abs(self.word - self.subject).argsort(axis=1).argsort(axis=1)

    @cached_property
    def letters(self) -> Array:
        """How often a candidate's name has each letter, and its first and last letter, one-hot."""
        codes = (
            np.char.lower([item.choices for item in self.items])
            .view(np.uint32)
            .reshape(*self.word.shape, 6)
        )
        held = codes[..., None] == np.array([ord(letter) for letter in LETTERS])
        return np.concatenate([held.sum(2), held[:, :, 0], held[:, :, -1]], axis=2)


def _row(item: TextItem) -> tuple:
    facts, _, question = item.prompt.partition("\n\n")
    sentences = [re.findall("[A-Za-z]+", sentence) for sentence in facts.split(". ")]
    words = [word for sentence in sentences for word in sentence]
    subject = re.findall(
        r"\b[A-Z][a-z]{5}\b", question.partition("\n")[0].removeprefix("Question: ")
    )[-1]
    at = words.index(subject)
    home = next(sentence for sentence in sentences if subject in sentence)
    next_thing = next(
        word for word in home if re.fullmatch("[A-Z][a-z]{5}", word) and word != subject
    )
    again = [
        place
        for place, word in enumerate(words)
        if word == next_thing and not _inside(place, at, words, home)
    ]
    place = {name: words.index(name) if name in words else -1 for name in item.choices}
    where = {
        name: next((i for i, sentence in enumerate(sentences) if name in sentence), -1)
        for name in item.choices
    }
    co = [tuple(word for word in sentences[where[name]] if word.islower()) for name in item.choices]
    return (
        item.choices.index(item.answer),
        [place[name] for name in item.choices],
        [where[name] for name in item.choices],
        [words.count(name) for name in item.choices],
        at,
        again[0] if again else at,
        co,
    )


def _inside(place: int, at: int, words: list[str], sentence: list[str]) -> bool:
    """Whether a place lies in the sentence that holds the place `at`."""
    start = at - sentence.index(words[at])
    return start <= place < start + len(sentence)


def one_hot(values: Ints) -> Array:
    return (values[..., None] == np.arange(values.max() + 1)).astype(float)


def ridge(view: View, features: Array) -> Array:
    """Scores from least squares of "is the answer" on features (instances, m, d), fitted on the
    first half.
    """
    x = np.concatenate([features, np.ones((*features.shape[:2], 1))], axis=2)
    y = (view.right[:, None] == np.arange(x.shape[1])).astype(float)
    held = x[view.fit].reshape(-1, x.shape[2])
    weights = np.linalg.solve(held.T @ held + 10 * np.eye(x.shape[2]), held.T @ y[view.fit].ravel())
    return x @ weights


def best(view: View, tries: Sequence[Array]) -> Array:
    """Of several scores the one that guesses best on the first half."""
    return max(
        tries,
        key=lambda score: (
            guess(score[view.fit], np.random.default_rng(0)) == view.right[view.fit]
        ).mean(),
    )


def best_place(view: View, values: Array) -> Array:
    """The candidate for which `values` is the best single number."""
    return best(view, [(values == value).astype(float) for value in np.unique(values)])


def answers_before(view: View) -> Array:
    seen = Counter(item.answer for item in view.items[view.fit])
    return np.array(
        [
            [
                seen[name] - (row < len(view.items) // 2 and name == item.answer)
                for name in item.choices
            ]
            for row, item in enumerate(view.items)
        ]
    )


def words_around(view: View) -> Array:
    known = sorted({word for row in view.co for words in row for word in words})
    number = {word: place for place, word in enumerate(known)}
    counts = np.zeros((*view.word.shape, len(known)))
    for row, each in enumerate(view.co):
        for column, words in enumerate(each):
            for word in words:
                counts[row, column, number[word]] += 1
    return ridge(view, np.concatenate([counts, view.letters], axis=2))


def words_of_the_prompt(view: View) -> Array:
    """From the counts of the prompt's lower-case words to the answer's place among the
    candidates in the text.
    """
    bags = [
        Counter(
            word
            for word in re.findall("[A-Za-z]+", item.prompt)
            if not re.fullmatch("[A-Z][a-z]{5}", word)
        )
        for item in view.items
    ]
    known = sorted(set().union(*bags))
    x = np.array([[bag[word] for word in known] + [1] for bag in bags], float)
    place = np.take_along_axis(view.rank, view.right[:, None], 1)[:, 0]
    held = x[view.fit]
    y = np.eye(view.rank.shape[1])[place[view.fit]]
    score = x @ np.linalg.solve(held.T @ held + 10 * np.eye(x.shape[1]), held.T @ y)
    return np.take_along_axis(score, view.rank, 1)


def all_places(view: View) -> Array:
    after = view.word > view.subject
    parts = [
        one_hot(view.rank),
        one_hot(view.nearness),
        one_hot(view.mentions.astype(int)),
        after[..., None],
        (one_hot(view.rank) * after[..., None]),
    ]
    alphabet = np.broadcast_to(np.eye(view.rank.shape[1]), (*view.rank.shape, view.rank.shape[1]))
    return ridge(view, np.concatenate([*parts, alphabet], axis=2))


PROBES: dict[str, Callable[[View], Array]] = {
    "by alphabet": lambda view: best(
        view, [np.broadcast_to(row, view.rank.shape) for row in np.eye(view.rank.shape[1])]
    ),
    "an answer before": answers_before,
    "first in the text": lambda view: -view.word,
    "last in the text": lambda view: view.word,
    "place among the candidates": lambda view: best_place(view, view.rank),
    "sentence": lambda view: best_place(view, view.sentence),
    "sentence from the subject's": lambda view: best_place(
        view, np.round((view.word - view.subject) / 8)
    ),
    "most mentions": lambda view: view.mentions,
    "fewest mentions": lambda view: -view.mentions,
    "nearest to the subject": lambda view: -abs(view.word - view.subject),
    "farthest from the subject": lambda view: abs(view.word - view.subject),
    "next after the subject": lambda view: np.where(view.word > view.subject, -view.word, -np.inf),
    "last before the subject": lambda view: np.where(view.word < view.subject, view.word, -np.inf),
    "in a window around the subject": lambda view: best(
        view, [abs(view.word - view.subject) <= width for width in (5, 10, 20, 40)]
    ),
    "words around it, its letters": words_around,
    "words of the prompt": words_of_the_prompt,
    "all places together": all_places,
}
ONE_HOP: dict[str, Callable[[View], Array]] = {
    "nearest to the thing one hop on": lambda view: -abs(view.word - view.onward),
    "next after the thing one hop on": lambda view: np.where(
        view.word > view.onward, -view.word, -np.inf
    ),
}
"""With two hops, these are the solution."""


def guess(score: Array, rng: np.random.Generator) -> Ints:
    score = np.asarray(score, float)
    highest = score == score.max(axis=1, keepdims=True)
    return (highest * rng.random(score.shape)).argmax(axis=1)


def probes(task: MultiHop) -> dict[str, Callable[[View], Array]]:
    return PROBES | ONE_HOP if task.k > 2 else PROBES


Spoil = Callable[[TextItem, np.random.Generator], TextItem | None]


def draw(task: MultiHop, count: int, rng: np.random.Generator, spoil: Spoil | None = None) -> View:
    items = task.sample(count, rng)
    return View([spoilt for item in items if (spoilt := spoil(item, rng) if spoil else item)], rng)


def above(view: View, probe: Callable[[View], Array], chance: float) -> bool:
    found = guess(probe(view)[view.test], view.rng) == view.right[view.test]
    return float(found.mean()) > chance + 3 * (chance * (1 - chance) / len(found)) ** 0.5


def leaks(
    task: MultiHop, named: dict[str, Callable[[View], Array]], seed: int, spoil: Spoil | None = None
) -> list[str]:
    """Names of the probes that are above chance twice."""
    view = draw(task, 2 * HALF, np.random.default_rng(seed), spoil)
    rng = np.random.default_rng([seed, 1])
    found = [name for name, probe in named.items() if above(view, probe, float(task.chance))]
    if not found:
        return []
    again = draw(task, 8 * HALF, rng, spoil)
    return [name for name in found if above(again, named[name], float(task.chance))]


@pytest.mark.slow
@pytest.mark.parametrize("task", SIZES, ids=str)
def test_no_probe_beats_chance(task: MultiHop) -> None:
    assert leaks(task, probes(task), seed=0) == []


def facts_of(item: TextItem) -> tuple[list[str], str]:
    told, _, asked = item.prompt.partition("\n\n")
    return [f"{sentence.removesuffix('.')}." for sentence in told.split(". ")], asked


def with_facts(item: TextItem, facts: list[str]) -> TextItem:
    return item._replace(prompt=f"{' '.join(facts)}\n\n{facts_of(item)[1]}")


def chain_first(item: TextItem, _: np.random.Generator) -> TextItem:
    """Facts that are not shuffled: the chain asked for stands first."""
    return with_facts(
        item, [*item.steps, *(fact for fact in facts_of(item)[0] if fact not in item.steps)]
    )


def chain_last(item: TextItem, _: np.random.Generator) -> TextItem:
    return with_facts(
        item, [*(fact for fact in facts_of(item)[0] if fact not in item.steps), *item.steps]
    )


def chain_together(item: TextItem, rng: np.random.Generator) -> TextItem:
    """The chain asked for stands somewhere, but its facts follow one another."""
    rest = [fact for fact in facts_of(item)[0] if fact not in item.steps]
    place = rng.integers(len(rest) + 1)
    return with_facts(item, [*rest[:place], *item.steps, *rest[place:]])


def no_other_ends(item: TextItem, _: np.random.Generator) -> TextItem:
    """Distractors without a last hop: no other candidate is named."""
    others = set(item.choices) - {item.answer}
    return with_facts(
        item, [fact for fact in facts_of(item)[0] if not any(name in fact for name in others)]
    )


def ends_named_twice(item: TextItem, _: np.random.Generator) -> TextItem:
    """Every candidate but the answer has a second fact."""
    others = [
        fact
        for fact in facts_of(item)[0]
        if any(name in fact for name in set(item.choices) - {item.answer})
    ]
    return with_facts(item, facts_of(item)[0] + others)


def renamed(item: TextItem, old: str, new: str) -> TextItem:
    """Two names change places, or a new one comes in."""
    swap = {old: new, new: old}
    prompt = re.sub(f"{old}|{new}", lambda found: swap[found.group()], item.prompt)
    choices = (
        item.choices if new in item.choices else tuple(sorted((set(item.choices) - {old}) | {new}))
    )
    return TextItem(prompt, new, item.steps, choices)


def alphabetical(item: TextItem, rng: np.random.Generator) -> TextItem:
    """The answer is the first by alphabet more often than the others."""
    return renamed(item, item.answer, item.choices[0]) if rng.random() < 0.2 else item


def frequent(item: TextItem, rng: np.random.Generator) -> TextItem | None:
    """One answer in five is one of forty names."""
    name = f"Z{LETTERS[rng.integers(20)]}{'bx'[rng.integers(2)]}aro"
    return renamed(item, item.answer, name) if rng.random() < 0.2 else item


def ending(item: TextItem, rng: np.random.Generator) -> TextItem:
    """One answer in five ends in a letter with which few names end."""
    return (
        renamed(item, item.answer, item.answer[:-1] + "x")
        if rng.random() < 0.2 and item.answer[-1] != "x"
        else item
    )


def linked_behind(item: TextItem, rng: np.random.Generator) -> TextItem:
    """The last fact of the chain asked for stands behind the one before it."""
    facts = [fact for fact in facts_of(item)[0] if fact != item.steps[-1]]
    place = facts.index(item.steps[-2]) + 1
    return with_facts(item, [*facts[:place], item.steps[-1], *facts[place:]])


SMALL = MultiHop(k=2, n=25)
LONG = MultiHop(k=3, n=28)
LEAKS: list[tuple[MultiHop, Spoil, tuple[str, ...]]] = [
    (
        SMALL,
        chain_first,
        (
            "first in the text",
            "place among the candidates",
            "sentence",
            "next after the subject",
            "all places together",
        ),
    ),
    (
        SMALL,
        chain_last,
        (
            "last in the text",
            "place among the candidates",
            "all places together",
        ),
    ),
    (
        SMALL,
        chain_together,
        (
            "nearest to the subject",
            "next after the subject",
            "in a window around the subject",
            "sentence from the subject's",
        ),
    ),
    (SMALL, no_other_ends, ("most mentions", "all places together")),
    (SMALL, ends_named_twice, ("fewest mentions", "all places together")),
    (SMALL, alphabetical, ("by alphabet", "all places together")),
    (SMALL, frequent, ("an answer before", "words around it, its letters")),
    (SMALL, ending, ("words around it, its letters",)),
    (LONG, linked_behind, ("next after the thing one hop on",)),
]


@pytest.mark.parametrize(
    ("task", "spoil", "caught"),
    [
        pytest.param(*leak, marks=[pytest.mark.slow] if i % 3 else [], id=leak[1].__name__)
        for i, leak in enumerate(LEAKS)
    ],
)
def test_leaky_variants_are_caught(task: MultiHop, spoil: Spoil, caught: tuple[str, ...]) -> None:
    view = draw(task, 1200, np.random.default_rng(1), spoil)
    assert [
        name for name in caught if not above(view, (PROBES | ONE_HOP)[name], float(task.chance))
    ] == []


def test_the_solution_is_far_above_chance() -> None:
    """The probes that follow one hop are no straw men: with two hops, what stands nearest to the
    other mention of that thing is right where no decoy was followed.
    """
    view = draw(SMALL, 4000, np.random.default_rng(2))
    assert above(view, ONE_HOP["nearest to the thing one hop on"], float(SMALL.chance))
