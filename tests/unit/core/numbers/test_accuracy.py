"""The highest accuracy of theory.md, section 9, against brute force over all encoders and decoders,
against looser bounds, and against storing facts; the luck of a measurement against exact tails.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice, permutations, product
from math import comb, log, log2, sqrt

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.accuracy import (
    WHOLE,
    facts_that_fit,
    highest_accuracy,
    luck,
    percent,
    stored_accuracy,
)
from separatrix.core.numbers.binomials import Arrangements
from separatrix.core.numbers.counts import Count, Power


def ceiling(N: int, V: int, bits: int, *, different: bool = False) -> int:
    contents: Count = Arrangements(V, N) if different else Power(V, N)
    return highest_accuracy(contents, N, V, bits)


def divergence(a: float, c: float) -> float:
    """D(a || c) in bits, by its definition."""
    return sum(p * log2(p / q) for p, q in ((a, c), (1 - a, 1 - c)) if p)


def solved(N: int, V: int, bits: float) -> float:
    """The largest a in [1/V, 1] with N D(a || 1/V) <= bits, by halving, in floats."""
    low, high = 1 / V, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if N * divergence(middle, 1 / V) <= bits else (low, middle)
    return low


@pytest.mark.parametrize(
    ("N", "V", "bits", "shown"),
    [
        (10_000_000, 256_000, 137_904_128, "80.7 %"),  # recurrentgemma-2b: the example
        (7_675_931, 256_000, 137_904_128, "100 %"),  # the most facts that fit (ux.md)
    ],
)
def test_published_figures(N: int, V: int, bits: int, shown: str) -> None:
    assert percent(ceiling(N, V, bits)) == shown


@each("V", [2, 3, 7, 256, 4096, 65_537])
@each("N", [1, 2, 17, 1000, 10**9])
def test_it_solves_the_inequality_rounded_up(N: int, V: int) -> None:
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        bits = int(share * N * log2(V))
        found = ceiling(N, V, bits)
        exact = solved(N, V, bits) * WHOLE
        # floats are good to far less than a millionth here
        assert exact - 1e-3 <= found <= exact + 1 + 1e-3, (bits, found, exact)


def test_with_no_bits_it_is_a_guess_and_with_all_of_them_one() -> None:
    for V in (2, 3, 7, 1000):
        # rounded up, and one more where the comparison is a tie
        assert 0 <= ceiling(100, V, 0) - WHOLE / V <= 1
        assert ceiling(64, V, 64 * V.bit_length()) == WHOLE
    # 2^(2 * 50) = 4^50: a tie, which integers decide
    assert ceiling(50, 4, 100) == WHOLE
    assert ceiling(50, 4, 99) < WHOLE


def test_where_all_facts_differ() -> None:
    """theory.md: delta is 0.71 bits of 768 at V = 4,096, N = 64, and at most 1.44 N."""
    delta = 64 * 12 - float(Arrangements(4096, 64).log2_ball())
    assert round(delta, 2) == 0.71
    for N, V in ((2, 3), (10, 11), (64, 64), (5000, 5003), (6000, 10**9)):
        delta = N * log2(V) - float(Arrangements(V, N).log2_ball())
        assert 0 < delta < 1.4427 * N
        assert Arrangements(V, N).exact() == np.prod([V - i for i in range(N)], dtype=object)
        bits = int(0.4 * N * log2(V))
        exact = min(1.0, solved(N, V, bits + delta)) * WHOLE
        assert exact - 1e-2 <= ceiling(N, V, bits, different=True) <= exact + 1.01
    with pytest.raises(SizeError, match="different things"):
        Arrangements(3, 4)


def test_without_delta_the_bound_would_be_false() -> None:
    """theory.md: N = 2 different facts of V = 3 values are stored whole in log2 6 bits, where the
    bound of independent ones would be 0.958. With whole bits: 6 lists fit in 3 bits, 9 do not.
    """
    assert round(solved(2, 3, log2(6)), 3) == 0.958
    assert best(2, 3, 6, different=True) == 1
    assert best(2, 3, 8, different=True) == 1
    assert ceiling(2, 3, 3) < WHOLE
    assert ceiling(2, 3, 3, different=True) == WHOLE


def best(N: int, V: int, caches: int, *, different: bool = False) -> Fraction:
    """The highest accuracy of all encoders into so many caches and all decoders: a decoder's
    answers after a cache are a list, and the best encoder takes the list that agrees most.
    """
    lists = list(product(range(V), repeat=N))
    prompts = list(permutations(range(V), N)) if different else lists
    agree = (np.array(prompts)[:, None] == np.array(lists)[None]).sum(2)
    if caches >= len(prompts):
        return Fraction(1)
    # relabelling the values at a place changes nothing where facts are independent
    first = () if different else (0,)
    rest = range(0 if different else 1, len(lists))
    top = 0
    choices = combinations(rest, caches - len(first))
    while block := list(islice(choices, 2000)):
        chosen = np.array([(*first, *more) for more in block])
        top = max(top, int(agree[:, chosen].max(2).sum(0).max()))
    return Fraction(top, N * len(prompts))


SIZES = [
    *((N, 2, C) for N in (2, 3, 4, 5) for C in (0, 1)),
    *((3, 2, 2), (4, 2, 2), (5, 2, 2)),
    *((N, V, C) for N, V in ((2, 3), (2, 4), (2, 5), (3, 3)) for C in (0, 1)),
    *((2, 3, 2), (2, 4, 2), (3, 3, 2), (1, 8, 1), (1, 8, 2), (2, 6, 1), (3, 4, 1)),
    *((6, 2, 1), (7, 2, 1), (4, 3, 1), (5, 3, 1), (3, 5, 1), (2, 3, 3), (4, 2, 3), (2, 8, 1)),
]


@each("N, V, C", SIZES)
def test_no_encoder_and_decoder_beat_it(N: int, V: int, C: int) -> None:
    for different in (False, *([True] if V > N and N * V <= 12 else [])):
        reached = best(N, V, 1 << C, different=different)
        bound = Fraction(ceiling(N, V, C, different=different), WHOLE)
        assert reached <= bound
        # what storing facts reaches, they reach too
        assert reached >= Fraction(stored_accuracy(N, V, C), WHOLE)
        if N > 1 and V <= 5 and C in (1, 2) and not different:
            assert 0.62 < reached / bound < 0.94  # theory.md
        if C == 0:
            assert reached == Fraction(1, V)


@each("V", [2, 3, 10, 1024, 65_536])
@each("N", [1, 10, 1000, 10**7])
def test_looser_bounds_are_looser(N: int, V: int) -> None:
    """Pinsker's and Fano's inequalities (theory.md, section 9), which need no search."""
    for share in (0.01, 0.2, 0.7, 0.99):
        bits = int(share * N * log2(V))
        found = ceiling(N, V, bits) - 1  # rounded down
        assert found <= WHOLE * (1 / V + sqrt(bits * log(2) / (2 * N)))
        assert found <= WHOLE * (bits / N + 1) / log2(V)


@pytest.mark.parametrize("V", [2, 3, 4, 6, 7, 8, 9, 50, 1024, 50_000, 65_536])
def test_storing_facts_comes_near(V: int) -> None:
    """theory.md: within 0.21 of the ceiling for V = 2 to 2^16 (0.2134 at V = 6), within 0.10 from
    1,024 on.
    """
    N = 10**6
    gaps: list[int] = []
    for part in range(1, 100, 2):
        bits = int(part * N * log2(V)) // 100
        gaps.append(ceiling(N, V, bits) - stored_accuracy(N, V, bits))
    assert min(gaps) >= 0
    assert max(gaps) <= (100_000 if V >= 1024 else 213_500)


def test_how_many_facts_fit() -> None:
    assert facts_that_fit(256_000, 137_904_128) == 7_675_931  # ux.md
    for V in (2, 3, 4, 6, 8, 1000, 1024):
        for bits in (*range(40), 1000, 1024):
            s = facts_that_fit(V, bits)
            assert V**s <= 2**bits < V ** (s + 1)
    # 3 bits hold one fact of 4 values; the other two of three are guessed
    assert stored_accuracy(3, 4, 3) == 10**6 * (1 + 2 / 4) // 3
    assert stored_accuracy(3, 4, 6) == WHOLE == stored_accuracy(3, 4, 600)


@each("total", [1, 20, 300])
@each("highest", [1, 31_250, 500_000, 900_000])
def test_luck_never_overstates(total: int, highest: int) -> None:
    """Against the exact tail of the binomial distribution."""
    p = Fraction(highest, WHOLE)
    for correct in range(0, total + 1, max(1, total // 8)):
        bits = luck(correct, total, highest)
        tail = sum(
            (comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(correct, total + 1)),
            Fraction(0),
        )
        assert tail <= Fraction(1, 2**bits)
        if correct > 2 * total * p:
            # Chernoff is off by less than the number of terms, squared
            exact = log2(tail.denominator) - log2(tail.numerator)
            assert bits > exact - 2 * log2(total + 1) - 1
        if correct <= total * p:
            assert bits == 0


@each(
    "millionths, up, down",
    [
        (806_987, "80.7 %", "80.6 %"),
        (WHOLE, "100 %", "100 %"),
        (999_999, "99.9999 %", "99.9 %"),
        (999_001, "99.91 %", "99.9 %"),
        (250_000, "25.0 %", "25.0 %"),
        (18_520, "1.86 %", "1.85 %"),
        (56, "0.006 %", "0.005 %"),
        (1, "0.001 %", "0.0001 %"),
        (0, "0 %", "0 %"),
    ],
)
def test_percent(millionths: int, up: str, down: str) -> None:
    assert percent(millionths) == up
    assert percent(millionths, up=False) == down


def test_sizes_that_are_none() -> None:
    for N, V, bits in ((0, 2, 1), (1, 1, 1), (1, 2, -1)):
        with pytest.raises(SizeError, match="need at least 1 fact"):
            highest_accuracy(Power(2, 1), N, V, bits)
    for correct, total, highest in ((2, 1, 5), (-1, 1, 5), (0, 0, 5), (0, 1, 0), (0, 1, WHOLE + 1)):
        with pytest.raises(SizeError, match="right of"):
            luck(correct, total, highest)


def test_bits_that_meet_the_bound_but_for_less_than_one_are_told_apart() -> None:
    # 10^30 (1 - h(3/4)) = 10^30 (3/4 log2 3 - 1) = 188,721,875,540,867,136,090,304,207,960.86...
    bits = 188_721_875_540_867_136_090_304_207_960
    assert ceiling(10**30, 2, bits) == 750_000
    assert ceiling(10**30, 2, bits + 1) == 750_001
