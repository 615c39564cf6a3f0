"""How many bins are surely hit, by Lemma S, in floats: proposals for what balls then certify."""

from __future__ import annotations

from math import sqrt

from separatrix.theory.search.reals import LN2, exp, expm1, ln, log1p

_STEEPEST = 300.0
"""Logarithms beyond it are taken for it, so that nothing overflows."""
_TAU = 2 * 3.141592653589793
_STEPS = 60
_CLOSE = 1e-11
"""Newton's next step would be far smaller than this."""


def share_hit(bins: float, balls: float, groups: float, bits: float) -> float:
    """About (y-1)/balls for the largest y with lambda(bins, balls, y; groups) >= 2^bits, by
    Stirling's formula; everything as natural logarithms, `bits` too.

    It is smooth in all of them, also where y falls below 2.
    """
    each = max(balls - groups, 0.0)
    # groups ln((balls/groups)!) is that many nats more than its leading terms
    rest = (each + ln(_TAU)) / 2 + exp(-each) / 12
    owed = _added(bits + ln(LN2), groups + ln(rest))
    target = exp(min(max(owed - balls, -_STEEPEST), _STEEPEST))
    return _share(target, min(max(bins - balls, -_STEEPEST), _STEEPEST))


def _added(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    return max(a, b) + log1p(exp(min(a, b) - max(a, b)))


def _share(target: float, ratio: float) -> float:
    """(y-1)/balls at which lambda is `target` nats per ball; ratio = ln(bins / balls)."""
    # with the best u and z, lambda grows with u from 0 at u = balls/bins on
    low = -ratio
    high = min(max(low + 2 * target + 3, 1.2), 2 * _STEEPEST)
    # lambda starts like a square, and ends like a line
    ln_u = min(low + sqrt(2 * target) + target / 2, (low + high) / 2)
    rho = exp(ratio)
    for _ in range(_STEPS):
        gain, slope, _ = _gain(ln_u, ratio, rho)
        if abs(gain - target) <= 1e-15 * (abs(ln_u) + abs(ratio) + target):
            break
        if gain > target:
            high = ln_u
        else:
            low = ln_u
        # between its ends it is nearly a power of how far u is above its least: Newton's method
        # on both logarithms
        above = ln_u + ratio
        step = high
        if gain > 0 and slope > 0:
            step = above * exp(ln(target / gain) * gain / (slope * above)) - ratio
        if not low < step < high:
            step = (low + high) / 2
        moved = abs(step - ln_u)
        ln_u = step
        if moved <= _CLOSE * max(abs(ln_u), 1.0):
            break
    return _gain(ln_u, ratio, rho)[2]


def _gain(ln_u: float, ratio: float, rho: float) -> tuple[float, float, float]:
    """lambda per ball in nats at the best z, its derivative by ln u, and (y-1)/balls; rho = bins /
    balls and ratio its logarithm.
    """
    u = exp(ln_u)
    fallen = -expm1(-u)
    share = fallen / u
    # bins per bin that must be hit
    room = rho / share
    if not room > 1:
        return 0.0, 0.0, share
    minus_ln_z = ln(room - 1) + u + ln(fallen)
    gain = share * (room * log1p(-1 / room) - minus_ln_z) + ln_u + ratio + 1
    # the share falls by this with ln u; where u is tiny, by the first terms of its series
    fall = u / 2 - u * u / 3 if u < 1e-3 else share - (1 - fallen)
    return gain, minus_ln_z * fall, share
