"""How many bins are surely hit, by Lemma S, in floats: proposals for what balls then certify."""

from __future__ import annotations

import numpy as np

from separatrix.theory.search.integers import LN2, Floats
from separatrix.theory.search.logs import Logs

_HALVINGS = 8
_STEPS = 5
_STEEPEST = 300.0
"""Logarithms beyond it are taken for it, so that nothing overflows."""


def most_hit(bins: Logs, balls: Logs, groups: Logs, bits: Logs) -> Logs:
    """About the largest y - 1 with lambda(bins, balls, y; groups) >= bits, by Stirling's formula.

    It is smooth in all of them, also where it falls below 1.
    """
    each = np.maximum((balls / groups).ln, 0)
    # groups ln((balls/groups)!) is that many nats more than its leading terms
    rest = (each + np.log(2 * np.pi)) / 2 + np.exp(-each) / 12
    owed = bits + Logs(groups.ln + np.log(rest / LN2))
    per_ball = np.exp(np.clip(owed.ln + np.log(LN2) - balls.ln, -_STEEPEST, _STEEPEST))
    ratio = np.clip((bins / balls).ln, -_STEEPEST, _STEEPEST)
    return Logs(balls.ln + np.log(_share(per_ball, ratio)))


def _share(target: Floats, ratio: Floats) -> Floats:
    """(y-1)/balls at which lambda is `target` nats per ball; ratio = ln(bins / balls)."""
    # with the best u and z, lambda grows with u from 0 at u = balls/bins on
    low = -ratio
    high = np.clip(low + 2 * target + 3, 1.2, 2 * _STEEPEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _gain(middle, ratio)[0] > target
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    ln_u = high
    for _ in range(_STEPS):
        gain, slope, _ = _gain(ln_u, ratio)
        above = gain > target
        high = np.where(above, ln_u, high)
        low = np.where(above, low, ln_u)
        # Newton's method on the root, since lambda starts like a square
        step = ln_u - 2 * (gain - np.sqrt(np.maximum(gain, 0) * target)) / slope
        ln_u = np.where((step >= low) & (step <= high), step, (low + high) / 2)
    return _gain(ln_u, ratio)[2]


def _gain(ln_u: Floats, ratio: Floats) -> tuple[Floats, Floats, Floats]:
    """lambda per ball in nats at the best z, its derivative by ln u, and (y-1)/balls."""
    u = np.exp(ln_u)
    share = -np.expm1(-u) / u
    # bins per bin that must be hit
    room = np.exp(ratio) / share
    minus_ln_z = np.log(room - 1) + u + np.log(-np.expm1(-u))
    gain = share * (room * np.log1p(-1 / room) - minus_ln_z) + ln_u + ratio + 1
    # the share falls by this with ln u; where u is tiny, by the first terms of its series
    fall = np.where(u < 1e-3, u / 2 - u * u / 3, share - np.exp(-u))
    return gain, minus_ln_z * fall, share
