"""Composition in words: sizes, what is drawn, and the answers, by hand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from inspect import isabstract
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.tasks.text import TEXT_TASKS, MultiHop, TextItem, TextTask, parse_text_task
from separatrix.tasks.text.names import names

TASKS = [MultiHop(k=3, n=n, style=style) for style in ("direct", "steps") for n in (21, 23)]


@st.composite
def tasks(draw: Callable[..., Any]) -> MultiHop:
    k = draw(st.integers(1, 8))
    least = 3 * (2 * k + 1)
    style = draw(st.sampled_from(("direct", "steps")))
    return MultiHop(k=k, n=draw(st.integers(least, least + 20)), style=style)


def test_every_text_task_is_in_the_dict() -> None:
    direct = TextTask.__subclasses__()
    every = {*direct, *(below for cls in direct for below in cls.__subclasses__())}
    assert {cls for cls in every if not isabstract(cls)} == set(TEXT_TASKS.values())
    assert all(
        name == cls.name and cls.title and cls.usage and cls.source
        for name, cls in TEXT_TASKS.items()
    )
    for cls in TEXT_TASKS.values():
        assert len([parse_text_task(f"{cls.name}:{sizes}") for sizes in cls.grid]) >= 3


@given(tasks(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_reader_finds_what_was_drawn(task: MultiHop, seed: int) -> None:
    """The story is followed by hand: a table of (relation, subject), from the first name of the
    chain asked for.
    """
    assert parse_text_task(task.spec) == task
    story = task.draw(np.random.default_rng(seed))
    [item] = task.sample(1, np.random.default_rng(seed))
    table = {(relation, subject): object for relation, subject, object in story.facts}
    at = story.chains[0][0]
    for hop in story.hops:
        at = table[hop, at]
    assert len(table) == task.n
    assert item.answer == at == task.answer(item.prompt)
    assert list(item.steps) == task.steps(item.prompt)
    assert [sum(name in sentence for name in names_of(item.prompt)) for sentence in item.steps] == [
        2
    ] * task.k
    last = {name for (hop, _), name in table.items() if hop == story.hops[-1]}
    assert item.choices == tuple(sorted(last))
    assert Fraction(1, len(item.choices)) == task.chance
    # by the relation asked for, by a decoy, and by what leads on
    assert all(len(re.findall(rf"\b{name}\b", item.prompt)) == 3 for name in item.choices)


def names_of(prompt: str) -> set[str]:
    return set(re.findall(r"\b[A-Z][a-z]{5}\b", prompt)) & set(names())


CELLAR = " ".join(
    (
        "The coin Bek lies in the box Lun. The coin Tor lies in the box Sim.",
        "The coin Pod lies in the box Gan. The coin Bek used to lie in the box Sim.",
        "The coin Tor used to lie in the box Gan. The coin Pod used to lie in the box Lun.",
        "The box Lun stands in the cupboard Vos. The box Sim stands in the cupboard Rig.",
        "The box Gan stands in the cupboard Mak. The box Lun belongs in the cupboard Rig.",
        "The box Sim belongs in the cupboard Mak. The box Gan belongs in the cupboard Vos.",
        "The cupboard Vos stands in the room Dov. The cupboard Rig stands in the room Kez.",
        "The cupboard Mak stands in the room Nup.",
    )
)


@each(
    "question, answer",
    [
        ("In which cupboard is the box with the coin Tor?", "Rig"),
        ("What is the proper cupboard of the box with the coin Tor?", "Mak"),
        ("In which cupboard is the earlier box of the coin Tor?", "Mak"),
        ("What is the proper cupboard of the earlier box of the coin Tor?", "Vos"),
    ],
)
def test_two_hops_by_hand(question: str, answer: str) -> None:
    """Written down, not drawn: words decide at either hop."""
    task = MultiHop(k=2, n=15)
    assert task.answer(f"{CELLAR}\n\nQuestion: {question}\nAnswer:") == answer


@each("task", TASKS)
def test_targets(task: MultiHop) -> None:
    [item] = task.sample(1, np.random.default_rng(5))
    assert task.target(item) == (
        item.answer if task.style == "direct" else f"{' '.join(item.steps)}\nAnswer: {item.answer}"
    )
    assert item.prompt.endswith("\nAnswer:" if task.style == "direct" else "\nAnswer step by step:")
    assert all(step in item.prompt for step in item.steps)
    assert item.steps[-1].count(item.answer) == 1


def test_every_template_is_drawn_in_mixed() -> None:
    told = " ".join(
        item.prompt for item in MultiHop(k=2, n=15).sample(200, np.random.default_rng(3))
    )
    for sentence in (
        "oldest",
        "was born in",
        "borrows from",
        "stands in the cupboard",
        "is printed in",
    ):
        assert sentence in told


@each(
    "sizes, message",
    [
        ("k=0,n=4", "k is 0; it must be an integer from 1 to 8"),
        ("k=9,n=40", "k is 9; it must be an integer from 1 to 8"),
        ("k=2,n=1", "n is 1; it must be an integer from 15 to"),
        ("k=8,n=50", "n is 50; it must be an integer from 51 to"),
        ("k=2,n=-5", "n is -5; it must be an integer from 15 to"),
        ("k=2,n=100000", "n is 100000; it must be an integer from 15 to"),
        ("k=2,n=" + "9" * 40, "n is 9+; it must be an integer from 15 to"),
        ("k=2,n=many", "n is 'many'; it must be an integer from 15 to"),
        ("k=two,n=4", "k is 'two'"),
        ("k=2", "the size n is missing"),
        ("n=4", "the size k is missing"),
    ],
)
def test_bad_sizes(sizes: str, message: str) -> None:
    with pytest.raises(SizeError, match=f"^multihop: {message}"):
        parse_text_task(f"multihop:{sizes}")


@pytest.mark.parametrize(
    "k", [1, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3, 5, 6, 7, 8))]
)
def test_the_largest_n_is_the_last_one_with_names(k: int) -> None:
    """Chains of k + 2 names, and two for every fact left over."""

    def needed(n: int) -> int:
        return n // (2 * k + 1) * (k + 2) + 2 * (n % (2 * k + 1))

    with pytest.raises(SizeError) as error:
        MultiHop(k=k, n=10**6)
    most = int(re.findall("[0-9]+", str(error.value))[-1])
    assert max(needed(n) for n in range(most - 20, most + 1)) <= len(names()) < needed(most + 1)
    [item] = MultiHop(k=k, n=most).sample(1, np.random.default_rng(0))
    assert MultiHop(k=k, n=most).answer(item.prompt) == item.answer


def family(task: MultiHop, number: int) -> list[TextItem]:
    """Instances that tell of people alone, as `facts_by_words` reads them."""
    rng = np.random.default_rng(task.n)
    items = (task.sample(1, rng)[0] for _ in itertools.count())
    people = re.compile(r"(The [a-z ]+ of \w+ is \w+\. ?)+")
    return list(
        itertools.islice(
            (item for item in items if people.fullmatch(item.prompt.partition("\n")[0])), number
        )
    )


def facts_by_words(item: TextItem) -> dict[str, dict[str, str]]:
    """Of every name, where its facts lead: wording -> the other name. In the family a fact is
    "The <relation> of <subject> is <object>."
    """
    told: dict[str, dict[str, str]] = {}
    for sentence in item.prompt.partition("\n\n")[0].removesuffix(".").split(". "):
        relation, subject, object = re.findall("The (.*) of ([A-Z]\\w+) is ([A-Z]\\w+)", sentence)[
            0
        ]
        told.setdefault(subject, {})[relation] = object
    return told


def test_words_and_hops_decide() -> None:
    """Who takes another fact at any one hop, or goes on to the end of the chain, is never right;
    who takes facts without a look at their words is right once in 2^k at most by 0.2.
    """
    items = family(MultiHop(k=2, n=60), 200)
    rng = np.random.default_rng(5)
    blind = wrong = onward = 0
    for item in items:
        told = facts_by_words(item)
        question = item.prompt.partition("Question: ")[2]
        second, first, subject = re.findall("Who is the (.*) of the (.*) of (\\w+)", question)[0]
        assert told[told[subject][first]][second] == item.answer
        for skipped in range(2):
            at = subject
            for hop, relation in enumerate((first, second)):
                ways = {
                    word: end
                    for word, end in told[at].items()
                    if (word != relation) == (hop == skipped)
                }
                assert len(ways) == 1
                at = next(iter(ways.values()))
            wrong += at == item.answer
        at = subject
        for _ in range(2):
            at = list(told[at].values())[rng.integers(2)]
        blind += at == item.answer
        while at in told:
            at = next(iter(told[at].values()))
        onward += at == item.answer
    assert (wrong, onward) == (0, 0)
    assert blind / len(items) < 1 / 4 + 0.1


@pytest.mark.parametrize(("k", "n"), [(1, 12), (2, 20)])
def test_only_the_decoy_is_ruled_out_before_the_last_link(k: int, n: int) -> None:
    """Hide what one hop joins: of all ways to join its subjects with its objects that agree with no
    decoy, each candidate but one is right in equally many, and that one in none.
    """
    [item] = family(MultiHop(k=k, n=n), 1)
    told = facts_by_words(item)
    question = item.prompt.partition("Question: ")[2].partition("?")[0]
    hops = question.removeprefix("Who is the ").split(" of the ")
    *rest, last = hops
    relation, subject = last.rsplit(" of ", 1)
    hops = [*rest, relation][::-1]
    for hidden in hops:
        subjects = [name for name, ways in told.items() if hidden in ways and len(ways) == 2]
        objects = [told[name][hidden] for name in subjects]
        decoy = [next(o for word, o in told[name].items() if word != hidden) for name in subjects]
        right = dict.fromkeys(item.choices, 0)
        for way in permutations(objects):
            if any(one == other for one, other in zip(way, decoy, strict=True)):
                continue
            joined = dict(zip(subjects, way, strict=True))
            at = subject
            for hop in hops:
                at = joined[at] if hop == hidden else told[at][hop]
            right[at] += 1
        assert sorted(right.values())[0] == 0
        assert len(set(sorted(right.values())[1:])) == 1
        assert right[item.answer] > 0


DECOYS = " ".join(
    (
        "The mother of Bek is Lun. The mother of Tor is Sim. The mother of Pod is Gan.",
        "The father of Bek is Sim. The father of Tor is Gan. The father of Pod is Lun.",
        "The godmother of Lun is Vos. The godmother of Sim is Rig. The godmother of Gan is Mak.",
    )
)
ASKED = "\n\nQuestion: Who is the father of Tor?\nAnswer:"


def test_decoys_by_hand() -> None:
    task = MultiHop(k=1, n=9)
    assert task.answer(DECOYS + ASKED) == "Gan"
    assert task.answer((DECOYS + ASKED).replace("father of Tor?", "mother of Tor?")) == "Sim"
    for old, new, said in (
        ("The father of Pod is Lun", "The father of Pod is Gan", "are no 3 chains"),
        ("The mother of Tor is Sim", "The mother of Tor is Gan", "are no 3 chains"),
        ("The mother of Tor is Sim", "The mother of Rig is Sim", "are no 3 chains"),
        ("The godmother of Gan is Mak", "The godfather of Gan is Mak", "are no 3 chains"),
        ("The godmother of Gan is Mak", "The godmother of Tor is Mak", "are no 3 chains"),
        ("The godmother of Gan is Mak", "The godmother of Gan is Rig", "are no 3 chains"),
        ("The godmother of Gan is Mak", "The mother of Gan is Mak", "are no 3 chains"),
        (" The godmother of Gan is Mak.", "", "the prompt has 8 facts"),
    ):
        with pytest.raises(SizeError, match=said):
            task.answer((DECOYS + ASKED).replace(old, new))
    agreeing = DECOYS.replace("mother of Bek is Lun", "mother of Bek is Gan")
    agreeing = agreeing.replace("mother of Pod is Gan", "mother of Pod is Lun")
    with pytest.raises(SizeError, match="are no 3 chains"):
        task.answer(agreeing + ASKED)


@each(
    "text, error, message",
    [
        (
            "multihop:k=2,n=15,style=stepwise",
            UnknownNameError,
            "unknown style of multihop 'stepwise'. Did you mean 'steps'",
        ),
        ("multihop:k=2,n=15,hops=2", UnknownNameError, "unknown size 'hops' of task 'multihop'"),
        ("multihop:k=2,n", SpecError, "expected size=value, found 'n'"),
        ("multihop:", SpecError, "expected size=value"),
        ("multihop:k=2,k=2", SpecError, "size 'k' is given twice"),
        ("multyhop:k=2", UnknownNameError, "Did you mean 'multihop'"),
        ("", UnknownNameError, "unknown text task ''"),
    ],
)
def test_bad_texts(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        parse_text_task(text)


@each("batch", [0, -1, 2.0, True, "3"])
def test_bad_batches(batch: Any) -> None:
    with pytest.raises(SizeError, match="batch is"):
        MultiHop(k=1, n=9).sample(batch, np.random.default_rng(0))


def test_too_much_text_at_once() -> None:
    with pytest.raises(SizeError, match="more than 2\\^24"):
        MultiHop(k=2, n=4000).sample(10_000, np.random.default_rng(0))


@pytest.mark.parametrize(("k", "n"), [(1, 15), (2, 25), (3, 56)])
def test_who_takes_either_fact_is_right_as_often_as_stated(k: int, n: int) -> None:
    """A walk over the facts themselves, a fair one of the two behind every name: of an even number
    of chains away a second decoy may lead back.
    """
    task = MultiHop(k=k, n=n)
    rng = np.random.default_rng(9)
    right = 0
    for _ in range(1500):
        story = task.draw(rng)
        name = story.chains[0][0]
        for _ in range(k):
            ways = [object for _, subject, object in story.facts if subject == name]
            assert len(ways) == 2
            name = ways[rng.integers(2)]
        right += name == story.chains[0][k]
    m = task.candidates
    level = 1 / m + (1 - 1 / m) * ((m - 2) / (2 * m - 2)) ** k
    assert abs(right / 1500 - level) < 4 * (level * (1 - level) / 1500) ** 0.5
