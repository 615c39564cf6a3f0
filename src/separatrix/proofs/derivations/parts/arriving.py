"""What arrives at the last token where one place alone writes into a recurrent layer's state.

    S_i = S_{i-1} A_i + g_i v_i k_i^T,   y_i = S_i q_i

with A_i diagonal, or diagonal plus rank one along a vector that is 0 wherever k_i is. Where k_i is
exactly 0 at every place but one, the state is exactly 0 up to it and only decays behind it:

    y = F v,   F = g sum_d q_d k_d exp(G_d),   G_d = the sum of log a_d over the tokens behind it

in the recurrence as in the parallel forms, whose sums over other tokens add exact zeros. Without a
part of rank one the other keys need not be 0: what they weigh together is bounded.

Linear attention is the same with A_i = 1 and keys and queries behind a feature map; with a
normaliser, y is divided by F and what the others weigh.

A parallel form may take the difference of two sums of log a within a chunk of at most 64 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.balls import exp_bounds
from separatrix.proofs.derivations.parts.recurrent_maps import Maps, each
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, limited, roundings, slack

_CHUNK = 64
_OURS = 1 + 2.0**-40


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a head's tokens write and read, in the names of the formula above."""

    keys: Enclosure
    """A row per place."""
    last: Enclosure
    """The query of the last token, one row."""
    anyone: Enclosure
    """The query of any token, one row."""
    log_decay: Enclosure
    """A row per place; one column for all key dimensions, or one for each."""
    strength: Enclosure
    """g, one row and one column, at any place."""
    alone: bool = False
    """Whether A_i has a part of rank one: then other keys must be exactly 0."""
    capped: bool = False
    """Whether the output is divided by the weight of all tokens, where that is above 1."""
    summed: bool = False
    """Whether sums of log a run over the tokens in between, and are no differences."""
    early: bool = False
    """Whether a token reads what the token before it left."""
    averages: Literal["", "any", "positive", "half"] = ""
    """Whether the output is divided by the weight of all tokens, of which each is anything, none
    is negative, or each is 1/2 or more.
    """
    entering: float = 0.0
    """The most by which a token enters the state, where that is not g alone."""
    decays: bool = True
    """Whether what is rounded on the way of a product is more than a sum over tokens."""
    more: int = 0
    """Further roundings of each product."""
    assumes: tuple[str, ...] = ()
    """What is assumed of the arithmetic beyond what every proof says."""


@dataclass(frozen=True)
class Arrival:
    """What a recurrent layer writes: a row for each row of values, at the last token; at any, one
    row; and the weight of all other tokens, relative to the place.
    """

    last: Enclosure
    anywhere: Enclosure
    mass: float
    assumes: tuple[str, ...] = ()
    """What is assumed of the arithmetic beyond what every proof says."""


def arrived(stream: Stream, maps: Maps, place: int, found: Written, at_place: Enclosure) -> Arrival:
    """`at_place` has a row for each thing that may stand at the place."""
    where = maps.where
    keys = found.keys
    tokens, dims = keys.mid.shape
    others = np.delete(keys.size, place, 0)
    if found.alone and others.any():
        raise CheckFailed(f"{where}: a key other than that of position {place} is not zero")
    values = maps.values(at_place)
    seen = maps.values(stream.by_place.hull())
    largest = np.maximum(seen.size, values.size.max(0, keepdims=True))
    least, most = _kept(found, tokens, place, where)
    low, high = _factor(found, place, least, most)
    strongest = float(found.strength.size.max())
    weighing = (others @ found.last.size[0]).sum() * strongest * (1 + slack(tokens * dims))
    nonzero = int(others.any(1).sum())
    count = nonzero + dims + found.more + 8
    count += found.decays * (4 * (tokens - place) + 504)
    arithmetic = keys.arithmetic
    # products first or sums first
    entering = max(strongest, found.entering)
    state = keys.size.sum(0) * entering * max(1.0, _rise(found)) * (1 + slack(tokens))
    limited(state * max(1.0, float(largest.max(initial=0.0))), f"{where}, its state", arithmetic)
    rounding = float(roundings(count, arithmetic)) + slack(count)
    size = float((keys.size[place] @ found.last.size[0]) * strongest * max(1.0, float(most.max())))
    total = (size + weighing) * (1 + slack(4))
    limited(np.array([total, strongest]) * (1 + largest.max(initial=0.0)), where, arithmetic)
    flushed = 16.0 * (nonzero + 8) * (dims + 8) * arithmetic.summed_tiny * (1 + total)
    flushed *= (1 + float(found.last.size.sum())) * (1 + strongest)
    factor = keys.spanning(np.array([[low]]), np.array([[high]]))
    near = min(abs(low), abs(high)) if low * high > 0 else 0.0
    mass = float(weighing / near) * _OURS if near > 0 else np.inf
    if not np.isfinite(mass):
        raise CheckFailed(f"{where}: the weight of the place that must arrive may be 0")
    noise = rounding * total + flushed
    mid = factor.mid * values.mid
    off = (
        np.abs(factor.mid) * values.rad
        + factor.rad * values.size
        + (weighing + rounding * total) * largest
        + flushed * (1 + largest)
        + slack(2) * np.abs(mid)
    )
    if found.capped:
        mid, off = _capped(low, high, weighing + noise, mid, off, values)
    if found.averages:
        # numerator - v denominator: of the place nothing is left but roundings
        beside = weighing + noise + flushed
        off = 2 * beside * largest + flushed
        mid, off = values.mid, _divided(values, near - beside, off, where)
    y = values.like(mid, np.where(largest == 0, 0.0, off * _OURS))
    # what is divided is known at the last token
    asking = found.anyone.size[0]
    if not found.averages:
        asking = np.maximum(asking, found.last.size[0])
    every = (keys.size @ asking).sum() * strongest * max(1.0, _rise(found))
    every = float(every) * (1 + slack(tokens * dims))
    limited(every * (1 + rounding) * (1 + largest), where, arithmetic)
    flushed *= 1 + float(asking.sum())
    if found.averages:
        height = _any_quotient(found, largest, every, rounding, flushed, where)
    else:
        height = every * (1 + rounding) * largest + flushed * (1 + largest)
    height = np.where(largest == 0, 0.0, np.maximum(height * _OURS, y.size.max(0, keepdims=True)))
    anywhere = values.like(np.zeros_like(height), height)
    return Arrival(
        maps.out(y, stream.at_last()),
        maps.out(anywhere, stream.by_place.hull()),
        mass,
        found.assumes,
    )


def _divided(values: Enclosure, least: float, off: Array, where: str) -> Array:
    """How far a quotient may be from a value, where numerators less as many values are off by so
    much, and denominators are at least so large.
    """
    arithmetic = values.arithmetic
    if not least > arithmetic.summed_tiny:
        raise CheckFailed(f"{where}: the denominator may be 0")
    quotient = off / least
    # the division's own rounding, of a quotient of at most this size
    last = 2 * float(arithmetic.summed) * (values.size + quotient) + arithmetic.summed_tiny
    return values.rad + quotient + last


def _any_quotient(
    found: Written, largest: Array, every: float, rounding: float, flushed: float, where: str
) -> Array:
    """The largest output, by dimension, at any token, where it is divided by the weight of all."""
    u = float(found.keys.arithmetic.summed)
    if not found.anyone.size.any():
        # every product is exactly 0, and so is the quotient 0/0
        return np.zeros_like(largest)
    if found.averages == "half" and (noise := rounding * every + 2 * flushed) <= 0.25:
        # an average, up to its roundings: (1 + x) / (1 - x) <= 1 + 4 x where x <= 1/2
        return largest * (1 + 8 * noise) * (1 + 4 * u) + 8 * flushed
    if found.averages == "positive" and float(found.anyone.low.min()) >= 0.5 and rounding < 0.25:
        # phi(k) = elu + 1 is 0 or at least u, the distance of numbers below 1: so the denominator
        # is 0, and the quotient too, or above u / 4, and the quotient is an average
        over = (1 + rounding) / (1 - rounding) * (1 + 4 * u)
        return largest * over + flushed * (1 + largest) * 8 / u
    raise CheckFailed(
        f"{where}: the denominator at some position may be close to 0: its output has no bound"
    )


def _factor(found: Written, place: int, least: Array, most: Array) -> tuple[float, float]:
    """Bounds of F before roundings."""
    key = found.keys.rows(slice(place, place + 1))
    pairs = [
        q * k * kept
        for q in (found.last.low, found.last.high)
        for k in (key.low, key.high)
        for kept in (least, most)
    ]
    low = float(np.min(pairs, 0).sum())
    high = float(np.max(pairs, 0).sum())
    size = float((found.last.size @ key.size.T)[0, 0]) * max(1.0, float(most.max()))
    blur = slack(key.mid.shape[1]) * size
    strength = found.strength
    weakest, strongest = float(strength.low[0, 0]), float(strength.high[0, 0])
    ends = np.outer([low - blur, high + blur], [weakest, strongest])
    # times 1 nothing is rounded
    off = 0.0 if weakest == strongest == 1.0 else slack(2) * size * strongest
    return float(ends.min()) - off, float(ends.max()) + off


def _kept(found: Written, tokens: int, place: int, where: str) -> tuple[Array, Array]:
    """Bounds of exp(G_d), (1, d) or (1, 1)."""
    logs = found.log_decay
    between = logs.rows(slice(place + 1, tokens))
    behind = len(between.mid)
    sizes = between if found.summed else logs
    count = min(len(sizes.mid), _CHUNK)
    # absolute, of an exponent: sums of a chunk's logarithms, and their difference
    off = (float(roundings(4 * count + 8, logs.arithmetic)) + slack(tokens)) * sizes.size.sum(
        0, keepdims=True
    )
    if behind:
        low = between.low.sum(0, keepdims=True) - off
        high = (0.0 if found.early else between.high.sum(0, keepdims=True)) + off
    else:
        low, high = -off, off
    if float(np.max(high)) > 64:
        raise CheckFailed(f"{where}: the errors of its decays may add up to {np.max(high):g}")
    return _exp(low, 0), _exp(np.broadcast_to(high, low.shape), 1)


def _rise(found: Written) -> float:
    """What a product of decays may come to, by rounding, at any tokens."""
    sizes = found.log_decay.size.sum(0)
    highest = np.maximum(found.log_decay.high, 0.0).sum(0)
    off = float(roundings(4 * _CHUNK + 8, found.keys.arithmetic)) * sizes + highest
    return float(exp_bounds(0.0, min(float(off.max(initial=0.0)), 64.0))[1])


def _exp(x: Array, end: int) -> Array:
    found = np.where(x == 0, 1.0, each(x, exp_bounds, end))
    return found if end else np.where(x < -500, 0.0, found)


def _capped(
    low: float, high: float, noise: float, mid: Array, off: Array, values: Enclosure
) -> tuple[Array, Array]:
    """y / max(|w|, 1) with w the weight of all tokens, within `noise` of F."""
    least = max(0.0, min(abs(low), abs(high)) - noise)
    most = max(abs(low), abs(high)) + noise
    below, over = max(1.0, least), max(1.0, most)
    scale = (1 / below + 1 / over) / 2
    spread = (1 / below - 1 / over) / 2 + 4 * float(values.arithmetic.summed) / below
    return mid * scale, off / below + (np.abs(mid) + off) * spread
