"""L-SeqComp read forward: places by hand, the same functions as in the other order, and the
classes of prefixes of every length.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.counted_classes import counted_classes
from support.task_cases import CASES
from support.task_cases.seqcomp_forward import backward

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, SeqCompForward, parse_task
from separatrix.theory.judge import judge


def test_the_table_that_opens_the_module() -> None:
    task = SeqCompForward(L=2, m=2, branching=(2,))
    assert (task.length, task.position_z0, task.position_w, task.offset(1), task.offset(2)) == (
        8,
        0,
        1,
        2,
        4,
    )
    assert [task.position(2, a, i) for a in (0, 1) for i in (0, 1)] == [4, 5, 6, 7]
    assert task.chain(np.array([[0, 1, 1, 0, 1, 0, 2, 3]])).tolist() == [[1, 3]]
    assert parse_task("seqcomp-forward:L=2,m=2,n_1=2") == task


@pytest.mark.parametrize("text", ["L=1,m=5", "L=2,m=3,n_1=2", "L=3,m=4,n_1=3,n_2=2"])
def test_it_is_seqcomp_in_another_order(text: str) -> None:
    task = parse_task(f"seqcomp-forward:{text}")
    other = parse_task(f"seqcomp:{text}")
    assert isinstance(task, SeqCompForward)
    assert isinstance(other, SeqComp)
    tokens, targets = task.sample(200, np.random.default_rng(0))
    turned = np.array([backward(task, row) for row in tokens.tolist()])
    assert (other.chain(turned) == task.chain(tokens)).all()
    assert (other.answer(turned) == targets).all()
    assert (other.length, other.vocabulary, other.answers, other.chance) == (
        task.length,
        task.vocabulary,
        task.answers,
        task.chance,
    )


@pytest.mark.parametrize("task", CASES["seqcomp-forward"].tiny, ids=str)
def test_classes_of_prefixes_of_every_length(task: SeqCompForward) -> None:
    """N_{L-1} after z_0 and w, N_{L-1} (2 - t/N_{l-1}) after t entries of z_l, and never more
    than 2 N_{L-1} - 1.
    """
    prompts = np.array(CASES[task.name].all_instances(task))
    right = task.answer(prompts).tolist()
    N = task.answers
    expected = [task.answers]
    for level in range(1, task.L + 1):
        entries = task.entries(level)
        expected += [2 * N - t * N // entries for t in range(1, entries + 1)]
    for length, classes in enumerate(expected, 2):
        rows: dict[tuple[int, ...], list[int]] = {}
        for prompt, answer in zip(
            prompts.tolist(), right, strict=True
        ):  # all continuations, in one order
            rows.setdefault(tuple(prompt[:length]), []).append(answer)
        assert len({tuple(row) for row in rows.values()}) == classes
    assert max(expected) == 2 * N - 1
    count = counted_classes(task)
    assert (task.prefix_length, count.exact()) == (3, expected[1])


def test_a_few_bits_are_enough_however_long() -> None:
    """Theorem I asks for log2 of the classes, and composed functions in the order needed have
    few.
    """
    small = Architecture.parse(
        "gdn*1 @ heads=1, head_dim=1, value_dim=1, format=p1, state_format=p1"
    )
    verdicts = {
        verdict.theorem: verdict
        for verdict in judge(small, SeqCompForward(L=2, m=50, branching=(1,)))
    }
    assert verdicts["I"].status == "FAILS"
    cache = small.cache_bits(3)
    m = next(m for m in range(2, 10**6) if 2 * m - 1 > 2**cache)
    assert verdicts["I"].n == 2 * m + 2  # the prompt length at that m
    large = Architecture.parse("gdn*1 @ heads=1, head_dim=16, format=p8, state_format=p8")
    assert [
        verdict.status for verdict in judge(large, SeqCompForward(L=2, m=10**9, branching=(1,)))
    ] == ["OPEN"]
