"""Laws of tasks with several answers per prompt: what the laws of tasks ask of one answer, asked of
each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from support.each import each
from support.question_cases import QUESTIONS as CASES
from support.question_cases import by_hand

from separatrix.core.errors import SeparatrixError, SizeError
from separatrix.tasks import NO_ANSWER, PLAIN, PROBES, Questions, Thought, parse_task
from separatrix.tasks.exports.source import TokenSource
from separatrix.tasks.labels import IGNORED, token_labels
from separatrix.tasks.questions import QUESTIONS


def asked(text: str) -> Questions:
    task = parse_task(text)
    assert isinstance(task, Questions)
    return task


def test_every_kind_has_cases() -> None:
    assert {text.partition(":")[0] for text in CASES} == set(QUESTIONS)


@each("text", CASES)
def test_the_answers_are_those_of_each_question_alone(text: str) -> None:
    task = asked(text)
    assert parse_task(task.spec) == task
    tokens, targets = task.sample(100, np.random.default_rng(1))
    assert tokens.shape == targets.shape == (100, task.length)
    assert targets.tolist() == [by_hand(task, prompt) for prompt in tokens.tolist()]
    assert (task.answer(tokens) == targets).all()
    due = (targets != NO_ANSWER).sum(axis=1)
    assert (due == task.number * (1 + task.sizes().get("stages", 0))).all()
    assert 0 <= tokens.min() <= tokens.max() < task.vocabulary
    assert targets.max() < task.answers


@each("text", CASES)
def test_the_best_constant_answer_is_right_as_often_as_stated(text: str) -> None:
    task = asked(text)
    total = 4000
    _, targets = task.sample(total, np.random.default_rng(2))
    often = np.bincount(targets[targets != NO_ANSWER], minlength=task.answers)
    chance = float(task.chance)
    # the unit is the prompt: an indicator's mean over answers has at most a coin's variance
    error = (chance * (1 - chance) / total) ** 0.5
    assert abs(often.max() / often.sum() - chance) <= 4.5 * error


@each("text", CASES)
def test_what_is_said_of_it(text: str) -> None:
    """Its family, levels, labels, and words for people."""
    task = asked(text)
    family = task.family()
    least = family.at(family.smallest)
    assert least.queries == task.queries
    if family.smallest > task.task.family().smallest:
        with pytest.raises(SizeError, match="queries is"):
            family.at(family.smallest - 1)
    if task.shift == PLAIN:
        assert all(task.chance <= task.level(probe) <= 1 for probe in PROBES)
    labels = token_labels(task, task.sample(3, np.random.default_rng(0))).labels
    assert ((labels != IGNORED).sum(axis=1) >= task.number).all()
    tokens = task.sample(1, np.random.default_rng(0)).tokens[0]
    assert f"queries = {task.queries}" in TokenSource(task).prompt(tokens)
    assert task.words.rules in task.definition
    assert task.task.definition in task.definition
    assert f"{task.number:,} questions" in task.extent
    assert task.prefix_classes() == task.task.prefix_classes()
    assert not re.search(r"\w+Error\b|`|level\(|\bself\b", f"{task.definition}{task.how_drawn}")


def refused() -> Iterator[tuple[str, str]]:
    for number in ("0", "-1", "10", "al", "true", "1e1"):
        yield f"parity:n=9,queries={number}", "it must be all, or an integer from 1 to 9"
    yield "parity:n=9,queries=", "size=value"
    yield "parity:n=9,queries=2,queries=3", "given twice"
    yield f"parity:n=9,queries={'9' * 200}", "too large"
    yield "parity:n=9,queries=2,split=1", "unknown size 'split'"
    yield "recall:n=4,K=6,V=3,form=absent,queries=all", "form=present or form=independent"
    yield "recall:n=4,K=6,V=3,form=last,queries=1", "form=present or form=independent"
    yield "seqcomp:L=2,m=3,n_1=2,queries=4", "from 1 to 3"
    yield "seqcomp:L=2,m=3,n_1=2,queries=7,split=1", "from 1 to 6"
    yield "seqcomp:L=2,m=3,n_1=2,split=1", "add queries=all"
    yield "seqcomp:L=2,m=3,n_1=2,queries=2,stages=1", "add split=1"
    yield "seqcomp:L=1,m=3,queries=2,split=1,stages=1", "of L >= 2 functions"
    yield "seqcomp:L=2,m=3,n_1=2,queries=2,split=2", "split is 2"
    yield "seqcomp:L=2,m=3,n_1=2,queries=2,split=yes", "split is 'yes'"
    yield "seqcomp:L=2,m=3,n_1=2,queries=2,thought=values", "behind one question"
    yield "seqcomp-forward:L=2,m=3,n_1=2,queries=2", "unknown size 'queries'"
    yield "dyck:n=8,k=1,D=2,queries=all", "unknown size 'queries'"


@each("text, said", list(refused()))
def test_bad_texts(text: str, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said) as caught:
        parse_task(text)
    assert "\n" not in str(caught.value)


def test_a_question_asked_twice_or_never_is_refused() -> None:
    recall = asked("recall:n=2,K=3,V=2,queries=all")
    assert recall.answer(np.array([[2, 0, 3, 1, 3, 2]])).tolist() == [[-1, -1, -1, -1, 1, 0]]
    for prompt, said in (
        ([2, 0, 3, 1, 3, 3], "a question is asked twice"),
        ([2, 0, 3, 1, 3, 4], "not there"),
        ([2, 0, 2, 1, 2, 2], "twice"),
        ([2, 0, 3, 1, 3, 0], "must lie in"),
    ):
        with pytest.raises(SizeError, match=said):
            recall.answer(np.array([prompt]))
    starts = asked("seqcomp:L=2,m=2,n_1=2,queries=2,split=1")
    good = [1, 0, 2, 3, 1, 0, 0, 1, 0, 0]
    assert starts.answer(np.array([good]))[0, 6:].tolist() == [-1, 3, -1, 0]
    with pytest.raises(SizeError, match="asked twice"):
        starts.answer(np.array([[*good[:8], 0, 1]]))
    with pytest.raises(SizeError, match="must lie in"):
        starts.answer(np.array([[*good[:8], 2, 1]]))


def test_a_chain_of_thought_has_one_question() -> None:
    with pytest.raises(SeparatrixError, match="thought=values"):
        Thought(task=parse_task("seqcomp:L=2,m=3,n_1=2,queries=2"))
