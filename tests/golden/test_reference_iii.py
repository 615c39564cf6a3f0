"""Theorem III against the table of theory.md, section 5: h = H(d+1)p, a recurrent layer holds H
d(d+1) p bits.
"""

from __future__ import annotations

import pytest
from support.bounds import holds
from support.depth_sizes import three
from support.each import each

from separatrix.tasks import SeqComp
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.iii_one_reading_layer import (
    Parameters,
    TheoremIII,
)

III = TheoremIII()

TABLE = [
    # (H, d, p), recurrent layers before and after, n, (m, r, t, n_1)
    ((1, 4, 8), 0, 0, 26, (12, 12, 1, 1)),
    ((1, 16, 16), 0, 0, 100, (49, 49, 1, 1)),
    ((1, 16, 16), 0, 1, 3_052, (50, 50, 1, 60)),
    ((1, 16, 16), 0, 2, 3_577, (55, 55, 1, 64)),
    ((1, 16, 16), 1, 0, 3_928, (1963, 423, 1963, 1)),
    ((1, 16, 16), 1, 1, 334_706, (1101, 72, 1101, 303)),
    ((1, 16, 16), 2, 2, 1_012_067, (1857, 73, 1857, 544)),
]


def _sizes(hdp: tuple[int, int, int], before: int, after: int) -> Sizes:
    heads, d, p = hdp
    state = heads * d * (d + 1) * p
    return three(h=heads * (d + 1) * p, sigma_0=before * state, sigma_1=after * state)


@pytest.mark.parametrize(("hdp", "before", "after", "n", "known"), TABLE)
def test_reference_values_hold_and_are_met(hdp, before, after, n, known) -> None:
    sizes = _sizes(hdp, before, after)
    m, r, t, n_1 = known
    reference = Parameters(m=m, n_1=n_1, r=r, t=t)
    assert reference.length() == n
    assert holds(III, reference, sizes)
    found = III.shortest(sizes, 2)
    assert found is not None
    assert found.length() <= n
    assert holds(III, found, sizes)


@each("hdp, before, after, n, known", TABLE)
def test_one_step_less_breaks_the_reference(hdp, before, after, n, known) -> None:
    sizes = _sizes(hdp, before, after)
    m, r, t, n_1 = known
    if n_1 > 1:
        assert not holds(III, Parameters(m=m, n_1=n_1 - 1, r=r, t=t), sizes)
    if before:
        a, _ = III.signs(Parameters(m=m, n_1=n_1, r=r, t=t // 2), sizes)
        assert not a.positive


def test_the_smallest_case_by_hand() -> None:
    """h = 40 and no bounded layers: m log2 m > 40 first at m = 12 (12 log2 12 = 43.02, 11 log2
    11 = 38.05), so n = 2 * 12 + 2.
    """
    sizes = three(h=40, sigma_0=0, sigma_1=0)
    assert III.best_at(sizes, SeqComp(L=2, m=12, branching=(1,))) is not None
    assert III.best_at(sizes, SeqComp(L=2, m=11, branching=(1,))) is None


def test_no_smaller_prompt_by_brute_force() -> None:
    """Every (m, n_1, r, t) with a prompt shorter than the optimum, for small sizes with all
    groups in play.
    """
    sizes = three(h=6, sigma_0=4, sigma_1=3)
    found = III.shortest(sizes, 2)
    assert found is not None
    n = found.length()
    for m in range(1, n):
        for n_1 in range(1, (n - m - 3) // m + 1):
            for r in range(1, m + 1):
                for t in range(1, m + 1):
                    assert not holds(III, Parameters(m=m, n_1=n_1, r=r, t=t), sizes), (
                        m,
                        n_1,
                        r,
                        t,
                        n,
                    )


def test_lifting_adds_the_tokens_of_identities() -> None:
    parameters = Parameters(m=12, n_1=2, r=12, t=1)
    assert parameters.length(2) == 24 + 12 + 2
    assert parameters.length(4) == parameters.length(2) + 2 * 24
