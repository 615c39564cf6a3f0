"""Theorem V: the inequalities against plain integers, the search against brute force, and which
architectures it is about.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.tasks import SeqComp
from separatrix.theory import depth_three
from separatrix.theory.depth_three import Parameters, Sizes
from separatrix.theory.fails.v_three_steps import TheoremV

V = TheoremV()


@st.composite
def places(draw: st.DrawFn) -> tuple[dict[str, int], Sizes]:
    """Parameters in range, with u_0 = floor(sigma_0 / log(N_1/(q-1))) found by integers: the
    largest u with N_1^u <= (q-1)^u 2^sigma_0.
    """
    m = draw(st.integers(2, 6))
    n_1 = draw(st.integers(1, 4))
    n_2 = draw(st.integers(1, 6))
    q = draw(st.integers(2, n_1 * m))
    p = {
        "m": m,
        "n_1": n_1,
        "n_2": n_2,
        "q": q,
        "r": draw(st.integers(2, q)),
        "g": draw(st.integers(1, n_2)),
    }
    p |= {name: draw(st.integers(1, m)) for name in ("X", "t", "beta")}
    sizes = Sizes(
        *draw(
            st.tuples(
                st.integers(0, 5), st.integers(0, 5), st.integers(0, 2), *[st.integers(0, 5)] * 4
            )
        )
    )
    u_0 = 0
    while (n_1 * m) ** (u_0 + 1) <= (q - 1) ** (u_0 + 1) * 2**sizes.sigma_0:
        u_0 += 1
    p["beta"], p["X"] = (p["beta"], p["X"]) if u_0 < p["beta"] else (m, m)
    if u_0 >= p["beta"] or p["X"] <= ceil(m / p["beta"]) * u_0:
        u_0 = 0
        sizes = replace(sizes, sigma_0=0)
    return p | {"u_0": u_0}, sizes


@given(places())
def test_the_inequalities_are_those_of_theory_md(place: tuple[dict[str, int], Sizes]) -> None:
    p, s = place
    m, n_1, n_2, q, r, g, X, t, beta, u_0 = p.values()
    N_1 = n_1 * m
    y = ceil((X - ceil(m / beta) * u_0) / (beta - u_0))
    late = m - t + X * t + 1
    E = s.open_1 + min(X * s.sigma_1, s.sigma_1 + late * s.h_1)
    right = (
        s.sigma_0
        + s.sigma_1
        + s.open_1
        + s.open_2
        + (N_1 + (q - 1) * n_1 * y * beta + late) * s.h_1
    )
    right += n_2 * (s.h_1 + s.h_2) + ceil(n_2 / g) * r * s.sigma_2
    parameters = Parameters(**p)
    assert (parameters.y, parameters.late) == (y, late)
    blocks, a, b, c = depth_three.conditions(parameters, s)
    assert blocks.positive
    assert a.positive is (X == 1 or m**t > (X - 1) ** t * 2**s.sigma_0)
    assert b.positive is (q ** (n_1 * y) > (r - 1) ** (n_1 * y) * 2 ** (E + n_1 * g * s.h_1))
    assert c.positive is ((n_2 * N_1) ** (n_2 * r) > 2**right)


def test_u_0_may_not_be_too_small() -> None:
    """N_1 = 4, q = 3: log2(4/2) = 1, so sigma_0 = 2 makes two places of a block lose contents;
    u_0 = 1 is refused, u_0 = 2 is right.
    """
    sizes = Sizes(0, 0, 2, 0, 0)
    good, bad = (
        Parameters(m=4, n_1=1, n_2=1, X=4, t=4, beta=4, q=3, r=2, g=1, u_0=u) for u in (2, 1)
    )
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
    """Every choice of parameters with a prompt shorter than what the search found; r as large as
    (b) allows, since (c) gains with r.
    """
    found = depth_three.best(sizes)
    assert found is not None
    assert depth_three.holds(found, sizes)
    for m, n_1, n_2 in product(range(2, found.length()), repeat=3):
        if m + m * n_1 * (1 + n_2) + 2 >= found.length():
            continue
        for X, t, beta, q, g in product(
            range(1, m + 1),
            range(1, m + 1),
            range(1, m + 1),
            range(2, n_1 * m + 1),
            range(1, n_2 + 1),
        ):
            if (sizes.sigma_0 == 0 and (beta > 1 or t > 1)) or (sizes.sigma_2 == 0 and g > 1):
                continue  # these only cost
            for u_0 in range(beta):
                try:
                    trials = [
                        Parameters(
                            m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0
                        )
                        for r in range(2, q + 1)
                    ]
                except SizeError:
                    continue
                assert not any(depth_three.holds(trial, sizes) for trial in trials), trials


@pytest.mark.parametrize(
    "wrong",
    [
        {"X": 0},
        {"X": 9},
        {"t": 9},
        {"beta": 9},
        {"q": 17},
        {"r": 1},
        {"r": 4},
        {"g": 3},
        {"u_0": 1},
        {"u_0": -1},
        {"n_1": 0},
    ],
)
def test_parameters_out_of_range(wrong: dict[str, int]) -> None:
    right = {
        "m": 8,
        "n_1": 2,
        "n_2": 2,
        "X": 8,
        "t": 2,
        "beta": 1,
        "q": 3,
        "r": 2,
        "g": 1,
        "u_0": 0,
    }
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
    """theory.md: no bounded layers, (1,4,8), fails 3-SeqComp from n = 12,242; m = 34, n_1 = 1
    gives n_2 = 358. Two steps are not its matter.
    """
    two = Architecture.parse("full*2 @ heads=1, head_dim=4, p8")
    here, less = (V.judge(two, SeqComp(L=3, m=34, branching=(1, n_2))) for n_2 in (358, 357))
    assert here is not None
    assert less is not None
    assert (here.status, less.status, here.n) == ("FAILS", "OPEN", 12_242)
    assert V.judge(two, SeqComp(L=2, m=34, branching=(358,))) is None
