"""Recall of random facts over contexts: rows of `compare`, and as JSON."""

from __future__ import annotations

import json

import pytest

from separatrix.cards import card
from separatrix.cards.apart import few_contexts, recall_curve
from separatrix.cli.main import run
from separatrix.stacks.architecture.resolve import resolve

CONTEXTS = tuple(1 << power for power in range(12, 31))
MAMBA, GEMMA, QWEN = "mamba2-2.7b", "recurrentgemma-2b", "qwen3-next-80b"


def test_a_point_is_what_the_card_says_at_that_context() -> None:
    model = resolve(GEMMA)
    for context in (8192, 98_507, 98_508, 10_000_001):
        (point,) = recall_curve(model, [context])
        grade = card(model, context)[0].grade
        assert point.context == context
        assert point.at_most == (None if grade is None else grade.ceiling)
        # 98,506 facts fit (theory.md, section 12), and the context holds one question besides
        assert (grade is not None) == (context - 1 > 98_506)
        assert (point.stored < 10**6) == (context - 1 > 98_506)


def test_the_contexts_lie_around_those_at_which_stacks_begin_to_fail() -> None:
    models = [resolve(name) for name in (MAMBA, GEMMA, QWEN)]
    few = [*few_contexts(models, 262_144)]
    assert 262_144 in few
    assert len(few) <= 9
    assert few == sorted(set(few))
    # 64 states of 5,120 x 128 fp32 numbers / log2 50,288, and 64 convolutions of 3 tokens before
    assert few[0] < 98_507 < 85_938_443 < few[-1]
    for model, begins in zip(models, (85_938_443, 98_507, None), strict=True):
        curve = recall_curve(model, CONTEXTS)
        bounded = [point.context for point in curve if point.at_most is not None]
        assert (bounded[0] > begins) if begins else not bounded
        shares = [10**6 if p.at_most is None else p.at_most for p in curve]
        assert shares == sorted(shares, reverse=True)
        assert all(p.stored <= share for p, share in zip(curve, shares, strict=True))
    assert few_contexts([resolve("full"), resolve("gdn + full")], 100) == ()


def test_compare_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", GEMMA, "full", "--context", "10000001", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    at = data["recall"]["contexts"].index(10_000_001)
    assert [each[at] for each in data["recall"]["at_most"]] == [0.015827, None]
    assert [each[at] for each in data["recall"]["stored"]] == [0.009853, 1.0]
    rows = {row["row"]: row for row in data["rows"]}
    # 16,430 facts within reach and 82,076 that fit in the states, of 10,000,000
    assert rows["10,000,001"]["cells"] == ["1.59 % (0.985 %)", "no bound"]
    assert rows["10,000,001"]["differs"]
    lines = data["models"][0]["verdicts"]
    assert lines[0]["accuracy"]["at_most"] == 0.015827
    assert lines[0]["accuracy"]["sizes"]["facts"] == 10_000_000
    assert [line["question"].split()[0] for line in lines if "accuracy" in line] == [
        "recall",
        "all",  # of n facts, asked for in turn
        "composition,",
    ]
