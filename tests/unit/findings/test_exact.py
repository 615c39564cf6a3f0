"""Exact statistics against small cases by hand and by brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import inf

from separatrix.findings.exact import fisher, holm, interval, sign_flips


def test_an_interval_over_seeds() -> None:
    """All of 8: the low end has p^8 = 1/40, p = 0.63058; of none it is the mirror image."""
    assert interval(8, 8) == (Fraction(6305, 10**4), 1)
    assert interval(0, 8) == (0, Fraction(3695, 10**4))
    # published (Clopper and Pearson, n = 10, 5 of 10): 0.1871 to 0.8129
    low, high = interval(5, 10)
    assert (float(low), float(high)) == (0.187, 0.813) or (
        abs(float(low) - 0.1871) < 2e-4 and abs(float(high) - 0.8129) < 2e-4
    )
    # two of three seeds show next to nothing
    assert interval(2, 3) == (Fraction(942, 10**4), Fraction(9916, 10**4))


def test_eight_of_eight_in_one_direction() -> None:
    """2 of 256 ways."""
    pairs = [(100.0 + n, 200.0 + n) for n in range(8)]
    assert sign_flips(pairs) == (Fraction(1, 128), True)
    assert sign_flips([(two, one) for one, two in pairs]) == (Fraction(1, 128), False)


def test_unsolved_is_later_than_all_and_only_order_counts() -> None:
    assert sign_flips([(100 + n, inf) for n in range(8)]) == (Fraction(1, 128), True)
    assert sign_flips([(inf, inf)] * 8)[0] == 1
    assert sign_flips([(1, 2), (3, 9)]) == sign_flips([(10, 20), (30, 31)])


def test_sign_flips_against_brute_force() -> None:
    pairs = [(3.0, 1.0), (2.0, 5.0), (4.0, 4.0), (9.0, 6.0), (7.0, 1.0)]
    every = sorted(value for pair in pairs for value in pair)
    rank = {v: sum(n for n, w in enumerate(every) if w == v) / every.count(v) for v in every}
    differences = [rank[one] - rank[other] for one, other in pairs]
    least = abs(sum(differences))
    signs = list(product((1, -1), repeat=5))
    far = [s for s in signs if abs(sum(map(float.__mul__, map(float, s), differences))) >= least]
    assert sign_flips(pairs) == (Fraction(len(far), len(signs)), sum(differences) < 0)


def test_fisher_against_brute_force() -> None:
    """All ways in which 6 of 9 solve it, 5 and 4 a side: as likely or less than 5 and 1."""
    counts = [sum(n < 5 for n in chosen) for chosen in combinations(range(9), 6)]
    seen = counts.count(5)
    rare = sum(1 for count in counts if counts.count(count) <= seen)
    assert fisher(5, 5, 1, 4) == Fraction(rare, len(counts))
    assert fisher(8, 8, 0, 8) == Fraction(2, 12870)
    assert fisher(3, 8, 3, 8) == 1


def test_holm() -> None:
    """By hand: 4 x 0.01, 3 x 0.02, then 0.06 stays above 2 x 0.025, and the last is at most 1."""
    given = [Fraction(2, 100), Fraction(1, 100), Fraction(9, 10), Fraction(25, 1000)]
    assert holm(given) == [Fraction(6, 100), Fraction(4, 100), Fraction(9, 10), Fraction(6, 100)]
    assert holm([Fraction(1), Fraction(1, 128), Fraction(1)])[1] == Fraction(3, 128)
    assert holm([]) == []
