"""Text that is no instance is refused, and the message says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError
from separatrix.tasks.text import MultiHop

FACTS = [
    "The teacher of Bek is Lun.",
    "Lun was born in the village of Vos.",
    "The teacher of Tor is Sim.",
    "Sim was born in the village of Gan.",
    "The teacher of Pod is Rig.",
    "Rig was born in the village of Mak.",
    "The doctor of Bek is Sim.",
    "The doctor of Tor is Rig.",
    "The doctor of Pod is Lun.",
    "Lun got married in the village of Gan.",
    "Sim got married in the village of Mak.",
    "Rig got married in the village of Vos.",
    "The village of Vos belongs to the district of Dov.",
    "The village of Gan belongs to the district of Kez.",
    "The village of Mak belongs to the district of Nup.",
]
QUESTION = "In which village was the teacher of Tor born?"
TASK = MultiHop(k=2, n=15)


def prompt(facts: list[str], question: str = QUESTION, cue: str = "Answer:") -> str:
    return f"{' '.join(facts)}\n\nQuestion: {question}\n{cue}"


def changed(place: int, fact: str) -> str:
    return prompt([*FACTS[:place], fact, *FACTS[place + 1 :]])


def test_it_is_an_instance_before_it_is_spoilt() -> None:
    assert TASK.answer(prompt(FACTS)) == "Gan"


@each(
    "text, error, message",
    [
        (
            prompt([*FACTS, FACTS[1]]),
            SizeError,
            "'Lun",
        ),
        (
            prompt([*FACTS, "Lun was born in the village of Gan."]),
            SizeError,
            "contradicts 'Lun",
        ),
        (
            changed(0, "The teacher of Tor is Lun."),
            SizeError,
            "'The",
        ),
        (
            changed(0, "The teacher of Bek is Sim."),
            SizeError,
            "are no 3 chains",
        ),
        (
            changed(3, "Pod was born in the village of Gan."),
            SizeError,
            "are no 3 chains",
        ),
        (changed(3, "Sim was born in the village of Vos."), SizeError, "are no 3 chains"),
        (
            changed(14, "The village of Mak belongs to the district of Kez."),
            SizeError,
            "are no 3 chains",
        ),
        (
            changed(14, "The village of Mak belongs to the district of Tor."),
            SizeError,
            "are no 3 chains",
        ),
        (
            prompt(FACTS, "In which village was the teacher of Vos born?"),
            SizeError,
            "chain breaks at Vos",
        ),
        (prompt(FACTS[2:]), SizeError, "13 facts; an instance has n=15"),
        (
            changed(1, "The teacher of Lun is Vos."),
            SizeError,
            "are no 3 chains",
        ),
        (changed(1, "The dentist of Lun is Vos."), SizeError, "a relation that is no"),
        (prompt(FACTS, "Who is the teacher of Tor?"), SizeError, "the question has 1 hops"),
        (
            prompt(FACTS, "In which village was Tor born?"),
            SizeError,
            "1 hops; an instance has k=2",
        ),
        (
            prompt(FACTS, "In which village was the teacher of the teacher of Tor born?"),
            SpecError,
            "not follow one another",
        ),
        (
            prompt(FACTS, "In which district is the teacher of Tor?"),
            SpecError,
            "not follow one another",
        ),
        (prompt(FACTS, "In which village was the teacher of Tor?"), SpecError, "is no question"),
        (
            prompt(FACTS, "In which village was the village of Tor born?"),
            SpecError,
            "is no question",
        ),
        (
            prompt(FACTS, "In which village was the teacher of Tor Sim born?"),
            SpecError,
            "is no question",
        ),
        (
            prompt(FACTS, "In which village was the teacher of tor born?"),
            SpecError,
            "is no question",
        ),
        (prompt(FACTS, "Where was the teacher of Tor born?"), SpecError, "is no question"),
        (
            prompt(FACTS, cue="Answer step by step:"),
            SpecError,
            "'Answer step by step:'",
        ),
        (prompt(FACTS) + " Gan", SpecError, "line is 'Answer: Gan'"),
        (
            changed(1, "Lun was born in Vos."),
            SpecError,
            "sentence 2, 'Lun",
        ),
        (changed(1, "Lun was born in the village of _."), SpecError, "sentence 2"),
        (changed(1, "Lun was born in the village of Vos"), SpecError, "sentence 2"),
        (
            changed(3, "Sim was born in the village of Gan"),
            SpecError,
            "sentence 4, 'Sim .*'",
        ),
        (changed(1, "Lun was born in the village of Vos."[:-1] + "!"), SpecError, "sentence 2"),
        (changed(1, "Lun was born in the village of Vos2."), SpecError, "sentence 2"),
        (changed(1, ""), SpecError, "white space"),
        (prompt([]), SpecError, "sentence 1, '', is no fact"),
        ("", SpecError, "'' is no prompt"),
        (" ".join(FACTS), SpecError, "is no prompt"),
        (" ".join(FACTS) + "\n\nQuestion: " + QUESTION, SpecError, "is no prompt"),
        (
            prompt(FACTS) + "\nGan",
            SpecError,
            "white space",
        ),
        (prompt(FACTS) + "\n", SpecError, "white space"),
        (prompt(FACTS) + " ", SpecError, "white space"),
        (
            " " + prompt(FACTS),
            SpecError,
            "white space",
        ),
        (
            changed(0, "The teacher  of Bek is Lun."),
            SpecError,
            "white space",
        ),
        (
            changed(0, "The teacher\tof Bek is Lun."),
            SpecError,
            "white space",
        ),
        (
            changed(0, "The teacher\u2028of Bek is Lun."),
            SpecError,
            "white space",
        ),
        (
            changed(0, "The teacher\nof Bek is Lun."),
            SpecError,
            "white space",
        ),
        (prompt(FACTS).replace("\n\n", "\n\n\n"), SpecError, "white space"),
        (
            prompt(FACTS, cue=" Answer:"),
            SpecError,
            "white space",
        ),
        (
            prompt(FACTS, QUESTION.replace(" was", "  was")),
            SpecError,
            "white space",
        ),
        (7, SpecError, "but this is a int"),
        (None, SpecError, "a prompt is text"),
    ],
)
def test_refused(text: Any, error: type[Exception], message: str) -> None:
    for ask in (TASK.answer, TASK.steps):
        with pytest.raises(error, match=message) as raised:
            ask(text)
        assert "\n" not in str(raised.value)


def test_the_fact_left_over() -> None:
    """A sixteenth fact is about other things: nothing may be asked about it."""
    task = MultiHop(k=2, n=16)
    facts = [*FACTS, "The village of Pig belongs to the district of Rab."]
    assert task.answer(prompt(facts)) == "Gan"
    with pytest.raises(SizeError, match="breaks at Pig"):
        task.answer(prompt(facts, QUESTION.replace("Tor", "Pig")))
    with pytest.raises(SizeError, match="are no 3 chains"):
        task.answer(prompt([*FACTS, "Pig was born in the village of Rab."]))


@given(st.integers(0, 99), st.integers(0, 10**6), st.sampled_from(["cut", "swap", "twice"]))
@settings(max_examples=150, deadline=None)
def test_a_word_more_or_less(seed: int, at: int, how: str) -> None:
    """A word cut, said twice, or put before its neighbour is an error, or (two words swapped)
    another instance with one of the choices.
    """
    task = MultiHop(k=2, n=15)
    [item] = task.sample(1, np.random.default_rng(seed))
    words = item.prompt.split(" ")
    at %= len(words) - 1
    words[at : at + 2] = {
        "cut": words[at + 1 : at + 2],
        "twice": [words[at], *words[at : at + 2]],
        "swap": words[at : at + 2][::-1],
    }[how]
    spoilt = " ".join(words)
    try:
        answer = task.answer(spoilt)
    except SeparatrixError:
        return
    assert spoilt == item.prompt or how == "swap"
    assert answer in item.choices


@given(st.text(max_size=60))
def test_any_other_text(text: str) -> None:
    with pytest.raises(SpecError):
        TASK.answer(text)
