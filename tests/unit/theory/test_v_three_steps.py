"""Theorem V: the inequalities against plain integers, the search against brute force, by hand and
at the sizes of language models, and which architectures it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bounds import holds
from support.depth_sizes import five
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.cards.composition import composition
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.theory.arguments import Numbers, Sizes
from separatrix.theory.fails.v_three_steps import Parameters, TheoremV, rich_blocks
from separatrix.theory.judge import THEOREMS, said_by

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
    sizes = five(
        *draw(
            st.tuples(
                st.integers(0, 5), st.integers(0, 5), st.integers(0, 2), *[st.integers(0, 5)] * 4
            )
        )
    )
    u_0 = 0
    while (n_1 * m) ** (u_0 + 1) <= (q - 1) ** (u_0 + 1) * 2 ** sizes.sigma[0]:
        u_0 += 1
    p["beta"], p["X"] = (p["beta"], p["X"]) if u_0 < p["beta"] else (m, m)
    if u_0 >= p["beta"] or p["X"] <= ceil(m / p["beta"]) * u_0:
        u_0 = 0
        sizes = replace(sizes, sigma=(0, *sizes.sigma[1:]))
    return p | {"u_0": u_0}, sizes


@given(places())
def test_the_inequalities_are_those_of_theory_md(place: tuple[dict[str, int], Sizes]) -> None:
    p, sizes = place
    s = Numbers(**sizes.numbers)
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
    assert rich_blocks(parameters) == y
    blocks, a, b, c = V.signs(parameters, sizes)
    assert blocks.positive
    assert a.positive is (X == 1 or m**t > (X - 1) ** t * 2**s.sigma_0)
    assert b.positive is (q ** (n_1 * y) > (r - 1) ** (n_1 * y) * 2 ** (E + n_1 * g * s.h_1))
    assert c.positive is ((n_2 * N_1) ** (n_2 * r) > 2**right)


def test_u_0_may_not_be_too_small() -> None:
    """N_1 = 4, q = 3: log2(4/2) = 1, so sigma_0 = 2 makes two places of a block lose contents;
    u_0 = 1 is refused, u_0 = 2 is right.
    """
    sizes = five(0, 0, 2, 0, 0)
    good, bad = (
        Parameters(m=4, n_1=1, n_2=1, X=4, t=4, beta=4, q=3, r=2, g=1, u_0=u) for u in (2, 1)
    )
    assert V.signs(good, sizes)[0].positive
    assert not V.signs(bad, sizes)[0].positive


@pytest.mark.parametrize(
    "sizes",
    [
        five(1, 1, 0, 0, 0),
        five(1, 1, 0, 1, 0),
        five(1, 0, 0, 0, 2),
        five(1, 1, 1, 0, 0),
        pytest.param(five(2, 2, 1, 1, 1), marks=pytest.mark.slow),
    ],
)
def test_no_shorter_prompt_by_brute_force(sizes: Sizes) -> None:
    """Every choice of parameters with a prompt shorter than what the search found; r as large as
    (b) allows, since (c) gains with r.
    """
    found = V.shortest(sizes, 3)
    assert found is not None
    assert holds(V, found, sizes)
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
            if (sizes.sigma[0] == 0 and (beta > 1 or t > 1)) or (sizes.sigma[2] == 0 and g > 1):
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
                assert not any(holds(V, trial, sizes) for trial in trials), trials


@each(
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
        ("gdn + full|gdn + gdn + full|gdn + gdn*2", five(40, 40, 128, 256, 384)),
        ("full + full(conv=2)", five(40, 40, 0, 12 * 8, 0)),
        ("sparse(block=4, topk=1)*2 + gdn", five(88, 88, 0, 0, 128, 192, 192)),
    ],
)
def test_what_counts_where(spec: str, sizes: Sizes) -> None:
    assert V.sizes(Architecture.parse(f"{spec} @ {paper_sizes(1, 4, 8)}"), 1000) == sizes


def test_at_one_size_and_one_less() -> None:
    """theory.md: no bounded layers, (1,4,8), fails 3-SeqComp from n = 12,242; m = 34, n_1 = 1
    gives n_2 = 358. Two steps are not its matter.
    """
    two = Architecture.parse(f"full*2 @ {paper_sizes(1, 4, 8)}")
    here, less = (V.judge(two, SeqComp(L=3, m=34, branching=(1, n_2))) for n_2 in (358, 357))
    assert here is not None
    assert less is not None
    assert (here.status, less.status, here.n) == ("FAILS", "OPEN", 12_242)
    assert V.judge(two, SeqComp(L=2, m=34, branching=(358,))) is None


LARGER = {"h_1": (2, 40), "h_2": (2, 40)} | {f"sigma_{i}": (0, 3, 160) for i in range(3)}


def _best(sizes: Sizes) -> Parameters:
    found = V.shortest(sizes, 3)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), LARGER.items())
def test_larger_sizes_never_fail_sooner(name: str, values: Sequence[int]) -> None:
    """Parameters that show failure with larger caches show it with smaller ones, so the shortest
    prompt cannot fall.
    """
    base = {"h_1": 40, "h_2": 40, "sigma_0": 3, "sigma_1": 3, "sigma_2": 3}
    lengths = [_best(five(**(base | {name: value}))).length() for value in values]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("h", "sigma"),
    [
        (10**5, (0, 0, 0)),
        pytest.param(10**5, (10**7, 0, 0), marks=pytest.mark.slow),
        (10**6, (0, 10**7, 10**9)),
        pytest.param(10**6, (10**9, 0, 10**7), marks=pytest.mark.slow),
        pytest.param(10**6, (10**7, 10**7, 10**7), marks=pytest.mark.slow),
        pytest.param(10**6, (10**9, 10**9, 10**9), marks=pytest.mark.slow),
    ],
)
def test_at_the_sizes_of_language_models(h: int, sigma: tuple[int, int, int]) -> None:
    sizes = five(h, h, *sigma)
    found = _best(sizes)
    assert holds(V, found, sizes)
    assert not holds(V, replace(found, n_2=found.n_2 - 1), sizes)


@pytest.mark.slow
def test_the_search_beats_parameters_chosen_by_hand() -> None:
    """h = 10^5, sigma = 10^7 everywhere. q = 10^9 of N_1 = 10^30 gives u_0 = floor(10^7 /
    log2(10^30 / (10^9 - 1))) = floor(143,347.62); half of each block and 10^8 of 10^17 places are
    given away; g h_1 = E / n_1 = 10^11 against y log2(10/6) = 2.5 * 10^11, and n_2 outweighs 10^44.
    """
    sizes = five(10**5, 10**5, 10**7, 10**7, 10**7)
    m = 10**17
    by_hand = Parameters(
        m=m,
        n_1=10**13,
        n_2=10**34,
        X=m - 10**8,
        t=10**16,
        beta=290_000,
        q=10**9,
        r=6 * 10**8,
        g=10**6,
        u_0=143_347,
    )
    assert holds(V, by_hand, sizes)
    assert _best(sizes).length() <= by_hand.length()


@pytest.mark.parametrize(
    "sizes", [pytest.param(five(1, 1, 1, 0, 0), marks=pytest.mark.slow), five(1, 1, 0, 1, 1)]
)
def test_at_a_fixed_size_by_brute_force(sizes: Sizes) -> None:
    for m, n_1, n_2 in product((2, 3), (1, 2), (3, 5)):
        known = any(holds(V, trial, sizes) for trial in _every(m, n_1, n_2))
        found = V.best_at(sizes, SeqComp(L=3, m=m, branching=(n_1, n_2)))
        assert (found is not None) is known, (m, n_1, n_2)
        assert found is None or (found.size == (m, n_1, n_2) and holds(V, found, sizes))


def _every(m: int, n_1: int, n_2: int) -> Iterator[Parameters]:
    """Every choice of the proof's parameters at a task size."""
    for X, t, beta, q, g in product(*(range(1, top + 1) for top in (m, m, m, n_1 * m, n_2))):
        for r, u_0 in product(range(2, q + 1), range(beta)):
            if X - -(-m // beta) * u_0 >= 1:
                yield Parameters(m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0)


def test_a_card_names_the_smallest_n_of_any_theorem() -> None:
    for spec in (
        "gdn + full @ heads=1, head_dim=4",
        "window(size=16) + full @ heads=1, head_dim=4",
        "loglinear + full @ heads=1, head_dim=2",
        "full*2 @ heads=1, head_dim=4",
    ):
        stack = Architecture.parse(spec)
        line = next(line for line in composition(stack, 1 << 12) if line.n or line.bound)
        steps = line.steps[1]
        asked = SeqComp(L=steps, m=2, branching=(1,) * (steps - 1))
        failing = [theorem for theorem in THEOREMS.values() if theorem.fails_at_once()]
        said = [said_by(theorem, stack, asked) for theorem in failing]
        least = min(found.n for found in said if found is not None and found.n is not None)
        assert least == (line.n if line.bound is None else line.bound.n), spec
