"""Bits, counts and certified comparisons, against Python's own big integers and `math.comb`."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SizeError, SpecError, Undecided
from separatrix.core.numbers.binomials import Binomial, BinomialSum
from separatrix.core.numbers.bits import Bits, sum_bits
from separatrix.core.numbers.counts import (
    AlternatePowers,
    Count,
    Exact,
    OneMoreThanPower,
    Power,
    Product,
    Sum,
)
from separatrix.core.numbers.formats import NumberFormat
from separatrix.core.numbers.logs import EXACT_BITS, LogSign, log_difference

SIZES = st.integers(0, 10**30)
BITS = st.lists(st.tuples(SIZES, st.integers(0, 4096)), max_size=5).map(
    lambda parts: sum_bits(Bits.of(n, w) for n, w in parts)
)


def sign(x: int | Fraction) -> int:
    return (x > 0) - (x < 0)


@given(SIZES, st.integers(0, 4096))
def test_bits_multiply_out(numbers: int, width: int) -> None:
    made = Bits.of(numbers, width)
    assert made.total == numbers * width
    assert made.numbers == (numbers if width else 0)


@given(BITS, BITS, BITS)
def test_bits_add_like_integers(a: Bits, b: Bits, c: Bits) -> None:
    assert (a + b).total == a.total + b.total
    assert (a + b).numbers == a.numbers + b.numbers
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Bits() == a
    assert sum_bits([a, b, c]).total == a.total + b.total + c.total


@given(BITS, BITS)
def test_bits_compare_by_their_total(a: Bits, b: Bits) -> None:
    assert (a == b) == (a.total == b.total)
    assert (a < b) == (a.total < b.total)
    assert (a >= b) == (a.total >= b.total)
    if a == b:
        assert hash(a) == hash(b)


@given(BITS, st.integers(0, 10**6))
def test_bits_times_an_integer(a: Bits, times: int) -> None:
    assert (a * times).total == a.total * times


def test_bits_of_equal_total_and_other_parts_are_equal() -> None:
    assert Bits.of(2, 16) == Bits.of(1, 32) != Bits.of(1, 31)
    assert Bits.of(1, 31) != 31


def test_bits_merge_equal_widths() -> None:
    assert (Bits.of(3, 16) + Bits.of(4, 16) + Bits.of(1, 32)).parts == ((7, 16), (1, 32))
    assert str(Bits.of(1000, 16) + Bits.of(2, 32)) == "1,000 x 16 bits + 2 x 32 bits"
    assert str(Bits()) == "0 bits"


@pytest.mark.parametrize(("numbers", "width"), [(-1, 8), (8, -1), (-1, -1)])
def test_negative_bits_are_refused(numbers: int, width: int) -> None:
    with pytest.raises(SizeError, match=f"{numbers} numbers of {width} bits"):
        Bits.of(numbers, width)


@each(
    "name, bits",
    [
        ("fp64", 64),
        ("fp32", 32),
        ("bf16", 16),
        ("fp16", 16),
        ("fp8", 8),
        ("int8", 8),
        ("int4", 4),
        ("p1", 1),
        ("p17", 17),
        ("p4096", 4096),
    ],
)
def test_number_formats(name: str, bits: int) -> None:
    assert NumberFormat(name).bits == bits
    assert str(NumberFormat(name)) == name


@each(
    "name",
    [
        "",
        "p",
        "p0",
        "p01",
        "p4097",
        "p99999",
        "fp12",
        "P8",
        " p8",
        "p8 ",
        "p-1",
        "p8\n",
        "float32",
        "p١",
    ],
)
def test_names_that_are_no_format(name: str) -> None:
    with pytest.raises(SpecError, match="unknown number format"):
        NumberFormat(name)


TERMS = st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 60)), max_size=5)


@settings(max_examples=500, deadline=None)
@given(TERMS, st.integers(-80, 80))
def test_log_difference_against_fractions(terms: list[tuple[int, int]], bits: int) -> None:
    found = log_difference(terms, bits)
    assert found.sign == sign(
        prod((Fraction(x) ** c for c, x in terms), start=Fraction(1)) - Fraction(2) ** bits
    )
    assert found.positive == (found.sign > 0)


def test_log_difference_of_ties_is_zero() -> None:
    for terms, bits in [
        ([], 0),
        ([(1, 8)], 3),
        ([(2, 6), (-2, 3)], 2),
        ([(5, 4), (-5, 2)], 5),
        ([(-1, 8)], -3),
        ([(0, 7), (3, 1)], 0),
    ]:
        assert log_difference(terms, bits).sign == 0
        assert log_difference(terms, bits + 1).sign == -1
        assert log_difference(terms, bits - 1).sign == 1


@pytest.mark.parametrize("scale", [EXACT_BITS, 10 * EXACT_BITS, 10**6])
def test_log_difference_of_large_ties_and_neighbours(scale: int) -> None:
    """2^scale against itself, and against its neighbours: beyond any float and beyond the first
    precisions of ball arithmetic.
    """
    assert log_difference([(scale, 6), (-scale, 3)], scale).sign == 0
    assert log_difference([(1, 2**scale + 1)], scale).sign == 1
    assert log_difference([(1, 2**scale - 1)], scale).sign == -1
    assert log_difference([(1, 3**scale + 1), (-scale, 3)], 0).sign == 1


def test_log_difference_of_powers_nobody_could_write() -> None:
    """log2 3 lies between its convergents 1054/665 and 24727/15601 scaled up: both signs, at
    exponents of 10^30.
    """
    assert log_difference([(665 * 10**30, 3)], 1054 * 10**30).sign == sign(3**665 - 2**1054)
    assert log_difference([(15601 * 10**30, 3)], 24727 * 10**30).sign == sign(3**15601 - 2**24727)
    assert {sign(3**665 - 2**1054), sign(3**15601 - 2**24727)} == {-1, 1}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-4000, 4000), st.integers(2, 10**6)), min_size=1, max_size=3),
    st.integers(-3, 3),
)
def test_log_difference_beyond_the_exact_limit(terms: list[tuple[int, int]], off: int) -> None:
    """Large exponents, with `bits` set next to the true value."""
    numerator = prod(x**c for c, x in terms if c > 0)
    denominator = prod(x**-c for c, x in terms if c < 0)
    bits = numerator.bit_length() - denominator.bit_length() + off
    left, right = (
        (numerator, denominator << bits) if bits >= 0 else (numerator << -bits, denominator)
    )
    assert log_difference(terms, bits).sign == sign(left - right)


def test_ties_too_large_to_write_are_decided_where_odd_parts_cancel_and_never_guessed() -> None:
    with pytest.raises(Undecided, match="16384 bits"):
        log_difference([(2**60, 9), (-(2**61), 3)], 0)
    assert log_difference([(2**60, 6), (-(2**60), 3)], 2**60).sign == 0
    assert Power(2, 2**60).compare_bits(2**60).sign == 0
    assert Power(2, 2**60).exceeds_bits(2**60 - 1)


def test_log_difference_encloses_the_value() -> None:
    assert log_difference([(1, 3)], 1).difference.startswith("[0.58496250")
    assert log_difference([(10**6, 3)], 0).difference.startswith("[1584962.500")
    assert log_difference([(1, 3)], 1).method == "integers"
    assert log_difference([(10**6, 3)], 0).method == "balls"


@pytest.mark.parametrize("x", [0, -3])
def test_logarithms_of_non_positive_integers_are_refused(x: int) -> None:
    with pytest.raises(SizeError, match=rf"\(1, {x}\)"):
        log_difference([(1, x)], 0)


SIMPLE = (
    st.integers(1, 10**40).map(Exact)
    | st.builds(Power, st.integers(1, 10**6), st.integers(0, 300))
    | st.integers(0, 400).flatmap(lambda n: st.integers(0, n).map(lambda k: Binomial(n, k)))
)
BINOMIAL_SUMS = st.builds(
    lambda upper, share, base: BinomialSum(upper, 1 + share % upper, base),
    st.integers(1, 120),
    st.integers(0, 10**6),
    st.integers(1, 300),
)
COUNTS = (
    SIMPLE
    | BINOMIAL_SUMS
    | st.lists(st.tuples(st.integers(1, 99), SIMPLE | BINOMIAL_SUMS), min_size=1, max_size=4).map(
        lambda t: Sum(tuple(t))
    )
)


def by_hand(count: Count) -> int:
    match count:
        case Exact(value=value):
            return value
        case Power(base=base, exponent=exponent):
            return base**exponent
        case Binomial(upper=upper, lower=lower):
            return comb(upper, lower)
        case BinomialSum(upper=upper, last=last, base=base):
            return sum(comb(upper, j) * base**j for j in range(1, last + 1))
        case Sum(terms=terms):
            return sum(times * by_hand(term) for times, term in terms)
    raise AssertionError(count)


@settings(max_examples=300, deadline=None)
@given(COUNTS, st.integers(-2, 2))
def test_counts_compare_with_powers_of_two(count: Count, off: int) -> None:
    value = by_hand(count)
    assert count.exact() == value
    bits = max(0, value.bit_length() + off)
    assert count.compare_bits(bits).sign == sign(value - 2**bits)
    assert count.exceeds_bits(bits) == (value > 2**bits)
    assert count.ceil_log2() == (value - 1).bit_length()


@each(
    "count, bits, expected",
    [
        (Power(2, 20_000), 20_000, 0),
        (Power(2, 20_000), 19_999, 1),
        (Power(2, 20_000), 20_001, -1),
        (Power(4, 10**6), 2 * 10**6, 0),
        (Power(3, 665 * 10**20), 1054 * 10**20, sign(3**665 - 2**1054)),
        (Exact(2**20_000 + 1), 20_000, 1),
        (Exact(2**20_000 - 1), 20_000, -1),
        (Exact(1), 0, 0),
        (Power(1, 10**9), 0, 0),
        (Binomial(10, 0), 0, 0),
        (Binomial(5000, 5000), 0, 0),
    ],
)
def test_large_counts_against_powers_of_two(count: Count, bits: int, expected: int) -> None:
    assert count.compare_bits(bits).sign == expected


@each(
    "upper, lower",
    [(20_000, 10_000), (20_000, 5000), (100_000, 4097), (100_000, 4096), (12_345, 6000)],
)
def test_large_binomials_against_comb(upper: int, lower: int) -> None:
    count = Binomial(upper, lower)
    value = comb(upper, lower)
    assert count.exact() == value
    assert count.ceil_log2() == (value - 1).bit_length()
    for bits in (value.bit_length() - 1, value.bit_length()):
        assert count.compare_bits(bits).sign == sign(value - 2**bits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("upper", "last", "base"),
    [
        (3000, 1, 7),
        (3000, 40, 1),
        (3000, 1500, 1),
        (3000, 2999, 1),
        (3000, 3000, 5),
        (3000, 2000, 256),
        (3000, 2990, 256),
    ],
)
def test_large_sums_of_binomials_against_comb(upper: int, last: int, base: int) -> None:
    count = BinomialSum(upper, last, base)
    value = by_hand(count)
    assert count.exact() == value
    assert count.ceil_log2() == (value - 1).bit_length()
    for bits in (value.bit_length() - 1, value.bit_length()):
        assert count.compare_bits(bits).sign == sign(value - 2**bits)


@each("upper, last, base", [(5, 0, 1), (5, 6, 1), (5, 2, 0), (0, 0, 1)])
def test_sums_of_binomials_of_no_size(upper: int, last: int, base: int) -> None:
    with pytest.raises(SizeError):
        BinomialSum(upper, last, base)


def test_binomials_too_large_to_write() -> None:
    """binomial(2n, n) lies between 4^n/(2n+1) and 4^n."""
    n = 10**15
    count = Binomial(2 * n, n)
    assert not count.exceeds_bits(2 * n)
    assert count.exceeds_bits(2 * n - (2 * n + 1).bit_length())
    assert count.ceil_log2() <= 2 * n


@pytest.mark.parametrize("terms", [(), ((0, Exact(3)),), ((1, Exact(3)), (-1, Exact(2)))])
def test_sums_of_no_or_negative_terms(terms: tuple[tuple[int, Count], ...]) -> None:
    with pytest.raises(SizeError):
        Sum(terms)


def test_counts_in_words() -> None:
    assert str(Power(10**4, 5)) == "10,000^5"
    assert str(Binomial(1000, 2)) == "binomial(1,000, 2)"
    assert (str(Exact(1234)), str(Exact(1234, "n + 1"))) == ("1,234", "n + 1")
    assert float(Power(3, 100).log2_str()) == pytest.approx(100 * math.log2(3), rel=1e-7)


def test_log_sign() -> None:
    assert LogSign(1, "integers", "1").positive
    assert not LogSign(0, "integers", "0").positive
    assert not LogSign(-1, "balls", "-1").positive


@each("plus", [0, 1])
@each("base, last", [(1, 0), (1, 5), (2, 0), (2, 1), (2, 6), (3, 5), (7, 4), (2, 3000), (5, 1001)])
def test_alternate_powers_added_up(base: int, last: int, plus: int) -> None:
    value = plus + sum(base**j for j in range(last % 2, last + 1, 2))
    count = AlternatePowers(base, last, plus)
    assert count.exact() == value
    for bits in (value.bit_length() - 2, value.bit_length() - 1, value.bit_length()):
        if bits >= 0:
            assert count.exceeds_bits(bits) == (value > 1 << bits)


@each("exponent", [1, 2, 63, 64, 5000])
def test_one_more_than_a_power_of_two(exponent: int) -> None:
    count = OneMoreThanPower(exponent)
    assert count.exact() == 2**exponent + 1
    assert [count.exceeds_bits(bits) for bits in (exponent - 1, exponent, exponent + 1)] == [
        True,
        True,
        False,
    ]


def test_counts_of_no_size() -> None:
    for make in (
        lambda: AlternatePowers(0, 3),
        lambda: AlternatePowers(2, -1),
        lambda: OneMoreThanPower(0),
        lambda: Product(()),
    ):
        with pytest.raises(SizeError):
            make()
