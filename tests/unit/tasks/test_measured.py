"""levels.json: that it is of the sizes and rules there are, and that an audit finds it again."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

from separatrix.tasks import (
    PROBES,
    QSA,
    TASKS,
    CGram,
    Copying,
    Disjointness,
    FuzzyRecall,
    Neighbour,
    Recall,
    SelectiveCopying,
    Task,
    parse_any_task,
    parse_task,
)
from separatrix.tasks.audits import accuracies, audit
from separatrix.tasks.audits.shortcuts import (
    SHORTCUTS,
    beside,
    expected_place,
    likeness,
    looked_up,
    most_ways,
    most_writes,
    parts_of_keys,
    skip_grams,
)
from separatrix.tasks.measured import level, measured, rules, stated
from separatrix.tasks.text import TEXT_TASKS, MultiHop, TextTask

HELD = json.loads(files("separatrix.tasks").joinpath("levels.json").read_text("utf-8"))["sizes"]
EVERY = [text for name in TASKS | TEXT_TASKS for text in measured(name)]


def test_every_size_has_its_rules() -> None:
    """All that are tried on its task, or at the larger sizes those that were; none below chance."""
    for text in EVERY:
        task = parse_any_task(text)
        found = rules(text)
        assert set(found) <= {*PROBES, *task.shortcuts}, text
        assert all(0 <= share <= 1 for share in found.values())
        if not found and isinstance(task, Task):
            assert task.length > 500 or task.answers > 1024, text
        elif not found:
            assert isinstance(task, TextTask)
            assert task.sentences > 500, text


def test_levels_stated_are_not_beaten_by_more_than_three_points() -> None:
    """On every size of every grid: of each rule its own level, and so of the largest of all. Where
    fewer were judged, by more than three standard errors.
    """
    for text in EVERY:
        task = parse_any_task(text)
        if "shift=" in text:
            continue
        for rule, share in rules(text).items():
            may = stated(task, rule)
            assert may is not None
            error = 3 * float(may * (1 - may) / HELD[text]["judged"]) ** 0.5
            assert share <= may + max(0.03, error), (text, rule, share, float(may))
            # what stands for a probe at sizes that were not measured holds at these, too
            assert rule not in PROBES or share <= task.level(rule) + error, (text, rule, share)
            assert min(may, Fraction(share)) <= (level(task) or 0)
            assert may == 1 or may <= (level(task) or 0)


@pytest.mark.parametrize("text", ["parity:n=32", "modular:n=48,m=3", "group:n=16,G=C5"])
def test_where_counting_is_the_task_its_level_is_what_counts_reached(text: str) -> None:
    """Who counts exactly is right; that is the task, and no rule tried does so."""
    task = parse_task(text)
    assert stated(task, "counts") == 1
    assert task.chance < (level(task) or 1) < task.chance + Fraction(1, 10)


def test_a_measured_rule_has_a_level_where_it_was_measured_alone() -> None:
    task = parse_task("dyck:n=96,k=2,D=6")
    found = rules(task.spec)["products"]
    assert found <= (stated(task, "products") or 0) <= found + 0.011
    assert stated(parse_task("dyck:n=98,k=2,D=6"), "products") is None
    assert level(parse_task("dyck:n=98,k=2,D=6")) is None
    assert audit("dyck:n=98,k=2,D=6", fitted=200, tested=200)["products"].level == 1
    every = [kind for kind in (TASKS | TEXT_TASKS).values() if kind.measured]
    assert all({*kind.measured} <= {*PROBES, *kind.shortcuts} for kind in every)
    assert {rule for kind in every for rule in kind.measured} < {*PROBES, *SHORTCUTS}


def test_the_level_of_long_strings_takes_no_time() -> None:
    assert 0 < Copying(n=10**12, V=4).level("counts") - Fraction(1, 4) < Fraction(1, 10**11)


@pytest.mark.parametrize("text", ["selective-copying:n=8,T=64,V=4", "disjointness:n=16"])
def test_the_same_is_measured_again(text: str) -> None:
    """Seed and number of instances stand in the file."""
    wanted = parse_task(text).measured
    judged, found = accuracies(text, rules=wanted)
    assert judged == 4000
    assert {rule: round(share, 4) for rule, share in found.items()} == {
        rule: rules(text)[rule] for rule in wanted
    }


def test_places_weigh_as_often_as_they_hold_what_is_asked_for() -> None:
    """Of 3 values among 6 places: over all sets of places. Of a copy: over all lengths."""
    task = SelectiveCopying(n=3, T=6, V=2)
    drawn = task.sample(40, np.random.default_rng(0)).tokens
    for i in range(3):
        often = np.bincount([places[i] for places in combinations(range(6), 3)], minlength=6)
        prompts = drawn.copy()
        prompts[:, task.T + i + 1 :] = task.vocabulary
        votes = [np.where(drawn[:, :6] == value, often, 0).sum(axis=1) for value in (0, 1)]
        assert (expected_place(task, prompts)[:, 0] == np.argmax(votes, axis=0)).all()
    # of 3 to 6 values; after 9 tokens strings of 6, 5 and 4 are asked for the places 1, 2 and 3
    copied = np.array([[0, 2, 1, 1, 3, 4, 4, 4, 4, 6, 6, 6, 6]])
    assert expected_place(Copying(n=6, V=3), copied).tolist() == [[1]]


def test_what_looks_at_single_tasks_by_hand() -> None:
    """Keys 2 3, 3 2 3, 2 2 3, 3 3 2 have the values 0, 1, 0, 1, and 3 2 3 is asked for: its bag and
    its first tokens say 1, the last token and the last two 0 (of 0, 1, 0 and of 0, 1).
    """
    fuzzy = FuzzyRecall(n=4, K=2, V=2, a=3, b=1)
    pairs = [2, 3, 0, 3, 2, 3, 1, 2, 2, 3, 0, 3, 3, 2, 1]
    assert fuzzy.pairs == len(pairs)
    assert parts_of_keys(fuzzy, np.array([[*pairs, 3, 2, 3]])).tolist() == [[1, 0, 0, 1, 1]]
    # the set of places 1, 3, 0 after values 1, 0, 2, 2: 0, then 0 + 2
    sets = np.array([[1, 0, 2, 2, 4, 6, 3, 7, 7, 7]])
    assert looked_up(QSA(n=4, q=3, V=3, sets=2), sets).tolist() == [[0, 2]]
    # key 2 holds 1, 0 and 1; key 3 is not asked for
    writes = np.array([[2, 1, 2, 0, 3, 0, 2, 1, 2], [2, 1, 2, 0, 3, 0, 2, 1, 4]])
    recall = Recall(n=4, K=3, V=2, form="last")
    assert most_writes(recall, writes).tolist() == [[1], [-1]]
    # 0 1 before 2, 0 3 before 4, 0 5 before 4, 6 1 before 4, then 0 1: three times 4, 2 twice
    grams = np.array([[0, 1, 2, 0, 3, 4, 0, 5, 4, 6, 1, 4, 0, 1]])
    assert skip_grams(CGram(n=14, V=8), grams).tolist() == [[4]]
    # strings 000 and 001 of label 0, 110 of 1, for 100: 1 + -1 of 0, 1 of 1
    strings = np.array([[0, 8, 1, 8, 6, 9, 4]])
    assert likeness(Neighbour(n=3, d=3, V=2), strings).tolist() == [[1]]
    # 1 beside 2 and 3 beside 4 in u and v: pairs 01 and 23, or 12 alone
    assert beside(Disjointness(n=4), np.array([[1, 0, 1, 0, 0, 1, 0, 1]])).tolist() == [[2, 1]]


def test_most_ways_by_hand() -> None:
    """a leads to b and c, b to d, c to d and e: d by two ways of three."""
    task = MultiHop(k=2, n=15)
    facts = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), *((9, 9),) * 10]
    row = [part for one, other in facts for part in (20, one, other)] + [21, 22, 0]
    assert most_ways(task, np.array([row])).tolist() == [[3]]
