"""How often test prompts repeat what was drawn before, against drawing them."""

from __future__ import annotations

import numpy as np
import pytest
from support.each import each
from support.task_cases import CASES

from separatrix.tasks import Task, parse_task
from separatrix.tasks.resized import repeats


@each("name", CASES)
def test_there_are_no_more_prompts_than_said(name: str) -> None:
    case = CASES[name]
    for task in case.tiny[:3]:
        assert len(set(case.all_instances(task))) <= task.prompts().exact()


EXACT = ("eva:n=3,V=2", "index:n=2,V=3", "parity:n=5", "seqcomp:L=2,m=2,n_1=2", "seqcomp:L=1,m=3")


@each("spec", EXACT)
def test_where_the_number_is_exact(spec: str) -> None:
    task = parse_task(spec)
    instances = set(CASES[task.name].all_instances(task))
    assert len(instances) == task.prompts().exact()


def share_seen(task: Task, drawn: int) -> float:
    rng = np.random.default_rng(0)
    seen = {row.tobytes() for row in task.sample(drawn, rng).tokens}
    tests = [row.tobytes() for row in task.sample(4000, np.random.default_rng(1)).tokens]
    return sum(row in seen for row in tests) / len(tests)


@pytest.mark.parametrize(
    ("spec", "drawn", "least"),
    [
        # 1 - P/(2(N + 1)), rounded down: P = 2^5, 4 * 4^4 and 4 * 4^4
        ("parity:n=5", 100, 0.841),
        ("eva:n=4,V=4", 2000, 0.744),
        ("eva:n=4,V=4,shift=zipf", 2000, 0.744),
    ],
)
def test_no_more_is_said_than_is_true(spec: str, drawn: int, least: float) -> None:
    task = parse_task(spec)
    said = repeats(task, drawn)
    assert f"at least {least:.1%}".replace("%", " %") in said
    assert share_seen(task, drawn) >= least


def test_nothing_is_said_of_many_prompts() -> None:
    # 2^20 prompts: half of them are seen from 2^20 - 1 draws on, as far as the bound knows
    task = parse_task("parity:n=20")
    assert repeats(task, (1 << 20) - 2) == ""
    assert "50.0 %" in repeats(task, (1 << 20) - 1)
    assert repeats(task, 0) == ""
    assert repeats(parse_task("eva:n=1000000000000"), 10**12) == ""
    assert repeats(parse_task("parity:n=2"), 10**40) == ""
