"""A line's words: how far away a bound is, and where it bites; sentences claim the size judged."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.cards import CardLine, card
from separatrix.cards.question import Bound
from separatrix.core.numbers.amounts import format_times
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Equality, SeqComp, parse_task


@each(
    "bound, said, where",
    [
        (
            Bound("I", 7_675_932, 8192),
            "bites at 937 times",
            "from n = 7,675,932 on",
        ),
        (Bound("III", 282, 100), "bites at 2.8 times", "at n = 282"),
        (
            Bound("II", 10**12, 10**11),
            "bites at 10 times",
            "from n = 1,000,000,000,000 on",
        ),
        (
            Bound("IV", 10**12 + 1, 10**11),
            "out of reach",
            "n of at most 1.01e12",
        ),
        (Bound("V", 5 * 10**25, 8192), "out of reach", "n of at most 5.00e25"),
        (Bound("CPW-1.1", None, 8192, log2_n="4096"), "out of reach", ""),
        (Bound("CPW-1.1", None, 8192, log2_n="log2(3) x 2^5000"), "out of reach", ""),
        (Bound("CPW-1.1", None, 8192, log2_n="16"), "asymptotic", ""),
    ],
)
def test_how_far_away_a_bound_is(bound: Bound, said: str, where: str) -> None:
    assert said in bound.said
    assert where in bound.where if where else bound.where == ""
    line = CardLine("asked", "OPEN", None, "why", bound.theorem, bound=bound)
    assert line.where == bound.where
    assert line.reason == f"{bound.said}, {bound.where}: why" if where else f"{bound.said}: why"


@each(
    "n, asked, said",
    [
        (7_675_932, 8192, "937 times"),
        (8193, 8192, "1.0001 times"),
        (12, 8, "1.5 times"),
        (10**6, 3, "333,333 times"),
    ],
)
def test_how_many_times_as_long(n: int, asked: int, said: str) -> None:
    assert format_times(n, asked) == said


@pytest.mark.parametrize("context", [8, 1000, 8192, 1 << 20])
def test_solvable_is_said_of_the_prompts_that_were_judged(context: int) -> None:
    """A composition's tables fill the context, of one step too, and strings have half of it."""
    lines = card(Architecture.parse("gdn + full*2 @ head_dim=64"), context)
    for line in lines:
        if line.status != "SOLVABLE" or line.verdict is None:
            continue
        task = parse_task(line.verdict.task)
        if isinstance(task, SeqComp):
            assert context - task.L < task.length <= context
            if "chain" not in line.question:
                assert f"fill {context:,} tokens" in line.explain
        if isinstance(task, Equality):
            assert f"strings of {context // 2:,} bits" in line.explain
    assert {"composition", "equality"} <= {
        line.question.split()[0].strip(",") for line in lines if line.status == "SOLVABLE"
    }
    one = card(Architecture.parse("full*2"), context)
    (first,) = (line for line in one if line.question == "composition, L <= 1 step")
    assert first.verdict is not None
    assert parse_task(first.verdict.task).length == context
