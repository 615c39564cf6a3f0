"""Theorem IV: the inequalities against plain integers, the search against brute force, by hand and
at the sizes of language models, and which architectures it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bounds import holds
from support.depth_sizes import four
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.theory import judge
from separatrix.theory.arguments import Numbers, Sizes
from separatrix.theory.fails.iv_two_reading_layers import Parameters, TheoremIV

IV = TheoremIV()


@given(
    m=st.integers(2, 9),
    n_1=st.integers(1, 8),
    r=st.integers(2, 9),
    q=st.integers(2, 9),
    t=st.integers(1, 9),
    g=st.integers(1, 8),
    h_1=st.integers(0, 4),
    h_2=st.integers(0, 4),
    s1=st.integers(0, 6),
    s2=st.integers(0, 6),
    o=st.integers(0, 6),
)
def test_the_inequalities_are_those_of_theory_md(m, n_1, r, q, t, g, h_1, h_2, s1, s2, o) -> None:
    """q^t > (r-1)^t 2^(sigma_1 + g h_1), and N_1^(n_1 r) > 2^right, written out."""
    q = min(q, m)
    t = min(t, m)
    g = min(g, n_1)
    r = min(r, q)
    groups = (n_1 + g - 1) // g
    right = s1 + o + n_1 * (h_1 + h_2) + (q * t + min(t, groups)) * h_1 + groups * r * s2
    a, b = IV.signs(Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g), four(h_1, h_2, s1, s2, o))
    assert a.positive is (q**t > (r - 1) ** t * 2 ** (s1 + g * h_1))
    assert b.positive is ((n_1 * m) ** (n_1 * r) > 2**right)


@pytest.mark.parametrize(
    "sizes",
    [
        four(1, 1, 0, 0),
        four(2, 1, 1, 0),
        four(1, 1, 1, 1),
        four(1, 2, 0, 3, 2),
        four(3, 3, 2, 2),
    ],
)
def test_no_shorter_prompt_by_brute_force(sizes: Sizes) -> None:
    """Every (m, n_1, r, q, t, g) with a prompt shorter than what the search found."""
    found = IV.shortest(sizes, 2)
    assert found is not None
    assert holds(IV, found, sizes)
    n = found.length()
    s = Numbers(**sizes.numbers)
    for m in range(2, n // 2):
        for n_1 in range(1, (n - m - 3) // m + 1):
            for q, t, g in product(range(2, m + 1), range(1, m + 1), range(1, n_1 + 1)):
                groups = -(-n_1 // g)
                most = max(
                    (
                        r
                        for r in range(2, q + 1)
                        if q**t > (r - 1) ** t * 2 ** (s.sigma_1 + g * s.h_1)
                    ),
                    default=0,
                )
                right = (
                    s.sigma_1 + s.open_2 + n_1 * (s.h_1 + s.h_2) + (q * t + min(t, groups)) * s.h_1
                )
                assert not any(
                    (n_1 * m) ** (n_1 * r) > 2 ** (right + groups * r * s.sigma_2)
                    for r in range(2, most + 1)
                )


@each("wrong", [{"r": 1}, {"r": 4}, {"q": 9}, {"t": 0}, {"t": 9}, {"g": 0}, {"g": 3}])
def test_parameters_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(SizeError, match="Theorem IV needs"):
        Parameters(**({"m": 8, "n_1": 2, "r": 2, "q": 3, "t": 2, "g": 1} | wrong))


@each(
    "spec, sizes",
    [
        ("full*2", four(40, 40, 0, 0)),
        ("full|gdn + full|gdn + gdn", four(40, 40, 128, 256)),
        ("gdn + full*2", None),
        ("full + gdn + full", None),
        ("full + full(conv=2)", None),  # a short convolution is a bounded layer before
        ("sparse(block=4, topk=1) + full", four(88, 40, 192, 0)),
        ("full + sparse(block=4, topk=1)", four(40, 88, 0, 0, 192)),
    ],
)
def test_what_counts_where(spec: str, sizes: Sizes | None) -> None:
    assert IV.sizes(Architecture.parse(f"{spec} @ {paper_sizes(1, 4, 8)}"), 1000) == sizes


def test_at_one_size_and_one_less() -> None:
    """theory.md: (1,4,8) fails from n = 11,902, at m = 34, n_1 = 349."""
    two = Architecture.parse(f"full*2 @ {paper_sizes(1, 4, 8)}")
    here, less = (IV.judge(two, SeqComp(L=2, m=34, branching=(n_1,))) for n_1 in (349, 348))
    assert here is not None
    assert less is not None
    assert (here.status, less.status, here.n, less.n) == ("FAILS", "OPEN", 11_902, 11_902)


def test_heads_beside_the_first_layer_do_not_help_but_a_layer_before_does() -> None:
    """theory.md: with a bounded layer before the first or between, no such theorem can exist;
    inside the first layer it can, and does.
    """
    task = SeqComp(L=2, m=40, branching=(2,))
    beside, before, between, after = (
        {v.status for v in judge(Architecture.parse(f"{spec} @ heads=1, head_dim=16"), task)}
        for spec in ("full|gdn + full", "gdn + full*2", "full + gdn + full", "full*2 + gdn")
    )
    assert "SOLVABLE" not in beside | after
    assert "SOLVABLE" in before & between


LARGER = {
    "h_1": (1, 4, 40),
    "h_2": (1, 4, 40),
    "sigma_1": (0, 3, 160),
    "sigma_2": (0, 3, 160),
    "open_2": (0, 9),
}
LARGE = (0, 10**7, 10**9)


def _best(sizes: Sizes) -> Parameters:
    found = IV.shortest(sizes, 2)
    assert found is not None
    return found


def test_a_prompt_found_by_hand_that_a_looser_search_missed() -> None:
    """(4, 4, 2, 3, 4, 4): 4 log2 3 = 6.3 > 2 + 4 and 4 * 2 log2 16 = 32 > 2 + 8 + (12 + 1) + 6 =
    29; n = 4 + 16 + 2.
    """
    sizes = four(1, 1, 2, 3)
    assert holds(IV, Parameters(m=4, n_1=4, r=2, q=3, t=4, g=4), sizes)
    assert _best(sizes).length() <= 22


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), LARGER.items())
def test_larger_sizes_never_fail_sooner(name: str, values: Sequence[int]) -> None:
    """Parameters that show failure with larger caches show it with smaller ones, so the shortest
    prompt cannot fall.
    """
    base = {"h_1": 4, "h_2": 4, "sigma_1": 3, "sigma_2": 3}
    lengths = [_best(four(**(base | {name: value}))).length() for value in values]
    assert lengths == sorted(lengths)


@pytest.mark.slow
@pytest.mark.parametrize("h", [10**5, 10**6])
@pytest.mark.parametrize("sigma_2", LARGE)
def test_at_the_sizes_of_language_models(h: int, sigma_2: int) -> None:
    lengths: list[int] = []
    for sigma_1 in LARGE:
        sizes = four(h, h, sigma_1, sigma_2)
        found = _best(sizes)
        assert holds(IV, found, sizes)
        assert not holds(IV, replace(found, n_1=found.n_1 - 1), sizes)
        lengths.append(found.length())
    assert all(10**6 * larger >= (10**6 - 1) * smaller for smaller, larger in pairwise(lengths))


@pytest.mark.parametrize(
    "sizes", [pytest.param(four(1, 1, 0, 0), marks=pytest.mark.slow), four(1, 1, 1, 2)]
)
def test_at_a_fixed_size_by_brute_force(sizes: Sizes) -> None:
    for m, n_1 in product(range(2, 5), range(1, 7)):
        trials = (
            Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g)
            for q, t, g in product(range(2, m + 1), range(1, m + 1), range(1, n_1 + 1))
            for r in range(2, q + 1)
        )
        known = any(holds(IV, trial, sizes) for trial in trials)
        found = IV.best_at(sizes, SeqComp(L=2, m=m, branching=(n_1,)))
        assert (found is not None) is known, (m, n_1)
        assert found is None or (found.size == (m, n_1) and holds(IV, found, sizes))
