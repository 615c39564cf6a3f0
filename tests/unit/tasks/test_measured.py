"""levels.json: that it is of the sizes and rules there are, and that an audit finds it again."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest

from separatrix.tasks import (
    PROBES,
    TASKS,
    FuzzyRecall,
    SelectiveCopying,
    Task,
    parse_any_task,
    parse_task,
)
from separatrix.tasks.audits import accuracies, audit
from separatrix.tasks.audits.shortcuts import SHORTCUTS, expected_place, most_ways, suffixes
from separatrix.tasks.measured import MEASURED, level, measured, rules, stated
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
    assert set(SHORTCUTS) > MEASURED


@pytest.mark.parametrize("text", ["selective-copying:n=8,T=64,V=4", "disjointness:n=16"])
def test_the_same_is_measured_again(text: str) -> None:
    """Seed and number of instances stand in the file."""
    wanted = MEASURED & set(parse_task(text).shortcuts)
    judged, found = accuracies(text, rules=wanted)
    assert judged == 4000
    assert {rule: round(share, 4) for rule, share in found.items()} == {
        rule: rules(text)[rule] for rule in wanted
    }


def test_the_value_nearest_to_the_expected_place_by_hand() -> None:
    """n = 2 of T = 5: expected at 2 and 4, counted from 1. The second question is asked."""
    task = SelectiveCopying(n=2, T=5, V=3)
    blank, asked, nothing = 3, 4, task.vocabulary
    prompt = np.array([[1, blank, blank, 2, blank, asked, asked]])
    assert expected_place(task, prompt).tolist() == [[2]]
    prompt[0, -1] = nothing
    assert expected_place(task, prompt).tolist() == [[1]]


def test_suffixes_by_hand() -> None:
    """Keys 2 3, 3 2 3, 2 2 3 and 3 3 3 have the values 0, 1, 0 and 1; 3 2 3 is asked for, of which
    the last token stands latest in 3 3 3, the last two in 2 2 3.
    """
    task = FuzzyRecall(n=4, K=2, V=2, a=3, b=1)
    pairs = [2, 3, 0, 3, 2, 3, 1, 2, 2, 3, 0, 3, 3, 3, 1]
    assert task.pairs == len(pairs)
    assert suffixes(task, np.array([[*pairs, 3, 2, 3]])).tolist() == [[1, 0]]


def test_most_ways_by_hand() -> None:
    """a leads to b and c, b to d, c to d and e: d by two ways of three."""
    task = MultiHop(k=2, n=15)
    facts = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), *((9, 9),) * 10]
    row = [part for one, other in facts for part in (20, one, other)] + [21, 22, 0]
    assert most_ways(task, np.array([row])).tolist() == [[3]]
