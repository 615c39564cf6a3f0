"""Exact statistics over seeds, in integers: intervals, paired tests, and many tests at once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import comb

_STEPS = 10**4
"""Ends of an interval are told in so many parts of 1, rounded outward."""


def interval(solved: int, seeds: int) -> tuple[Fraction, Fraction]:
    """The exact 95 % interval of how likely a seed solves it, from `solved` of `seeds`.

    Source: C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, 1934.
    """

    def tail(part: int, counts: range) -> bool:
        """Whether these counts together have a probability of at most 1/40."""
        found = sum(comb(seeds, k) * part**k * (_STEPS - part) ** (seeds - k) for k in counts)
        return 40 * found <= _STEPS**seeds

    above, below = range(solved, seeds + 1), range(solved + 1)
    parts = range(_STEPS + 1)
    # the first part that is no longer rare, from either end
    low = bisect_left(parts, True, key=lambda part: not tail(part, above)) - 1
    high = bisect_left(parts, True, key=lambda part: not tail(_STEPS - part, below)) - 1
    return Fraction(max(low, 0), _STEPS), Fraction(_STEPS - max(high, 0), _STEPS)


def sign_flips(pairs: Sequence[tuple[float, float]]) -> tuple[Fraction, bool]:
    """The two-sided p of paired values: over all ways to exchange the two of each pair, the share
    in which the sum of differences of ranks is as far from 0 as it is; and whether that sum says
    that the first of the pairs are smaller.

    Values are ranked together, equal ones alike, so that only their order counts.
    """
    every = [value for pair in pairs for value in pair]
    # twice the rank, a whole number: those below, and half of those that are equal
    rank = {v: 2 * sum(o < v for o in every) + every.count(v) for v in set(every)}
    differences = [rank[one] - rank[other] for one, other in pairs]
    sums = Counter({0: 1})
    for difference in differences:
        kept, turned = ({v + d: n for v, n in sums.items()} for d in (difference, -difference))
        sums = Counter(kept) + Counter(turned)
    far = sum(differences)
    ways = sum(n for value, n in sums.items() if abs(value) >= abs(far))
    return Fraction(ways, 2 ** len(pairs)), far < 0


def fisher(solved: int, seeds: int, others: int, of: int) -> Fraction:
    """Fisher's exact two-sided p for `solved` of `seeds` against `others` of `of`: all tables with
    the same sums that are no likelier.
    """
    both = solved + others
    ways = {k: comb(seeds, k) * comb(of, both - k) for k in range(max(0, both - of), both + 1)}
    return Fraction(sum(n for n in ways.values() if n <= ways[solved]), sum(ways.values()))


def holm(values: Sequence[Fraction]) -> list[Fraction]:
    """Each p adjusted by Holm, in their order: below 0.05 after it means that among all of them 1
    in 20 families errs at most.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    each = (min(Fraction(1), (len(values) - k) * values[n]) for k, n in enumerate(order))
    # none is below one that was rarer
    return [p for _, p in sorted(zip(order, accumulate(each, max), strict=True))]
