"""Evaluates linear attention at the last token, where the place that must arrive outweighs all
others, and bounds it everywhere.

    y = sum_j w_j v_j [ / sum_j w_j ],   w_j = <phi(q), phi(k_j)>

The state form adds up phi(k_j) (x) v_j and multiplies with phi(q) at the end; the parallel form
multiplies first, and adds up in chunks. In both a term passes two products and as many additions as
there are terms that are not exactly 0, so one bound covers both.
"""

from __future__ import annotations

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.linear import LinearMixer
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.balls import exp_bounds
from separatrix.proofs.derivations.parts.arriving import Arrival
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.recurrent_maps import Maps
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    limited,
    roundings,
    slack,
)


def linear_attention(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """What the head writes at the last token, a row for each thing that may stand at the place."""
    maps = Maps.of(part, stream)
    mixer, where = maps.mixer, maps.where
    assert isinstance(mixer, LinearMixer)
    phi_k = features(mixer.feature, maps.keys(stream.by_place))
    phi_q = features(mixer.feature, maps.queries(stream.at_last()))
    values = maps.values(at_place)
    seen = maps.values(stream.by_place.hull())
    largest = np.maximum(seen.size[0], values.size.max(0))
    sums = Sums(phi_q, phi_k, largest, place, where)
    arrived = sums.arrived(values, normaliser=mixer.normaliser)
    # the last position's queries are known apart; here those of the others
    others = stream.by_place.rows(slice(0, len(stream.by_place.mid) - 1)).hull()
    anywhere = _anywhere(mixer, maps.queries(others), sums, arrived)
    return Arrival(
        maps.out(arrived, stream.at_last()),
        maps.out(anywhere, stream.by_place.hull()),
        sums.mass,
    )


class Sums:
    """The weights of all places for one row of queries, and what sums of them may be off by."""

    def __init__(
        self, phi_q: Enclosure, phi_k: Enclosure, largest: Array, place: int, where: str
    ) -> None:
        """`largest`: the largest value of any token, by dimension."""
        self.where = where
        self.largest = largest
        self.arithmetic = phi_k.arithmetic
        tiny = self.arithmetic.summed_tiny
        self.phi_k = phi_k
        self.reach = float(phi_q.size.sum()) + 1.0
        dims = phi_q.mid.shape[1]
        # additions of exact zeros round nothing
        nonzero = int((phi_k.size != 0.0).any(1).sum())
        self.terms = nonzero + dims + 8
        self.rounding = float(roundings(self.terms, self.arithmetic)) + slack(self.terms)
        limited(
            phi_k.size.sum(0) * max(1.0, float(largest.max(initial=0.0))),
            f"{where}, state",
            self.arithmetic,
        )
        sizes = (phi_k.size @ phi_q.size[0]) * (1 + slack(dims))
        limited(sizes.sum() * (1 + largest), f"{where}, output", self.arithmetic)
        self.sizes = sizes
        self.right = float(phi_k.mid[place] @ phi_q.mid[0])
        spread = phi_k.rad[place] @ phi_q.size[0] + phi_k.size[place] @ phi_q.rad[0]
        self.right_off = float(spread + slack(dims) * sizes[place]) * (1 + 2.0**-40)
        self.others = float(np.delete(sizes, place).sum()) * (1 + slack(len(sizes)))
        self.total = float(sizes[place]) + self.others
        # products and sums flushed to zero, each dimension of each place in the parallel form, then
        # multiplied with a query or a value
        self.flushed = 16.0 * (nonzero + 1) * (dims + 8) * tiny * self.reach
        least = abs(self.right) - self.right_off
        self.mass = float(self.others / least) * (1 + 2.0**-40) if least > 0 else np.inf

    def arrived(self, values: Enclosure, *, normaliser: bool) -> Enclosure:
        """Outputs at the last token for each token at the place."""
        largest = self.largest
        if not np.isfinite(self.mass):
            raise CheckFailed(f"{self.where}: the weight of the place that must arrive may be 0")
        rounded = self.rounding * self.total * largest + self.flushed * (1 + largest)
        if not normaliser:
            mid = self.right * values.mid
            off = (
                abs(self.right) * values.rad
                + self.right_off * values.size
                + self.others * largest
                + slack(2) * np.abs(mid)
                + rounded
            )
            return values.like(mid, np.where(largest == 0, 0.0, off * (1 + 2.0**-40)))
        noise = self.rounding * self.total + 2 * self.flushed
        least = abs(self.right) - self.right_off - self.others - noise
        if least <= self.arithmetic.summed_tiny:
            raise CheckFailed(f"{self.where}: the denominator may be 0")
        # numerator - v denominator: of the place nothing is left but roundings
        off = 2 * self.others * largest + rounded + noise * largest
        quotient = off / least
        # the division's own rounding, of a quotient of at most this size
        last = 2 * float(self.arithmetic.summed) * (values.size + quotient)
        last = last + self.arithmetic.summed_tiny
        rad = (values.rad + quotient + last) * (1 + 2.0**-40)
        return values.like(values.mid, np.where(largest == 0, 0.0, rad))

    def bounded(self) -> Array:
        """The largest output without normaliser, by dimension."""
        size = self.total * self.largest * (1 + self.rounding) + self.flushed * (1 + self.largest)
        return np.where(self.largest == 0, 0.0, size * (1 + 2.0**-40))


def _anywhere(
    mixer: LinearMixer, queries: Enclosure, at_last: Sums, arrived: Enclosure
) -> Enclosure:
    """Outputs at any position, one row."""
    where = at_last.where
    largest = at_last.largest
    phi_q = features(mixer.feature, queries)
    sums = Sums(phi_q, at_last.phi_k, largest, 0, where)
    if not phi_q.size.any():
        # every product is exactly 0, and so is the quotient 0/0
        size = np.zeros_like(largest)
    elif not mixer.normaliser:
        size = sums.bounded()
    elif mixer.feature == "taylor":
        # 1 + s + s^2 / 2 is at least 1/2: the quotient is an average, up to its roundings
        size = largest * (1 + 8 * sums.rounding * max(1.0, sums.total)) + sums.flushed
        size = np.where(largest == 0, 0.0, size * (1 + 2.0**-40))
    elif mixer.feature == "elu" and float(phi_q.low.min()) >= 0.5:
        # phi(k) = elu + 1 is 0 or at least u, the distance of numbers below 1: so the denominator
        # is 0, and the quotient too, or above u / 4, and the quotient is an average
        if sums.rounding >= 0.25:
            raise CheckFailed(f"{where}: too many tokens for its sums")
        over = (1 + sums.rounding) / (1 - sums.rounding) * (1 + 4 * float(sums.arithmetic.summed))
        size = largest * over + sums.flushed * (1 + largest) * 8 / float(sums.arithmetic.summed)
        size = np.where(largest == 0, 0.0, size * (1 + 2.0**-40))
    else:
        raise CheckFailed(
            f"{where}: the denominator at some position may be close to 0: its output has no bound"
        )
    low = np.minimum(-size, arrived.low.min(0))
    high = np.maximum(size, arrived.high.max(0))
    return arrived.spanning(low[None], high[None])


def features(name: str, x: Enclosure) -> Enclosure:
    """phi(x) as computed."""
    if name == "identity":
        return x
    if name == "relu":
        return x.spanning(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    if name == "taylor":
        return _taylor(x)
    low = _elu(x.low, x.arithmetic)[0]
    high = _elu(x.high, x.arithmetic)[1]
    return x.spanning(np.maximum(low, 0.0), high)


def _taylor(x: Enclosure) -> Enclosure:
    """(1, x, x (x) x / sqrt 2), or the products that a kernel forms of them."""
    rows, dims = x.mid.shape
    ends = [
        (a[:, :, None] * b[:, None, :]).reshape(rows, dims * dims) * 0.5**0.5
        for a in (x.low, x.high)
        for b in (x.low, x.high)
    ]
    squares = x.spanning(np.min(ends, 0), np.max(ends, 0))
    # the root of 1/2 and the two products
    off = 8 * float(x.arithmetic.summed) * squares.size + x.arithmetic.summed_tiny
    rad = np.where(squares.size == 0, 0.0, (squares.rad + off) * (1 + 2.0**-40))
    ones = np.ones((rows, 1))
    return x.like(
        np.concatenate([ones, x.mid, squares.mid], 1),
        np.concatenate([0 * ones, x.rad, rad], 1),
    )


def _elu(x: Array, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """At or below, and at or above, elu(x) + 1 as computed."""
    # elu, and the rounding of the sum
    off = (arithmetic.gate_units + 2) * float(arithmetic.summed)
    found, inverse = np.unique(x, return_inverse=True)
    low = np.empty_like(found)
    high = np.empty_like(found)
    for place, number in enumerate(found.tolist()):
        if number >= 0:
            low[place] = (number + 1) * (1 - off)
            high[place] = (number + 1) * (1 + off)
        else:
            # e^x falls to nothing: what is below -500 is bounded by that of -500
            below, over = exp_bounds(max(number, -500.0), max(number, -500.0))
            low[place] = (0.0 if number < -500 else below) - off
            high[place] = over + off
    return low[inverse].reshape(x.shape), high[inverse].reshape(x.shape)
