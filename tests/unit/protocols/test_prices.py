"""Prices and conditions of the adversaries of Theorems VI and VII: against the theorems' own, term
by term, and against brute force.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from adversaries.many_readings import ManyReadingsSizes
from adversaries.prices import Choice, Prices, fewer_than
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.theory.arguments import Sizes
from separatrix.theory.fails import many_proof as many_prices


@st.composite
def sized(draw: st.DrawFn) -> Prices:
    """Sizes whose numbers of values are powers of two, so that bits are whole."""
    small = st.integers(1, 3)
    L = draw(st.integers(3, 6))
    shift = draw(st.integers(0, 1))
    G = draw(st.integers(1, 3))
    bits = st.integers(0, 3)
    m = G * draw(st.integers(2, 4))
    t = draw(st.integers(1, m))
    x = draw(st.integers(1, t))
    branching = [draw(small) for _ in range(L - 1)]
    branching[1] *= G
    caches = [2 ** draw(bits) for _ in range(L + shift)]
    if shift:
        caches[0] = 1
    sizes = ManyReadingsSizes(
        m=m,
        branching=tuple(branching),
        t=t,
        reads=tuple(2 ** draw(bits) for _ in range(L - 1 + shift)),
        caches=tuple(caches),
    )
    contents = tuple(draw(small) for _ in range(1, L))
    flags = tuple(draw(st.integers(0, 1)) for _ in range(1, L))
    return Prices(sizes, Choice(G=G, x=x, contents=contents, flags=flags))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(sized())
def test_prices_are_those_of_the_theorems(own: Prices) -> None:
    sizes = own.sizes
    choice = own.choice
    bits = [value.bit_length() - 1 for value in (*sizes.reads, *sizes.caches)]
    theirs = many_prices.prices(
        sizes.shift,
        Sizes(h=tuple(bits[: sizes.R]), sigma=tuple(bits[sizes.R :]), opened=(0,) * sizes.R),
        many_prices.Choice(
            m=sizes.m,
            n=sizes.branching,
            part=own.m_,
            G=choice.G,
            g=own.g,
            t=sizes.t,
            x=choice.x,
            contents=choice.contents,
            flags=choice.flags,
        ),
    )
    totals = [own.values(own.total(level)) for level in range(2, sizes.L + 1)]
    assert [2**price for price in theirs] == totals


@each("bins, balls", [(1, 1), (2, 3), (3, 2), (3, 4), (4, 4)])
def test_occupancy_by_brute_force(bins: int, balls: int) -> None:
    drawn = [len(set(hits)) for hits in product(range(bins), repeat=balls)]
    for y in range(1, bins + 2):
        share = Fraction(sum(hit < y for hit in drawn), len(drawn))
        assert fewer_than(y, bins, balls) == share
