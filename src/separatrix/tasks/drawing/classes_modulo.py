"""Draws for sums modulo M: values that avoid some, and one side for every class {x, s - x}."""

from __future__ import annotations

from fractions import Fraction
from math import comb, gcd, isqrt

from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.task import Tokens


def avoiding(values: int, holes: Tokens, n: int, rng: np.random.Generator) -> Tokens:
    """Shape (batch, n): uniform over [values] without the row's holes, shape (batch, number),
    which differ.
    """
    # uniform numbers of as many values as are left, moved up past each hole: no rejection
    x = rng.integers(values - holes.shape[1], size=(len(holes), n))
    for hole in np.sort(holes, axis=1).T:
        x += x >= hole[:, None]
    return x


def one_per_class(classes: Tokens, rng: np.random.Generator) -> Bools:
    """A fair coin for every class of every row, shape as `classes`: equal entries of a row have
    equal coins.
    """
    # equal classes stand side by side once sorted, and take the coin of the first of them
    order = np.argsort(classes, axis=1)
    ordered = np.take_along_axis(classes, order, axis=1)
    # indices where runs of equal classes begin, else 0: the running maximum finds each one's run
    first = np.zeros_like(classes)
    first[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], np.arange(1, classes.shape[1]), 0)
    coins = rng.integers(2, size=classes.shape, dtype=np.int8) == 1
    drawn = np.take_along_axis(coins, np.maximum.accumulate(first, axis=1), axis=1)
    result = np.empty_like(coins)
    np.put_along_axis(result, order, drawn, axis=1)
    return result


SMALL_MODULI = range(2, 17)
"""Moduli whose residues the audit looks at."""
_HIDDEN = (360360, 27720, 2520, 840, 420, 210, 60, 30, 12, 6, 4, 2)
"""Numbers with many divisors."""


def hidden(M: int) -> int:
    """The largest D of a list of numbers with many divisors of which every value of 1..M-1 shares
    its residue with two others at least (three for even M); else 2 for odd M >= 5, or 1.
    """
    # with odd M and even D a value and its negative have different residues
    odd = M % 2
    members = (D for D in _HIDDEN if (3 if odd else 4) <= (M - 1) // D)
    return next(members, 2 if odd and M >= 5 else 1)


def alike(batch: int, M: int, D: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
    """Two values (batch,) each of 1..M-1 that agree modulo D, of different classes {x, M-x} with
    two members; the law of one is that of the other. There must be two such classes.
    """
    one = np.empty(batch, np.int64)
    two = np.empty(batch, np.int64)
    left = np.arange(batch)
    while len(left):
        drawn = 1 + rng.integers(M - 1, size=len(left))
        residue = drawn % D
        # those of residue 0 begin at D
        members = (M - 1 - residue) // D + (residue > 0)
        other = residue + D * (rng.integers(members) + (residue == 0))
        one[left], two[left] = drawn, other
        fits = (other != drawn) & (other != M - drawn) & (2 * drawn != M) & (2 * other != M)
        left = left[~fits]
    return one, two


def told_by_numbers_of_sums(sums: int, M: int, moduli: range) -> Fraction:
    """About how far the numbers of `sums` sums of three tokens that are M or 2M modulo each of
    `moduli` tell whether one of them is so without a modulus: the total variation.

    Of s sums that fit modulo p with probability w/p each, two by two independent, the number is
    taken as normal with variance s (w/p)(1 - w/p). One sum that fits for sure, and not with
    probability w/p, moves the mean by 1 - w/p, d spreads. Numbers for different p are taken as
    independent, so that d^2 add up; the distance of two normal laws d spreads apart is at most
    d/sqrt(2 pi), and 1/(2 pi) < 4/25.
    """
    squares = Fraction(0)
    for p in moduli:
        fitting = len({M % p, 2 * M % p})
        squares += Fraction(p - fitting, fitting * sums)
    # rounded up, to 2^-30
    return min(
        Fraction(1), Fraction(isqrt(int(squares * Fraction(4, 25) * (1 << 60))) + 1, 1 << 30)
    )


def told_by_residues(n: int, M: int, moduli: range) -> Fraction:
    """At most how far the numbers of n tokens that cancel another modulo each of `moduli` tell
    apart one that cancels it from one that does so modulo `hidden(M)` alone: the total variation
    between the two, taken as independent for different moduli.

    Modulo p one token more fits, where the other fits by chance; of Binomial(n, 1/p) others the
    distance of a shift by one is the largest probability.
    """
    D = hidden(M)
    members = max(2, (M - 1) // D)
    same = Fraction(1)
    for p in moduli:
        by_chance = Fraction(gcd(p, D), p)
        apart = min(Fraction(1), (1 - by_chance) * members / (members - 1))
        largest = max(
            Fraction(comb(n, k) * (p - 1) ** (n - k), p**n) for k in {n // p, (n + 1) // p}
        )
        same *= 1 - apart * largest
    return 1 - same
