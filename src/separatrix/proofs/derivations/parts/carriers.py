"""What arrives at the last token of what stands right before it, through a layer with a bounded
state, whatever the mixer.

    S_i = S_{i-1} A_i + g_i v_i k_i^T,   y_i = S_i q_i

with A_i diagonal, or diagonal plus rank one along a vector that is 0 wherever k_i is. So y is a sum
of the tokens' values, each times a weight

    F_j = g_j sum_d q_d k_jd exp(G_jd),   G_jd = the sum of log a_d over the tokens behind j

in the recurrence as in the parallel forms. With a part of rank one the keys of all other tokens
must be exactly 0: the state is exactly 0 up to the place, and only decays behind it. Else what they
weigh together is bounded. The weights of a matrix state are alike for all numbers of a value; where
channels do not meet (Mamba, RG-LRU) each has its own, and its own decays.

Linear attention is the same with A_i = 1 and keys and queries behind a feature map; with a
normaliser, y is divided by F and what the others weigh.

A parallel form may take the difference of two sums of log a within a chunk of at most 64 tokens.

Every quantity is known in four views: at the place, a row for each thing that may stand there; at
the last token; at any place before the two; and at any place at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.balls import exp_bounds
from separatrix.proofs.derivations.parts.gates import each, exponential, normed, sigmoid, silu
from separatrix.proofs.derivations.parts.live_parts import Live, array, weights_of
from separatrix.proofs.derivations.parts.steps import own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    hull,
    limited,
    linear,
    roundings,
    slack,
    summing,
    times,
)

_CHUNK = 64
_OURS = 1 + 2.0**-40


class Seen(NamedTuple):
    """One quantity in the four views."""

    place: Enclosure
    last: Enclosure
    before: Enclosure
    anywhere: Enclosure

    @classmethod
    def of(cls, stream: Stream, place: int, at_place: Enclosure, where: str) -> Seen:
        """What the residual stream holds. Raises CheckFailed unless the place is the last but
        one.
        """
        if place != len(stream.by_place.mid) - 2:
            raise CheckFailed(f"{where}: what is carried stands right before the last token")
        # a prompt of two tokens has none before: then this is more than there is
        before = stream.by_place.rows(slice(0, max(1, place))).hull()
        return cls(at_place, stream.at_last(), before, stream.by_place.hull())

    def map(self, function: Callable[[Enclosure], Enclosure]) -> Seen:
        return Seen(*map(function, self))

    def mapped(self, weight: Array, what: str, bias: Array | None = None) -> Seen:
        return self.map(lambda x: linear(x, weight, bias, what=what))

    def times(self, other: Seen | Enclosure, what: str) -> Seen:
        """Times the same of another, or one row for all."""
        others = other if isinstance(other, Seen) else [other] * 4
        return Seen(*(times(x, y, what) for x, y in zip(self, others, strict=True)))

    def scaled(self, by: float) -> Seen:
        """Times a power of two, which is exact."""
        return self.map(lambda x: x.like(x.mid * by, x.rad * abs(by)))

    def all(self, number: float, off: float = 0.0) -> Seen:
        """The same number everywhere, within so much."""
        return self.map(lambda x: x.like(np.full((1, 1), number), np.full((1, 1), off)))

    def total(self, tokens: int) -> Array:
        """At or above the sum of sizes over so many tokens."""
        two = self.place.size.max(0) + self.last.size.max(0)
        return (two + (tokens - 2) * self.before.size.max(0)) * (1 + slack(tokens))


def convolved(weight: Array, x: Seen, what: str, *, activated: bool) -> Seen:
    """Through a convolution of these taps, and silu; taps further back than one token read any
    place, or nothing.
    """

    def total(*read: Enclosure) -> Enclosure:
        found = convolve(weight, read, what)
        return silu(found, what) if activated else found

    # before the first token stand zeros
    any_, old, more = x.anywhere.or_zero(), x.before.or_zero(), weight.shape[1] - 1
    return Seen(
        total(x.place, *[old] * more),
        # a row at the last token for each thing at the place, which stands one token back
        total(x.last, x.place, *[old] * more),
        total(x.before, *[old] * more),
        total(x.anywhere, *[any_] * more),
    )


def convolve(weight: Array, read: Sequence[Enclosure], what: str) -> Enclosure:
    """What taps make of the tokens that they read, the newest one first: a sum in any order, which
    is rounded to the format that it is stored in once.
    """
    arithmetic = read[0].summed().arithmetic
    read = read[: weight.shape[1]]
    shape = max(len(one.mid) for one in read), len(weight)
    mid, rad, size = np.zeros((3, *shape))
    count, scaled = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    for tap, one in zip(weight.T[::-1], read, strict=True):
        height, used = np.abs(tap), (tap != 0.0) & (one.size != 0.0)
        mid, rad, size = mid + tap * one.mid, rad + height * one.rad, size + height * one.size
        count, scaled = count + used, scaled | used & (height != 1.0)
    limited(size * (1 + slack(len(read))), what, read[0].arithmetic)
    # one number, times 1, is not rounded
    alone = (count < 2) & ~scaled
    lost = summing(count, size, arithmetic) + slack(len(read)) * size
    flushed = arithmetic.summed_tiny * (rad > 0)
    found = Enclosure(mid, np.where(alone, rad + flushed, (rad + lost) * _OURS), arithmetic)
    return found.stored_in(read[0].arithmetic)


@dataclass(frozen=True, kw_only=True)
class Written:
    """What tokens write and read, in the names of the formula above."""

    keys: Seen
    queries: Seen
    values: Seen
    log_decay: Seen
    """A column for all key dimensions, or one for each; of channels that do not meet those of
    each, one channel after the other.
    """
    strength: Seen
    """g: a column, or one for each channel."""
    channels: int = 0
    """How many there are that do not meet; 0: a matrix state."""
    skip: Enclosure | None = None
    """By what a token's own value is read beside the state."""
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
    grown: float = 1.0
    """By what keys may be multiplied, and queries divided, in a parallel form."""
    assumes: tuple[str, ...] = ()
    """What is assumed of the arithmetic beyond what every proof says."""

    def cube(self, logs: Array) -> Array:
        """Of rows of log a: (rows, channels or 1, key dimensions or 1)."""
        return logs.reshape(len(logs), max(1, self.channels), -1)


class Arrival(NamedTuple):
    """What a layer writes: a row for each thing at the place, at the last token; at any, one row;
    and the weight of all other tokens, relative to the place.
    """

    last: Enclosure
    anywhere: Enclosure
    mass: float
    assumes: tuple[str, ...] = ()
    """What is assumed of the arithmetic beyond what every proof says."""


class Weight(NamedTuple):
    """Of one token's value in what is read: bounds, and the size of the terms; (rows, channels)."""

    low: Array
    high: Array
    size: Array

    @classmethod
    def of(cls, q: Enclosure, k: Enclosure, kept: tuple[Array, Array], g: Enclosure) -> Weight:
        """`kept`: bounds of products of decays."""
        pairs = [
            one[:, None] * other[:, None] * some
            for one in (q.low, q.high)
            for other in (k.low, k.high)
            for some in kept
        ]
        size = (q.size[:, None] * k.size[:, None] * np.maximum(1.0, kept[1])).sum(-1)
        blur = slack(k.mid.shape[1]) * size
        low, high = np.min(pairs, 0).sum(-1) - blur, np.max(pairs, 0).sum(-1) + blur
        ends = np.stack([end * strength for end in (low, high) for strength in (g.low, g.high)])
        # times 1 nothing is rounded
        off = np.where((g.low == 1) & (g.high == 1), 0.0, slack(2)) * size * g.size
        return cls(ends.min(0) - off, ends.max(0) + off, size * g.size * (1 + slack(4)))

    def of_value(self, v: Enclosure) -> tuple[Array, Array]:
        """Its product with a value: centre and radius."""
        mid, rad = (self.low + self.high) / 2, (self.high - self.low) / 2 * _OURS
        centre = mid * v.mid
        return centre, np.abs(mid) * v.rad + rad * v.size + slack(2) * np.abs(centre)


def arrived(found: Written, tokens: int, where: str) -> tuple[Enclosure, Enclosure, float]:
    """What is read at the last token and anywhere, and what all other tokens weigh."""
    keys, queries, values, strength = found.keys, found.queries, found.values, found.strength
    if found.alone and (keys.before.size.any() or keys.last.size.any()):
        raise CheckFailed(f"{where}: a key other than that of position {tokens - 2} is not zero")
    arithmetic = values.last.arithmetic
    dims = keys.last.mid.shape[1]
    largest = np.max([view.size.max(0, keepdims=True) for view in values], 0)
    kept, stale, rise = _kept(found, tokens, where)
    place = Weight.of(queries.last, keys.place, kept, strength.place)
    asked = queries.last.size.max(0)
    strengths = np.max([view.size.max(0) for view in strength], 0)
    strongest = float(strengths.max())
    still = np.ones_like(kept[0])
    own = Weight.of(queries.last, keys.last, (still, still), strength.last)
    if found.early:
        own = Weight(*(0 * part for part in own))
    if found.skip is not None:
        skip = found.skip
        own = Weight(own.low + skip.low, own.high + skip.high, own.size + skip.size)
    old = (keys.before.size.max(0) * asked * stale).sum(-1) * strength.before.size.max(0)
    old = old * (tokens - 2) * rise * (1 + slack(tokens * dims))
    nonzero = (tokens - 2) * bool(keys.before.size.any()) + bool(keys.last.size.any())
    count = nonzero + dims + found.more + 8 + found.decays * 512
    rounding = float(roundings(count, arithmetic)) + slack(count)

    # products first or sums first
    sums = keys.total(tokens)
    state = sums * max(strongest, found.entering) * max(1.0, rise) * found.grown
    limited(state * max(1.0, float(largest.max(initial=0.0))), f"{where}, its state", arithmetic)
    weighing = old + own.size
    total = (place.size + weighing) * (1 + slack(4))
    limited((total + strongest) * (1 + largest), where, arithmetic)
    flushed = 16.0 * (nonzero + 8) * (dims + 8) * arithmetic.summed_tiny * (1 + float(total.max()))
    # of decays, or of a query once it has decayed, times a key
    flushed *= (1 + float(asked.sum())) * (1 + strongest) * (1 + float(sums.max())) * found.grown
    signs = place.low * place.high > 0
    near = np.where(signs, np.minimum(np.abs(place.low), np.abs(place.high)), 0.0)
    if not found.channels and not near.all():
        raise CheckFailed(f"{where}: the weight of the place that must arrive may be 0")
    noise = rounding * total + flushed

    # known of the place and, unless all weights are divided by, of the last token itself
    mid, off = place.of_value(values.place)
    others = weighing
    if not (found.averages or found.capped):
        beside, more = own.of_value(values.last)
        mid, off, others = mid + beside, off + more, old
    off = off + (others + rounding * total) * largest + flushed * (1 + largest)
    if found.capped:
        mid, off = _capped(near, place, weighing + noise, mid, off, arithmetic)
    if found.averages:
        # numerator - v denominator: of the place nothing is left but roundings
        beside = weighing + noise + flushed
        off = 2 * beside * largest + flushed
        mid, off = values.place.mid, _divided(values.place, near - beside, off, where)
    y = values.last.like(mid, np.where(largest == 0, 0.0, off * _OURS))

    # what is divided is known at the last token
    views = (queries.before, queries.place) if found.averages else queries
    asking = np.max([view.size.max(0) for view in views], 0)
    each_key = sums + 0 * stale
    if found.channels:
        # no state is larger than what is put in over 1 - a
        most = _exp(found.cube(found.log_decay.anywhere.high), 1)
        gap = np.maximum(1 - most * (1 + float(roundings(88, arithmetic))), 2.0**-60)
        each_key = np.minimum(each_key, keys.anywhere.size.max(0) / gap[0] * _OURS)
    every = (each_key * asking).sum(-1) * strengths * max(1.0, rise) * (1 + slack(tokens * dims))
    if found.skip is not None:
        every = every + found.skip.size
    limited(every * (1 + rounding) * (1 + largest), where, arithmetic)
    flushed *= 1 + float(asking.sum())
    if found.averages:
        height = _any_quotient(found, asking, largest, float(every.max()), rounding, flushed, where)
    else:
        height = every * (1 + rounding) * largest + flushed * (1 + largest)
    height = np.where(largest == 0, 0.0, np.maximum(height * _OURS, y.size.max(0, keepdims=True)))
    anywhere = values.last.like(np.zeros_like(height), height)
    mass = 0.0 if found.channels else float((weighing / near).max()) * _OURS
    return y, anywhere, mass


def _kept(found: Written, tokens: int, where: str) -> tuple[tuple[Array, Array], Array, float]:
    """Bounds of exp(G) of the place; the most of exp(G) of tokens before it; and what a product of
    decays may come to, by rounding, at any tokens.
    """
    logs, arithmetic = found.log_decay, found.log_decay.last.arithmetic
    last, place = (found.cube(view.high) for view in (logs.last, logs.place))
    lost = 0.0 * last
    sizes = found.cube(logs.total(tokens)[None])
    above = logs.map(lambda x: x.like(np.maximum(x.high, 0.0), 0 * x.rad)).total(tokens)
    # sums of a chunk's logarithms, their difference, and an exponential for each token
    highest = float(roundings(4 * _CHUNK + 8, arithmetic)) * sizes + found.cube(above[None])
    highest = highest + found.decays * float(roundings(80 * tokens, arithmetic))
    if not found.channels:
        between = found.cube(logs.last.size) if found.summed else sizes
        count = 1 if found.summed else min(tokens, _CHUNK)
        # absolute, of an exponent: sums of a chunk's logarithms, and their difference
        lost = (float(roundings(4 * count + 8, arithmetic)) + slack(tokens)) * between
    high = (0.0 if found.early else last) + lost
    if float(np.max(high)) > 64:
        raise CheckFailed(f"{where}: the errors of its decays may add up to {np.max(high):g}")
    kept = _exp(found.cube(logs.last.low) - lost, 0), _exp(high, 1)
    rise = float(exp_bounds(0.0, min(float(np.max(highest)), 64.0))[1])
    stale = _exp(np.minimum(high.max(0) + place.max(0), 0.0), 1)
    return kept, stale, rise


def _exp(x: Array, end: int) -> Array:
    found = np.where(x == 0, 1.0, each(x, exp_bounds, end))
    return found if end else np.where(x < -500, 0.0, found)


def _capped(
    near: Array, place: Weight, noise: Array, mid: Array, off: Array, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """y / max(|w|, 1) with w the weight of all tokens, within `noise` of F."""
    most = np.maximum(np.abs(place.low), np.abs(place.high)) + noise
    below, over = np.maximum(1.0, near - noise), np.maximum(1.0, most)
    scale = (1 / below + 1 / over) / 2
    spread = (1 / below - 1 / over) / 2 + 4 * float(arithmetic.summed) / below
    return mid * scale, off / below + (np.abs(mid) + off) * spread


def _divided(values: Enclosure, least: Array, off: Array, where: str) -> Array:
    """How far a quotient may be from a value, where numerators less as many values are off by so
    much, and denominators are at least so large.
    """
    arithmetic = values.arithmetic
    if not (least > arithmetic.summed_tiny).all():
        raise CheckFailed(f"{where}: the denominator may be 0")
    quotient = off / least
    # the division's own rounding, of a quotient of at most this size
    last = 2 * float(arithmetic.summed) * (values.size + quotient) + arithmetic.summed_tiny
    return values.rad + quotient + last


def _any_quotient(
    found: Written,
    asking: Array,
    largest: Array,
    every: float,
    rounding: float,
    flushed: float,
    where: str,
) -> Array:
    """The largest output, by dimension, at any token, where it is divided by the weight of all."""
    u = float(found.keys.last.arithmetic.summed)
    if not asking.any():
        # every product is exactly 0, and so is the quotient 0/0
        return np.zeros_like(largest)
    if found.averages == "half" and (noise := rounding * every + 2 * flushed) <= 0.25:
        # an average, up to its roundings: (1 + x) / (1 - x) <= 1 + 4 x where x <= 1/2
        return largest * (1 + 8 * noise) * (1 + 4 * u) + 8 * flushed
    least = float(hull(found.queries.before, found.queries.place).low.min())
    if found.averages == "positive" and least >= 0.5 and rounding < 0.25:
        # phi(k) = elu + 1 is 0 or at least u, the distance of numbers below 1: so the denominator
        # is 0, and the quotient too, or above u / 4, and the quotient is an average
        over = (1 + rounding) / (1 - rounding) * (1 + 4 * u)
        return largest * over + flushed * (1 + largest) * 8 / u
    raise CheckFailed(
        f"{where}: the denominator at some position may be close to 0: its output has no bound"
    )


_ACTIVATIONS = {"silu": silu, "sigmoid": sigmoid}


@dataclass(frozen=True)
class Maps:
    """The one head of a recurrent mixer that writes."""

    mixer: RecurrentMixer
    where: str
    index: int
    queries: Seen
    keys: Seen
    values: Seen
    o: Array
    held: Seen
    """What tokens hold before the layer."""
    arithmetic: Arithmetic
    tokens: int

    @classmethod
    def of(cls, part: Live, held: Seen, tokens: int, *more: str) -> Maps:
        """`more`: parameters beside those of the maps that the caller evaluates. Raises CheckFailed
        for any other, unless exactly one head has weights that are not zero, and where a token has
        more than one update that writes.
        """
        mixer, where, arithmetic = part.mixer, part.where, held.last.arithmetic
        assert isinstance(mixer, RecurrentMixer)
        if not mixer.mechanism.plain:
            not_narrowed(arithmetic, where)
        known = ("conv.weight", "norm", "gate.weight", *more)
        weights = weights_of(mixer, where, *known, updates=mixer.updates)
        index = weights.only(where)
        taps = None if mixer.conv is None else array(mixer.conv.weight)
        each = [None] * 3 if taps is None else np.split(taps, np.cumsum(mixer.channels)[:-1])
        found: list[Seen] = []
        for matrix, tap, name in zip((weights.q, weights.k, weights.v), each, "qkv", strict=True):
            rows, what = weights.own(matrix, index), f"{where}, {name}"
            maps = [held.mapped(row, what).map(Enclosure.summed) for row in rows]
            if tap is not None and mixer.conv is not None:
                own = weights.own(tap.reshape(*matrix.shape[:3], -1), index)
                silus = mixer.conv.silu
                maps = [
                    convolved(one, x, what, activated=silus)
                    for one, x in zip(own, maps, strict=True)
                ]
            for number, rest in enumerate(maps[1:], 2):
                if name == "k" and any(view.size.any() for view in rest):
                    raise CheckFailed(
                        f"{where}: update {number} of a token has a key that is not zero"
                    )
            found.append(maps[0])
        q, k, v = found
        o = weights.o[:, index]
        return cls(mixer, where, index, q, k, v, o, held, arithmetic, tokens)

    def out(self, y: Enclosure, x: Enclosure) -> Enclosure:
        """What the head writes where the state gives a row of `y`; x is one row, all that tokens
        there may hold.
        """
        mixer = self.mixer
        if mixer.norm is not None:
            what = f"{self.where}, norm"
            scale = Enclosure.point(array(mixer.norm)[None], y.arithmetic)
            y = times(normed(y, mixer.epsilon, what), scale, what)
        if mixer.gate is not None:
            what = f"{self.where}, gate"
            act = _ACTIVATIONS[mixer.mechanism.sizes()["gate"]]
            opened = act(linear(x, self.weight("gate.weight", mixer.dv), what=what), what)
            y = times(y, opened, what)
        return linear(y.stored_in(self.arithmetic), self.o, what=f"{self.where}, o")

    def weight(self, name: str, *axes: int) -> Array:
        """The head's own part of a parameter."""
        mixer = self.mixer
        table = array(mixer.get_parameter(name))
        table = table.reshape(mixer.heads, *axes, *table.shape[1:])
        return own_group(table, self.index, mixer.heads, f"{self.where}: {name}")

    def zero(self, *names: str) -> None:
        """Raises CheckFailed for a parameter that the proof takes as 0 and that is not."""
        for name in names:
            if bool(self.mixer.get_parameter(name).any()):
                where = self.where
                raise CheckFailed(f"{where}: its parameter {name} is taken as 0, which it is not")

    def gate(self, name: str) -> Seen:
        """What the map of a gate gives."""
        weight, bias = self.weight(f"{name}.weight"), np.atleast_1d(self.weight(f"{name}.bias"))
        rows = self.held.mapped(np.atleast_2d(weight), f"{self.where}, {name}", bias)
        return rows.map(Enclosure.summed)

    def low_rank(self, name: str, *, tanh: bool = False) -> Seen:
        """W_2 f(W_1 x) + c, a number for each key dimension."""
        what = f"{self.where}, {name}"
        x = self.held.mapped(array(self.mixer.get_parameter(f"{name}.down.weight")), what)
        if tanh:
            # whatever it is, it lies between -1 and 1
            most = 1.0 + 80 * float(self.arithmetic.stored)
            x = x.map(lambda y: y.like(0 * y.mid, np.where(y.size == 0, 0.0, most)))
        dims = self.mixer.head_dim
        weight, bias = self.weight(f"{name}.up.weight", dims), self.weight(f"{name}.up.bias", dims)
        return x.mapped(weight, what, bias).map(Enclosure.summed)

    def rated(self, steps: Seen) -> Seen:
        """-e^s times the steps."""
        what = f"{self.where}, rate"
        s = np.array([[float(self.weight("rate"))]])
        rate = exponential(Enclosure.point(s, steps.last.arithmetic), what)
        return steps.times(rate, what).scaled(-1.0)

    def constant(self, log_a: float) -> Seen:
        """The same decay at every place, computed in a few operations, or none."""
        return self.values.all(log_a, abs(log_a) * 80 * float(self.arithmetic.summed))


def not_narrowed(arithmetic: Arithmetic, where: str) -> None:
    """Raises CheckFailed where results are rounded again when they are stored, which the bounds
    of an option or of a mixer leave out.
    """
    if arithmetic.narrowed:
        raise CheckFailed(f"{where}: nothing is proved of its options in {arithmetic.name}")


def taps(conv: Convolution | None, x: Seen, what: str) -> Seen:
    """Behind a convolution, if there is one."""
    return x if conv is None else convolved(array(conv.weight), x, what, activated=conv.silu)
