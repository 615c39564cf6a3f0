"""The two inequalities behind Theorems III, IV and V: exact and in floats they say the same, and
what they are solved for is the last that holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf, log, prod
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.depth_sizes import five, four, three
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.theory.arguments import (
    Counting,
    Numbers,
    Pigeonhole,
    ProofParameters,
    Refuted,
    Sizes,
    ceil_ratio,
    certainly,
    smaller,
)
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v
from separatrix.theory.search.driver import CountingTheorem

BITS = st.one_of(st.just(0), st.integers(1, 60), st.integers(61, 10**6))


def one_of(top: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(1, min(top, 40)), st.integers(1, top))


def _floats(*values: int) -> list[float]:
    return [float(value) for value in values]


def _in_floats(argument: CountingTheorem[Any], p: ProofParameters, s: Sizes) -> list[Any]:
    x = Numbers(**s.numbers, **{name: float(value) for name, value in p.numbers.items()})
    argument.complete(x)
    return [*argument.before(x).values(), argument.counting(x)]


def _agree(exact: Collection[Any], floats: Sequence[Any]) -> None:
    """Every inequality has the certified sign as floats too, unless it is close to a tie."""
    assert len(exact) == len(floats)
    for certified, near in zip(exact, floats, strict=True):
        if isinstance(certified, Counting):
            left, right = near.left(), near.right()
        elif certified.kept == 1:
            left, right = inf, 0.0
        else:
            left, right = near.places, near.places_needed()
        if abs(left - right) > 1e-9 * (1 + abs(right)):
            assert certified.sign().positive is (left > right)


@st.composite
def parameters_iii(draw: st.DrawFn) -> tuple[iii.Parameters, Sizes]:
    m = draw(one_of(10**6))
    p = iii.Parameters(
        m=m, n_1=draw(one_of(10**4)), r=draw(st.integers(1, m)), t=draw(st.integers(1, m))
    )
    return p, three(*draw(st.tuples(one_of(300), BITS, BITS, BITS)))


@given(parameters_iii())
def test_theorem_iii_exact_and_in_floats(
    drawn: tuple[iii.Parameters, Sizes],
) -> None:
    p, s = drawn
    exact = [*iii.TheoremIII().inequalities(s, p).values()]
    _agree(exact, _in_floats(iii.TheoremIII(), p, s))


@st.composite
def parameters_iv(draw: st.DrawFn) -> tuple[iv.Parameters, Sizes]:
    m = draw(st.integers(2, 10**6))
    n_1 = draw(one_of(10**6))
    q = draw(st.integers(2, m))
    p = iv.Parameters(
        m=m,
        n_1=n_1,
        r=draw(st.integers(2, q)),
        q=q,
        t=draw(st.integers(1, m)),
        g=draw(st.integers(1, n_1)),
    )
    return p, four(*draw(st.tuples(one_of(300), one_of(300), BITS, BITS, BITS)))


@given(parameters_iv())
def test_theorem_iv_exact_and_in_floats(drawn: tuple[iv.Parameters, Sizes]) -> None:
    p, s = drawn
    _agree(iv.TheoremIV().inequalities(s, p).values(), _in_floats(iv.TheoremIV(), p, s))


@st.composite
def parameters_v(draw: st.DrawFn) -> tuple[v.Parameters, Sizes]:
    m = draw(st.integers(2, 10**5))
    n_1 = draw(one_of(10**3))
    n_2 = draw(one_of(10**6))
    beta = draw(st.integers(1, m))
    q = draw(st.integers(2, n_1 * m))
    try:
        p = v.Parameters(
            m=m,
            n_1=n_1,
            n_2=n_2,
            X=draw(st.integers(max(1, m // 2), m)),
            t=draw(st.integers(1, m)),
            beta=beta,
            q=q,
            r=draw(st.integers(2, q)),
            g=draw(st.integers(1, n_2)),
            u_0=draw(st.integers(0, (beta - 1) // 4)),
        )
    except SizeError:
        assume(False)
        raise
    return p, five(*draw(st.tuples(one_of(300), one_of(300), *[BITS] * 5)))


@given(parameters_v())
def test_theorem_v_exact_and_in_floats(drawn: tuple[v.Parameters, Sizes]) -> None:
    p, s = drawn
    _agree(v.TheoremV().inequalities(s, p).values(), _in_floats(v.TheoremV(), p, s))


@pytest.mark.slow
@given(one_of(10**9), BITS, st.data())
def test_the_fewest_places_are_the_fewest(values: int, bits: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(1, values))
    hole = Pigeonhole(places=1, values=values, kept=kept, bits=bits)
    places = hole.certified_places()
    assert places is not None
    assert certainly(replace(hole, places=places))
    assert kept == 1 or places == 1 or not certainly(replace(hole, places=places - 1))


@given(st.integers(1, 10**6), st.integers(2, 10**9), BITS)
def test_the_most_contents_are_the_most(places: int, values: int, bits: int) -> None:
    hole = Pigeonhole(places=places, values=values, kept=2, bits=bits)
    kept = hole.certified_kept()
    if kept is None:
        assert not certainly(hole)
        return
    assert certainly(replace(hole, kept=kept))
    assert kept == values or not certainly(replace(hole, kept=kept + 1))
    near = Pigeonhole(*_floats(places, values, 2), bits=bits)
    assert abs(near.most_kept() - kept) <= 1 + 1e-9 * kept


def test_values_next_to_each_other_keep_their_difference() -> None:
    """10^30 values, all but 1 kept: t log2(10^30 / (10^30 - 2)) > 1 first at t = 10^30 ln(2) / 2,
    though both numbers are the same float.
    """
    values = 10**30
    hole = Pigeonhole(places=1, values=values, kept=values - 1, bits=1)
    places = hole.certified_places()
    assert places is not None
    assert abs(places / (values * log(2) / 2) - 1) < 1e-12
    m, kept, gap = _floats(values, values - 1, 1)
    found = Pigeonhole(1.0, m, kept, 1, gap=gap).least_places()
    assert abs(found / places - 1) < 1e-12


@each("sigma", [0, 7])
@each("more", [0, 5])
@each("g", [1, 3, 10])
def test_the_smallest_x_by_trying_all(g: int, more: int, sigma: int) -> None:
    for r, owed in ((2, 40), (5, 900), (9, 4_000)):
        exact = Counting(x=1, r=r, base=6, each=4, owed=owed, g=g, caches=sigma, few=4, more=more)
        expected = next((x for x in range(1, 20_000) if certainly(replace(exact, x=x))), inf)
        one, contents, base, bits, group, few = _floats(1, r, 6, owed, g, 4)
        near = Counting(
            x=one,
            r=contents,
            base=base,
            each=4,
            owed=bits,
            g=group,
            caches=sigma,
            few=few,
            more=more,
        )
        assert near.least(60) == expected


def test_a_value_kept_always_and_ties() -> None:
    assert certainly(Pigeonhole(places=1, values=5, kept=1, bits=10**9))
    tie = Pigeonhole(places=10, values=8, kept=3, bits=20)  # 10 log2(8/2) = 20
    assert not certainly(tie)
    assert certainly(replace(tie, bits=19))
    assert certainly(replace(tie, places=11))


def test_integers_and_floats_round_alike() -> None:
    a = [1, 5, 9, 10, 11, 30]
    assert [ceil_ratio(float(x), 5.0) for x in a] == [ceil_ratio(x, 5) for x in a]
    assert [smaller(float(x), 5.0) for x in a] == [smaller(x, 5) for x in a]


def test_every_theorem_names_its_size_and_length() -> None:
    parameters: list[tuple[ProofParameters, tuple[int, ...], int]] = [
        (iii.Parameters(m=5, n_1=3, r=2, t=1), (5, 3), 5 + 15 + 2),
        (iv.Parameters(m=5, n_1=3, r=2, q=4, t=1, g=2), (5, 3), 5 + 15 + 2),
        (
            v.Parameters(m=5, n_1=3, n_2=4, X=5, t=1, beta=1, q=4, r=2, g=2, u_0=0),
            (5, 3, 4),
            5 + 15 + 60 + 2,
        ),
    ]
    for p, size, n in parameters:
        assert p.size == size
        assert p.length() == p.length(len(size)) == n
        last = prod(size)
        assert p.length(len(size) + 2) == n + 2 * last
        assert p.with_last(7).branching[-1] == 7
        with pytest.raises(SizeError):
            p.with_last(p.least_last - 1)


def test_what_is_refuted_does_not_hold() -> None:
    assert not Refuted("no room").sign().positive
    assert not certainly(Refuted("no room"))
