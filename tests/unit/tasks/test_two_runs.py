"""Two prompts of two runs: instances of their task, one token apart, with different answers by the
definition of the task.
"""

from __future__ import annotations

import numpy as np
from support.each import each
from support.task_cases import CASES, EXAMPLES, TINY, few

from separatrix.tasks import TASKS, Task, Thought, parse_task

LONGEST = 5000
KNOWN = {
    *("parity", "modular", "counting", "majority", "permutation", "group"),
    *("eva", "index", "equality", "disjointness", "dyck"),
}


@each("task", few({t.spec: t for t in (*TINY, *EXAMPLES)}.values(), sizes=4))
def test_they_are_one_token_apart_and_answered_differently(task: Task) -> None:
    runs = task.two_runs()
    assert (runs is not None) == (task.name in KNOWN)
    if runs is None:
        return
    assert runs.a != runs.b
    assert 0 <= runs.j < runs.m <= task.length <= LONGEST
    prompts = runs.prompts()
    assert prompts.shape == (2, task.length)
    (place,) = np.flatnonzero(prompts[0] != prompts[1])
    assert place == runs.j
    case = CASES[task.name]
    first, second = (case.by_hand(task, prompt.tolist()) for prompt in prompts)
    assert first != second
    assert task.answer(prompts).tolist() == [first, second]
    # both have that many of a first, and that many of b where the second run ends
    for prompt in prompts:
        assert set(prompt[: runs.shorter]) <= {runs.a}
        assert set(prompt[runs.m - runs.shorter : runs.m]) <= {runs.b}


@each("name", sorted(KNOWN))
def test_runs_of_larger_tasks_are_no_shorter(name: str) -> None:
    task = CASES[name].examples[0]
    tasks = task.family()
    found = [tasks.at(n).two_runs() for n in range(tasks.smallest, tasks.smallest + 60)]
    lengths = [runs.shorter for runs in found if runs is not None]
    assert len(lengths) == 60
    assert lengths == sorted(lengths)


@each(
    "spec, shorter",
    [
        # n >= 2T + 1 for a T of 50 tokens: 100 bits are too few, 101 are not
        ("parity:n=100", 49),
        ("parity:n=101", 50),
        ("modular:n=101,m=7", 50),
        ("counting:n=101", 50),
        ("counting:n=101,V=9,form=queried", 50),
        ("majority:n=100", 49),
        ("majority:n=101", 50),
        ("permutation:n=101,k=5", 50),
        ("group:n=101,G=A5", 50),
        ("disjointness:n=51", 50),
        ("dyck:n=102,k=2,D=51", 50),
        ("dyck:n=102,k=2,D=50", 49),
        ("dyck:n=1000,k=2,D=51", 50),
    ],
)
def test_how_long_they_are(spec: str, shorter: int) -> None:
    runs = parse_task(spec).two_runs()
    assert runs is not None
    assert runs.shorter == shorter


def test_a_chain_of_thought_has_those_of_its_task() -> None:
    task = parse_task("permutation:n=9,k=3")
    assert Thought(task=task).two_runs() == task.two_runs() is not None
    assert set(TASKS) >= KNOWN
