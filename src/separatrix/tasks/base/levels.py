"""How often naming a value of a uniform function is right."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt


def share_of_the_mode(n: int, V: int) -> Fraction:
    """At least E[max_v |f^-1(v)|] / n for uniform f: [n] -> [V], n >= 1, V >= 1: the most frequent
    value. (E max - n/V)^2 is at most the sum of the V variances, n(1 - 1/V).
    """
    return min(Fraction(1), Fraction(1, V) + Fraction(isqrt(n) + 1, n))


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
