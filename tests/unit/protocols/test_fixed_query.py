"""Theorem I' on protocols: the last token must be able to read as many values as there are
classes of A, and that is enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import pytest
from adversaries.existence import find_fixed_query
from support.each import each

from separatrix.protocols.fixed_query import (
    Answers,
    classes,
    composition,
    disjointness,
    equality,
    two_sum,
)
from separatrix.protocols.one_reading import OneReadingSizes
from separatrix.tasks import SeqComp, TwoSum

COUNTS = [
    (composition(2), 2**2),
    pytest.param(composition(3), 3**3, marks=pytest.mark.slow),
    (equality(1), 2),
    (equality(2), 4),
    (equality(3), 8),
    (disjointness(2), 4),
    (disjointness(4), 16),
]


@each("answers, count", COUNTS)
def test_one_value_less_than_theory_md_counts_is_too_few(answers: Answers, count: int) -> None:
    """Composition n^n, equality and disjointness 2^n (theory.md, section 3)."""
    assert classes(answers) == count
    assert find_fixed_query(answers, count - 1) is None
    line = find_fixed_query(answers, count)
    assert line is not None
    assert all(line.run(A, B) == right for (A, B), right in answers.items())


def sortings(count: int, values: int) -> Iterator[tuple[int, ...]]:
    """Every map from [count] to [values], up to the names of values."""
    stack: list[tuple[int, ...]] = [()]
    while stack:
        start = stack.pop()
        if len(start) == count:
            yield start
        else:
            stack += [
                (*start, value) for value in range(min(values, 1 + max(start, default=-1) + 1))
            ]


def enumerated(answers: Answers, reads: int) -> bool:
    """Whether some map from A to values leaves one right answer per value and B."""
    all_A = list(dict.fromkeys(A for A, _ in answers))
    for read in sortings(len(all_A), reads):
        value = dict(zip(all_A, read, strict=True))
        told: dict[Hashable, int] = {}
        if all(told.setdefault((value[A], B), right) == right for (A, B), right in answers.items()):
            return True
    return False


@pytest.mark.parametrize(
    "answers",
    [
        composition(2),
        equality(2),
        equality(3),
        disjointness(2),
        disjointness(3),
        two_sum(TwoSum(n=3, M=7, form="decision"), 1),
    ],
)
def test_the_search_against_plain_enumeration(answers: Answers) -> None:
    for reads in range(1, 9):
        assert (find_fixed_query(answers, reads) is not None) is enumerated(answers, reads)


@pytest.mark.parametrize(
    ("n", "M", "counted", "needed"), [(3, 5, 1, 5), (3, 7, 2, 7), (4, 7, 3, 15), (4, 9, 6, 27)]
)
def test_two_sum_as_a_decision(n: int, M: int, counted: int, needed: int) -> None:
    """The theorem counts sets of one sign, a lower bound. By hand, q = 1: one class of A says yes
    at once; 1 is invisible, since -1 cancels q already; of 0 and the M-3 values x != 0, 1, -1,
    every set of at most n-2 without a pair is a class: 1 + 5 + (4 + 4) for n = 4, M = 7.
    """
    task = TwoSum(n=n, M=M, form="decision")
    answers = two_sum(task, 1)
    theirs = task.first_part()
    assert theirs is not None
    assert (theirs.contents.exact(), classes(answers)) == (counted, needed)
    assert find_fixed_query(answers, needed - 1) is None
    assert find_fixed_query(answers, needed) is not None


@pytest.mark.parametrize(("m", "n_1"), [(2, 1), (2, 2), (3, 1)])
def test_a_row_of_z_2_is_what_theorem_i_prime_counts_and_iii_needs(m: int, n_1: int) -> None:
    """SeqComp with w fixed: N_1^m rows, the number that `OneReadingSizes` fails below when
    nothing else is told.
    """
    theirs = SeqComp(L=2, m=m, branching=(n_1,)).first_part()
    row = (n_1 * m) ** m
    assert theirs.contents.exact() == row
    assert OneReadingSizes(m=m, n_1=n_1, t=m, reads=row - 1).failing() == m
    assert OneReadingSizes(m=m, n_1=n_1, t=m, reads=row).failing() is None


def test_answers_by_definition() -> None:
    """{1} and {2} are disjoint, {1} and {1, 2} are not; 01 is 01 and is not 10; g(f(x))."""
    disjoint, equal, composed = disjointness(2), equality(2), composition(2)
    assert disjoint[(1, 0), (0, 1)] == 1
    assert disjoint[(1, 0), (1, 1)] == 0
    assert equal[(0, 1), (0, 1)] == 1
    assert equal[(0, 1), (1, 0)] == 0
    assert composed[(1, 1), ((0, 1), 0)] == 1
    assert composed[(1, 0), ((1, 0), 0)] == 0
