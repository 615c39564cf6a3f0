"""Theorem IV: the inequalities against plain integers, the search against brute force, and which
architectures it is about.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.tasks import SeqComp
from separatrix.theory import depth_two, judge
from separatrix.theory.depth_two import Parameters, Sizes
from separatrix.theory.fails.iv_two_reading_layers import TheoremIV

IV = TheoremIV()


@given(
    m=st.integers(2, 9), n_1=st.integers(1, 8), r=st.integers(2, 9), q=st.integers(2, 9), t=st.integers(1, 9), g=st.integers(1, 8),
    h_1=st.integers(0, 4), h_2=st.integers(0, 4), s1=st.integers(0, 6), s2=st.integers(0, 6), o=st.integers(0, 6),
)  # fmt: skip
def test_the_inequalities_are_those_of_theory_md(m, n_1, r, q, t, g, h_1, h_2, s1, s2, o) -> None:
    """q^t > (r-1)^t 2^(sigma_1 + g h_1), and N_1^(n_1 r) > 2^right, written out."""
    q = min(q, m)
    t = min(t, m)
    g = min(g, n_1)
    r = min(r, q)
    groups = (n_1 + g - 1) // g
    right = s1 + o + n_1 * (h_1 + h_2) + (q * t + min(t, groups)) * h_1 + groups * r * s2
    a, b = depth_two.conditions(
        Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g), Sizes(h_1, h_2, s1, s2, o)
    )
    assert a.positive is (q**t > (r - 1) ** t * 2 ** (s1 + g * h_1))
    assert b.positive is ((n_1 * m) ** (n_1 * r) > 2**right)


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(1, 1, 0, 0),
        Sizes(2, 1, 1, 0),
        Sizes(1, 1, 1, 1),
        Sizes(1, 2, 0, 3, 2),
        Sizes(3, 3, 2, 2),
    ],
)
def test_no_shorter_prompt_by_brute_force(sizes: Sizes) -> None:
    """Every (m, n_1, r, q, t, g) with a prompt shorter than what the search found."""
    found = depth_two.best(sizes)
    assert found is not None
    assert depth_two.holds(found, sizes)
    n = found.length()
    for m in range(2, n // 2):
        for n_1 in range(1, (n - m - 3) // m + 1):
            for q, t, g in product(range(2, m + 1), range(1, m + 1), range(1, n_1 + 1)):
                groups = -(-n_1 // g)
                most = max(
                    (
                        r
                        for r in range(2, q + 1)
                        if q**t > (r - 1) ** t * 2 ** (sizes.sigma_1 + g * sizes.h_1)
                    ),
                    default=0,
                )
                right = (
                    sizes.sigma_1
                    + sizes.open_2
                    + n_1 * (sizes.h_1 + sizes.h_2)
                    + (q * t + min(t, groups)) * sizes.h_1
                )
                assert not any(
                    (n_1 * m) ** (n_1 * r) > 2 ** (right + groups * r * sizes.sigma_2)
                    for r in range(2, most + 1)
                )


@pytest.mark.parametrize(
    "wrong", [{"r": 1}, {"r": 4}, {"q": 9}, {"t": 0}, {"t": 9}, {"g": 0}, {"g": 3}]
)
def test_parameters_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(SizeError, match="Theorem IV needs"):
        Parameters(**({"m": 8, "n_1": 2, "r": 2, "q": 3, "t": 2, "g": 1} | wrong))


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("full*2", Sizes(40, 40, 0, 0)),
        ("full|gdn + full|gdn + gdn", Sizes(40, 40, 128, 256)),
        ("gdn + full*2", None),
        ("full + gdn + full", None),
        ("full + full(conv=2)", None),  # a short convolution is a bounded layer before
        ("sparse(block=4, topk=1) + full", Sizes(88, 40, 192, 0)),
        ("full + sparse(block=4, topk=1)", Sizes(40, 88, 0, 0, 192)),
    ],
)
def test_what_counts_where(spec: str, sizes: Sizes | None) -> None:
    assert IV.sizes(Architecture.parse(f"{spec} @ heads=1, head_dim=4, p8"), 1000) == sizes


def test_at_one_size_and_one_less() -> None:
    """theory.md: (1,4,8) fails from n = 11,902, at m = 34, n_1 = 349."""
    two = Architecture.parse("full*2 @ heads=1, head_dim=4, p8")
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
