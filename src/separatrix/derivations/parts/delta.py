"""Evaluates Gated DeltaNet where every key but that of one place is exactly 0.

    S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

Then the state is exactly 0 up to the place, b v k^T there, and from there on only decays; in the
parallel form, too: the matrix L of its triangular system is exactly 0. So

    y = <q, k> b exp(G) v,   G = the sum of the log decays after the place

Each gate is evaluated from its weights over whatever any position holds; its error counts once for
every token, and so does the rounding of its product.
"""

from __future__ import annotations

import numpy as np

from separatrix.derivations.parts.live_parts import Live, array
from separatrix.derivations.parts.stream import Stream
from separatrix.errors import CheckFailed
from separatrix.mixers.base.recurrent import SHORTEST_LENGTH
from separatrix.mixers.gdn import GDNMixer
from separatrix.proofs.balls import exp_bounds, sigmoid_bounds, softplus_bounds
from separatrix.proofs.machine import Enclosure, limited, linear, roundings, slack

_MOST = 2.0**20
"""The most that a gate's argument may be; beyond, its exponential would be of no use."""


def gated_delta(stream: Stream, part: Live, place: int) -> tuple[Enclosure, Enclosure, float]:
    """What the head writes at the last token, a row for each token at the place; at any position,
    one row; and what all other tokens weigh: nothing.
    """
    mixer, head = part.gated_head()
    where = part.where
    stored = stream.last.arithmetic
    arithmetic = stored.inner
    tokens = len(stream.by_place.mid)
    keys = unit(linear(stream.by_place, head.k, what=f"{where}, k").summed(), f"{where}, k")
    if np.delete(keys.size, place, 0).any():
        raise CheckFailed(f"{where}: a key other than that of position {place} is not zero")
    query = unit(linear(stream.at_last(), head.q, what=f"{where}, q").summed(), f"{where}, q")
    anyone = linear(stream.by_place.hull(), head.q, what=f"{where}, q").summed()
    anyone = unit(anyone, f"{where}, q")
    values = linear(stream.by_token, head.v, what=f"{where}, v").summed()
    key = keys.rows(slice(place, place + 1))
    strength = _strength(mixer, head.index, stream, where)
    least, most = _decay(mixer, head.index, stream, tokens - 1 - place, where)

    # the product <q, k> b exp(G), a number within these bounds, each factor before its roundings
    product = query.mid @ key.mid.T
    size = float((query.size @ key.size.T)[0, 0]) * (1 + slack(8))
    spread = float((query.rad @ key.size.T + query.size @ key.rad.T)[0, 0])
    dims = key.mid.shape[1]
    spread = (spread + slack(dims) * size) * (1 + 2.0**-40)
    corners = np.outer(
        [float(product[0, 0]) - spread, float(product[0, 0]) + spread],
        np.outer([strength[0], strength[1]], [least, most]).ravel(),
    )
    factor = key.spanning(np.array([[corners.min()]]), np.array([[corners.max()]]))
    factor = factor.wider(np.abs(corners).max() * 2.0**-50)
    # a decay and a product for each token, or for each chunk of them, and a few more
    count = 68 * tokens + dims + 256
    top = size * strength[1] * most
    limited(
        np.array([top, strength[1] * most]) * (1 + values.size.max(initial=0.0)), where, arithmetic
    )
    # of what each of these operations flushes to zero no more is left than decays and queries keep
    flushed = 16 * (68 * tokens + dims) * arithmetic.summed_tiny * max(1.0, most) * (1 + size)
    largest = values.hull().size
    mid = factor.mid * values.mid
    off = (
        np.abs(factor.mid) * values.rad
        + factor.rad * values.size
        + (float(roundings(count, arithmetic)) + slack(4)) * top * values.size
        + flushed * (1 + largest)
    )
    arrived = values.like(mid, np.where(largest == 0, 0.0, off * (1 + 2.0**-40)))
    reach = float((np.maximum(anyone.size, query.size) @ key.size.T)[0, 0]) * (1 + slack(8))
    height = (
        reach * strength[1] * max(1.0, most) * (1 + float(roundings(count, arithmetic))) * largest
    )
    height = np.where(largest == 0, 0.0, (height + flushed * (1 + largest)) * (1 + 2.0**-40))
    anywhere = values.like(np.zeros_like(height), height)
    return (
        linear(arrived.stored_in(stored), head.o, what=f"{where}, o"),
        linear(anywhere.stored_in(stored), head.o, what=f"{where}, o"),
        0.0,
    )


def unit(x: Enclosure, what: str) -> Enclosure:
    """Each row divided by its length, or by SHORTEST_LENGTH where it is shorter than that."""
    arithmetic = x.arithmetic
    u = float(arithmetic.summed)
    low = np.where((x.low <= 0) & (x.high >= 0), 0.0, np.minimum(np.abs(x.low), np.abs(x.high)))
    high = x.size
    dims = x.mid.shape[1]
    # each square may be a number and their sum none: the length is infinite, the quotient 0
    limited((high * high).sum(1) * (1 + slack(dims)), f"{what}: its squares", arithmetic)
    count = dims + 4
    off = float(roundings(count, arithmetic)) + slack(count)
    flushed = 4 * count * arithmetic.summed_tiny
    # squares that are flushed to zero make a length too short
    shortest = np.sqrt(np.maximum((low * low).sum(1) * (1 - off) - flushed, 0.0)) * (1 - off)
    longest = np.sqrt((high * high).sum(1) * (1 + off) + flushed) * (1 + off)
    least = SHORTEST_LENGTH * (1 - u)
    most = SHORTEST_LENGTH * (1 + u)
    below = np.maximum(shortest, least)[:, None]
    over = np.maximum(longest, most)[:, None]
    mid = x.mid / ((below + over) / 2)
    ends = [x.low / below, x.low / over, x.high / below, x.high / over]
    reach = np.max([np.abs(end - mid) for end in ends], axis=0)
    size = np.abs(mid) + reach
    rad = (reach + (2 * u + slack(4)) * size + arithmetic.summed_tiny) * (1 + 2.0**-40)
    # no number of a vector of length 1 is larger than 1, but for roundings: squares that are
    # flushed to zero belong to vectors shorter than SHORTEST_LENGTH
    most_ = 1 + 4 * off
    hull = x.spanning(np.maximum(mid - rad, -most_), np.minimum(mid + rad, most_))
    inside = size + rad <= 1.0
    zero = x.size == 0
    return x.like(
        np.where(zero, 0.0, np.where(inside, mid, hull.mid)),
        np.where(zero, 0.0, np.where(inside, rad, hull.rad * (1 + 2.0**-40))),
    )


def _gate(weight: np.ndarray, bias: np.ndarray | None, stream: Stream, what: str) -> Enclosure:
    """What a gate's map gives at any position, one row."""
    rows = linear(stream.by_place.hull(), weight, bias, what=what).summed()
    if float(rows.size.max()) > _MOST:
        raise CheckFailed(f"{what}: its argument may be {float(rows.size.max()):g}")
    return rows


def _clipped(x: float) -> float:
    """Arguments beyond +-500 give what +-500 gives, up to less than any rounding."""
    return min(500.0, max(-500.0, x))


def _strength(mixer: GDNMixer, head: int, stream: Stream, where: str) -> tuple[float, float]:
    """Bounds of b = sigmoid(B x), times 1 or 2."""
    rows = _gate(array(mixer.b.weight), None, stream, f"{where}, b")
    low, high = sigmoid_bounds(
        _clipped(float(rows.low[0, head])), _clipped(float(rows.high[0, head]))
    )
    off = rows.arithmetic.gate_units * float(rows.arithmetic.summed)
    return (
        max(0.0, low - off) * mixer.largest,
        (high + off) * mixer.largest,
    )


def _decay(
    mixer: GDNMixer, head: int, stream: Stream, tokens: int, where: str
) -> tuple[float, float]:
    """Bounds of exp(G), the product of the decays of that many tokens, before it is rounded."""
    what = f"{where}, a"
    rows = _gate(array(mixer.a.weight), array(mixer.a.bias), stream, what)
    rates = array(mixer.rate)
    if float(np.abs(rates).max()) > 64:
        raise CheckFailed(f"{what}: its rate e^{float(np.abs(rates).max()):g} is of no use")
    arithmetic = rows.arithmetic
    u = float(arithmetic.summed)
    exp_off = arithmetic.exp_units * u
    rate_low, rate_high = exp_bounds(float(rates[head]), float(rates[head]))
    rate_low = rate_low * (1 - exp_off)
    rate_high = rate_high * (1 + exp_off)
    low = float(rows.low[0, head])
    high = float(rows.high[0, head])
    # ln(1 + e^z) is z for a large z, up to less than any rounding
    soft_low, soft_high = softplus_bounds(_clipped(low), _clipped(high))
    soft_high = max(soft_high, high + 2.0**-40)
    off = arithmetic.gate_units * u * max(1.0, soft_high)
    # one product for each token, and a sum over them in any order
    rounding = float(roundings(tokens + 4, arithmetic)) + slack(tokens)
    steepest = (soft_high + off) * rate_high * (1 + 4 * u)
    # a gate may come out on the wrong side of 0 by its error, for every token
    gentlest = (soft_low - off) * (rate_low if soft_low > off else rate_high)
    total_low = -tokens * steepest * (1 + rounding)
    total_high = -tokens * gentlest + tokens * abs(steepest) * rounding
    if total_high > 64:
        raise CheckFailed(
            f"{what}: the errors of {tokens:,} gates may add up to {total_high:g}: use a smaller n"
        )
    floor = max(total_low, -500.0)
    least = exp_bounds(floor, floor)[0] if total_low >= -500 else 0.0
    return least, exp_bounds(max(total_high, -500.0), max(total_high, -500.0))[1]
