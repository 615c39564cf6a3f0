"""Logarithms and exponentials of the searches: against balls of 200 bits."""

from __future__ import annotations

from math import inf

from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from support.each import each

from separatrix.theory.search.reals import dot, exp, expm1, ln, log1p, log2


def near(found: float, exact: arb, relative: float = 1e-15) -> bool:
    """Whether a float is a ball but for its last digits."""
    return bool(abs(arb(found) - exact) <= relative * abs(exact) + arb(1e-300))


@given(st.floats(1e-300, 1e300))
def test_logarithms(x: float) -> None:
    with ctx.workprec(200):
        exact = arb(x).log()
        # near 1 two logarithms cancel, and what is left has their last digits
        assert near(ln(x), exact) or abs(ln(x) - float(exact)) < 2e-16
        bits = exact / arb.const_log2()
        assert near(log2(x), bits, 3e-15) or abs(log2(x) - float(bits)) < 4e-16


@given(st.floats(-700, 700))
def test_exponentials(x: float) -> None:
    with ctx.workprec(200):
        assert near(exp(x), arb(x).exp())
        assert near(expm1(x), arb(x).expm1(), 3e-15)


@given(st.floats(-0.999, 1e9))
def test_logarithms_of_1_and_a_little(x: float) -> None:
    with ctx.workprec(200):
        assert near(log1p(x), arb(x).log1p(), 3e-15)


@each("power", [1, 60, 1_000, 40_000])
def test_integers_beyond_floats(power: int) -> None:
    with ctx.workprec(200):
        assert near(ln(7**power), arb(7).log() * power)


def test_the_ends() -> None:
    assert (ln(0.0), ln(-1.0), ln(0), ln(inf)) == (-inf, -inf, -inf, inf)
    assert (exp(1000.0), exp(-1000.0), expm1(1e300), expm1(-1e300)) == (inf, 0.0, inf, -1.0)
    assert (ln(1.0), exp(0.0), expm1(0.0), log1p(0.0)) == (0.0, 1.0, 0.0, 0.0)
    assert dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0]) == 0.0
