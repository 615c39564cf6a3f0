"""How often naming the most frequent value of a uniform function is right."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, isqrt

from flint import fmpq, fmpq_poly, fmpz_poly

from separatrix.tasks.base.described import require

_EXACT = 128
_SUMMED = 2048
"""Largest n that takes about 50 ms: exactly, and by the union bound."""


@lru_cache(maxsize=256)
def share_of_the_mode(n: int, V: int) -> Fraction:
    """E[max_v |f^-1(v)|] / n for uniform f: [n] -> [V], n >= 1, V >= 1 (SizeError otherwise): exact
    for n <= 128.

    It is the sum over k >= 0 of P(some value is taken more than k times), divided by n. Beyond n =
    128 every term is replaced by its union bound min(1, V P(Binomial(n, 1/V) > k)). Beyond n =
    2,048 the whole is replaced by 1/V + (floor(sqrt(n)) + 1)/n, since (E max - n/V)^2 is at most
    the sum of the V variances, n(1 - 1/V). Both are rational upper bounds, so that a level made of
    them is never too low.
    """
    require("share of the mode", "n", n, 1, 1 << 63)
    require("share of the mode", "V", V, 1, 1 << 63)
    if n > _SUMMED:
        return min(Fraction(1), Fraction(1, V) + Fraction(isqrt(n) + 1, n))
    above = _one_value_above(n, V)
    every = V**n
    if n > _EXACT:
        return Fraction(sum(min(every, functions) for functions in above), n * every)
    total = sum(above[k] if 2 * k >= n else every - _at_most(n, V, k) for k in range(n))
    return Fraction(total, n * every)


def lookup_level(probe: str, n: int, V: int) -> Fraction:
    """What a probe of `separatrix.tasks.PROBES` may reach on n independent uniform entries of [V]
    and a uniform place to look up.

    Counts tell which value is the most frequent. The token at a place, the one before the last, and
    the one behind an earlier token are entries. An entry is the one asked for in one of n cases; in
    the others it agrees with the answer with probability 1/V.
    """
    if probe == "counts":
        return share_of_the_mode(n, V)
    return Fraction(1, V) if probe == "constant" else Fraction(1, V) + (1 - Fraction(1, V)) / n


def _one_value_above(n: int, V: int) -> list[int]:
    """For k < n: pairs of a function and a value it takes more than k times, one from n/2 on."""
    result, term, total = [0] * n, V, 0  # term: functions that take a given value c times, times V
    for c in range(n, 0, -1):
        total += term
        result[c - 1] = total
        # binom(n, c-1) = binom(n, c) c/(n-c+1), so that the division is exact
        term = term * c * (V - 1) // (n - c + 1)
    return result


def _at_most(n: int, V: int, k: int) -> int:
    """Functions [n] -> [V] that take no value more than k times: n! [x^n] of (sum x^j/j!)^V."""
    once = fmpq_poly([fmpq(1, factorial(j)) for j in range(k + 1)])
    return int((once.pow_trunc(V, n + 1)[n] * factorial(n)).p)


@lru_cache(maxsize=64)
def share_of_those_pointed_to(n: int, V: int, P: int) -> Fraction:
    """E[M]/P, M the largest number of P different uniform cells that hold one value, of n cells
    that hold V values as equally often as can be.

    M is at most m in W of the binomial(n, P) choices of cells, W the coefficient of x^P in the
    product over the values v of the sum over j = 0..m of binomial(cells of v, j) x^j.
    """
    each, more = divmod(n, V)
    every = comb(n, P)
    fewer = 0
    for most in range(P):
        usual, larger = (
            [comb(cells, j) for j in range(min(most, cells) + 1)] for cells in (each, each + 1)
        )
        few, many = fmpz_poly(usual), fmpz_poly(larger)
        product = few.pow_trunc(V - more, P + 1).mul_low(many.pow_trunc(more, P + 1), P + 1)
        fewer += int(product[P])
    return Fraction(P * every - fewer, P * every)
