"""Theorem V: the inequalities against plain integers, the search against brute force, and which architectures it is about."""

from __future__ import annotations

from itertools import product
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.tasks import SeqComp
from separatrix.theory import depth_three
from separatrix.theory.depth_three import Parameters, Sizes
from separatrix.theory.theorem_v import TheoremV

V = TheoremV()
SMALL = st.integers(1, 6)


@given(
    p=st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL),
    s=st.tuples(*[st.integers(0, 5)] * 7),
)
def test_the_inequalities_are_those_of_theory_md(p: tuple[int, ...], s: tuple[int, ...]) -> None:
    m, n_1, n_2, X, t, beta, q, r, g = p
    h_1, h_2, s0, s1, s2, o1, o2 = s
    X, t, beta, g, N_1 = min(X, m), min(t, m), min(beta, m), min(g, n_2), n_1 * m
    assume(2 <= q <= N_1 and 2 <= r <= q)
    u_0 = 0  # floor(sigma_0 / log(N_1 / (q-1))), by integers: the largest u with N_1^u <= (q-1)^u 2^sigma_0
    while N_1 ** (u_0 + 1) <= (q - 1) ** (u_0 + 1) * 2**s0:
        u_0 += 1
        assume(u_0 < beta)
    assume(u_0 < beta)
    y = ceil((X - ceil(m / beta) * u_0) / (beta - u_0))
    assume(y >= 1)
    late = m - t + X * t + 1
    E = o1 + min(X * s1, s1 + late * h_1)
    right = s0 + s1 + o1 + o2 + (N_1 + (q - 1) * n_1 * y * beta + late) * h_1 + n_2 * (h_1 + h_2) + ceil(n_2 / g) * r * s2
    parameters, sizes = Parameters(m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0), Sizes(h_1, h_2, s0, s1, s2, o1, o2)
    assert (parameters.y, parameters.late) == (y, late)
    places, a, b, c = depth_three.conditions(parameters, sizes)
    assert places.positive
    assert a.positive is (X == 1 or m**t > (X - 1) ** t * 2**s0)
    assert b.positive is (q ** (n_1 * y) > (r - 1) ** (n_1 * y) * 2 ** (E + n_1 * g * h_1))
    assert c.positive is ((n_2 * N_1) ** (n_2 * r) > 2**right)


def test_u_0_may_not_be_too_small() -> None:
    """N_1 = 4, q = 3: log2(4/2) = 1, so sigma_0 = 2 makes two places of a block lose contents; u_0 = 1 is refused, u_0 = 2 is right."""
    sizes = Sizes(0, 0, 2, 0, 0)
    good, bad = (Parameters(m=4, n_1=1, n_2=1, X=4, t=4, beta=4, q=3, r=2, g=1, u_0=u) for u in (2, 1))
    assert depth_three.conditions(good, sizes)[0].positive
    assert not depth_three.conditions(bad, sizes)[0].positive


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(1, 1, 0, 0, 0),
        Sizes(1, 1, 0, 1, 0),
        Sizes(1, 0, 0, 0, 2),
        Sizes(1, 1, 1, 0, 0),
        pytest.param(Sizes(2, 2, 1, 1, 1), marks=pytest.mark.slow),
    ],
)
def test_no_shorter_prompt_by_brute_force(sizes: Sizes) -> None:
    """Every choice of parameters with a prompt shorter than what the search found; r as large as (b) allows, since (c) gains with r."""
    found = depth_three.best(sizes)
    assert found is not None
    assert depth_three.holds(found, sizes)
    for m, n_1, n_2 in product(range(2, found.length()), repeat=3):
        if m + m * n_1 * (1 + n_2) + 2 >= found.length():
            continue
        for X, t, beta, q, g in product(range(1, m + 1), range(1, m + 1), range(1, m + 1), range(2, n_1 * m + 1), range(1, n_2 + 1)):
            if (sizes.sigma_0 == 0 and (beta > 1 or t > 1)) or (sizes.sigma_2 == 0 and g > 1):
                continue  # these only cost
            for u_0 in range(beta):
                try:
                    trials = [Parameters(m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0) for r in range(2, q + 1)]
                except SizeError:
                    continue
                assert not any(depth_three.holds(trial, sizes) for trial in trials), trials


@pytest.mark.parametrize(
    "wrong", [{"X": 0}, {"X": 9}, {"t": 9}, {"beta": 9}, {"q": 17}, {"r": 1}, {"r": 4}, {"g": 3}, {"u_0": 1}, {"u_0": -1}, {"n_1": 0}]
)
def test_parameters_out_of_range(wrong: dict[str, int]) -> None:
    right = {"m": 8, "n_1": 2, "n_2": 2, "X": 8, "t": 2, "beta": 1, "q": 3, "r": 2, "g": 1, "u_0": 0}
    Parameters(**right)
    with pytest.raises(SizeError, match="Theorem V needs"):
        Parameters(**(right | wrong))


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("gdn + full|gdn + gdn + full|gdn + gdn*2", Sizes(40, 40, 128, 256, 384)),
        ("full + full(conv=2)", Sizes(40, 40, 0, 12 * 8, 0)),
        ("sparse(block=4, topk=1)*2 + gdn", Sizes(88, 88, 0, 0, 128, 192, 192)),
    ],
)
def test_what_counts_where(spec: str, sizes: Sizes) -> None:
    assert V.sizes(Architecture.parse(f"{spec} @ heads=1, head_dim=4, p8"), 1000) == sizes


def test_at_one_size_and_one_less() -> None:
    """theory.md: no bounded layers, (1,4,8), fails 3-SeqComp from n = 12,242; m = 34, n_1 = 1 gives n_2 = 358. Two steps are not its matter."""
    two = Architecture.parse("full*2 @ heads=1, head_dim=4, p8")
    here, less = (V.judge(two, SeqComp(L=3, m=34, branching=(1, n_2))) for n_2 in (358, 357))
    assert here is not None
    assert less is not None
    assert (here.status, less.status, here.n) == ("FAILS", "OPEN", 12_242)
    assert V.judge(two, SeqComp(L=2, m=34, branching=(358,))) is None
