"""What arrives at the last token through mixers whose state is a vector: short convolutions, Mamba,
RG-LRU.

    shortconv   y = O (c_i * sum_r w_r (b_{i-r} * u_{i-r}))
    mamba       h_i = exp(D_i A) h_{i-1} + D_i u_i B_i,   y_i = O (<C_i, h_i> + E u_i)
    rglru       h_i = a_i h_{i-1} + sqrt(1 - a_i^2) g_i u_i,   y_i = O h_i

The token that must arrive stands right before the last. Two steps are evaluated channel by channel,
from a state that is bounded whatever came before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.mixer import EPSILON
from separatrix.mixers.channels import SCALE, MambaMixer, RGLRUMixer, ShortConvolutionMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.proofs.derivations.parts.arriving import Arrival
from separatrix.proofs.derivations.parts.gates import exponential, normed, sigmoid, silu, softplus
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.derivations.parts.recurrent_maps import not_narrowed
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    add,
    limited,
    linear,
    roundings,
    slack,
    times,
)

_OURS = 1 + 2.0**-40


class Seen(NamedTuple):
    """One quantity at the place, a row for each thing that may stand there; at the last token; at
    any place before the two; and at any place at all.
    """

    place: Enclosure
    last: Enclosure
    before: Enclosure
    anywhere: Enclosure

    def map(self, function: Callable[[Enclosure], Enclosure]) -> Seen:
        return Seen(*map(function, self))

    def times(self, other: Seen, what: str) -> Seen:
        return Seen(*(times(x, y, what) for x, y in zip(self, other, strict=True)))


def _held(stream: Stream, place: int, at_place: Enclosure, where: str) -> Seen:
    """What the residual stream holds. Raises CheckFailed unless the place is the last but one."""
    tokens = len(stream.by_place.mid)
    not_narrowed(stream.last.arithmetic, where)
    if place != tokens - 2:
        raise CheckFailed(f"{where}: what is carried stands right before the last token")
    # a prompt of two tokens has none before: then this is more than there is
    before = stream.by_place.rows(slice(0, max(1, place))).hull()
    return Seen(at_place, stream.at_last(), before, stream.by_place.hull())


def _map(seen: Seen, weight: Array, what: str) -> Seen:
    return seen.map(lambda x: linear(x, weight, what=what))


def _convolved(conv: Convolution, x: Seen, what: str) -> Seen:
    """Through a convolution; taps further back than one token read any place, or nothing."""
    weight = array(conv.weight)
    kernel = weight.shape[1]
    arithmetic = x.last.arithmetic
    taps = [Enclosure.point(weight[:, kernel - 1 - r][None], arithmetic) for r in range(kernel)]

    def total(first: list[Enclosure], rows: int) -> Enclosure:
        found = Enclosure.point(np.zeros((rows, len(weight))), arithmetic)
        for tap, one in zip(taps, first, strict=True):
            found = add(found, times(tap, one, what), what)
        return silu(found, what) if conv.silu else found

    rows = len(x.place.mid)
    # before the first token stand zeros
    any_ = x.last.spanning(np.minimum(x.anywhere.low, 0.0), np.maximum(x.anywhere.high, 0.0))
    old = x.last.spanning(np.minimum(x.before.low, 0.0), np.maximum(x.before.high, 0.0))
    more = kernel - 1
    # a row at the last token for each thing at the place, which stands one token back
    last = total([x.last, x.place, *[old] * (more - 1)][:kernel], rows)
    return Seen(
        total([x.place, *[old] * more], rows),
        last,
        total([x.before, *[old] * more], 1),
        total([x.anywhere, *[any_] * more], 1),
    )


def _inputs(mixer: MambaMixer | RGLRUMixer, held: Seen, where: str) -> Seen:
    u = _map(held, array(mixer.v.weight), where)
    return u if mixer.conv is None else _convolved(mixer.conv, u, where)


def short_convolution(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, ShortConvolutionMixer)
    held = _held(stream, place, at_place, where)
    v, b, c = (_map(held, array(one.weight), where) for one in (mixer.v, mixer.b, mixer.c))
    y = c.times(_convolved(mixer.conv, b.times(v, where), where), where)
    o = array(mixer.o.weight)
    return Arrival(linear(y.last, o, what=where), linear(y.anywhere, o, what=where), 0.0)


def mamba(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, MambaMixer)
    u = _inputs(mixer, _held(stream, place, at_place, where), where)
    steps = u.map(lambda x: _steps(mixer, x, where))
    b = u.map(lambda x: _read(mixer, "b", x, where))
    c = u.map(lambda x: _read(mixer, "c", x, where))
    tokens = len(stream.by_place.mid)
    # D u B and exp(D A): a column for each number of each channel
    channels, numbers = mixer.channels, mixer.numbers
    written = steps.times(u, where).map(lambda x: _repeated(x, numbers))
    written = written.times(b.map(lambda x: _tiled(x, channels)), where)
    rates = exponential(_point(mixer.rate.reshape(1, -1), stream), f"{where}, rate")
    slow = steps.map(lambda x: times(_repeated(x, numbers), rates, where))
    kept = slow.map(lambda x: exponential(-x, where))
    # no state is larger than the sum of all that was written
    arithmetic = stream.last.arithmetic
    tiny = arithmetic.tiny
    many = tokens * (1 + float(roundings(64 * tokens + 64, arithmetic)))
    state = _two_steps(_within(many * written.before.size + tiny, u.last), kept, written, where)
    read = times(state, _tiled(c.last, channels), where)
    sums = _summed(read, numbers)
    skip = _point(mixer.skip[None], stream)
    y = add(sums, times(skip, u.last, where), where)
    top = _within(many * (written.anywhere.size + tiny), u.last)
    most = _summed(times(top, _tiled(c.anywhere, channels), where), numbers).size
    most = most + times(skip, u.anywhere, where).size * (1 + 2.0**-20)
    return _written(y, most, array(mixer.o.weight), where)


def _summed(x: Enclosure, numbers: int) -> Enclosure:
    """The sum over the numbers of each channel."""
    mid, rad, size = (
        part.reshape(len(x.mid), -1, numbers).sum(2) for part in (x.mid, x.rad, x.size)
    )
    off = rad + (float(roundings(numbers + 256, x.arithmetic)) + slack(numbers)) * size
    off = off + x.arithmetic.tiny
    return x.like(mid, np.where(size == 0, 0.0, off * _OURS))


def _written(y: Enclosure, most: Array, o: Array, where: str) -> Arrival:
    """Rows at the last token, and the most at any."""
    anywhere = _within(np.maximum(most, y.size.max(0, keepdims=True)), y)
    return Arrival(linear(y, o, what=where), linear(anywhere, o, what=where), 0.0)


def _within(size: Array, like: Enclosure) -> Enclosure:
    limited(size, "a state", like.arithmetic)
    return like.like(np.zeros_like(size), size)


def _point(parameter: Tensor, stream: Stream) -> Enclosure:
    return Enclosure.point(array(parameter), stream.last.arithmetic)


def _two_steps(stale: Enclosure, kept: Seen, put: Seen, where: str) -> Enclosure:
    """The state at the last token, from what it may be before the place: two steps, and by what a
    chunk of the parallel form rounds, which takes decays from its start.
    """
    first = add(times(stale, kept.place, where), put.place, where)
    state = add(times(first, kept.last, where), put.last, where)
    off = float(roundings(512, state.arithmetic)) * state.size + state.arithmetic.tiny
    return state.wider(off * (state.size > 0))


def _repeated(x: Enclosure, numbers: int) -> Enclosure:
    """A column for each number of each channel, from one for each channel."""
    return x.like(np.repeat(x.mid, numbers, 1), np.repeat(x.rad, numbers, 1))


def _tiled(x: Enclosure, channels: int) -> Enclosure:
    """The same from one for each number."""
    return x.like(np.tile(x.mid, (1, channels)), np.tile(x.rad, (1, channels)))


def _steps(mixer: MambaMixer, u: Enclosure, where: str) -> Enclosure:
    low = linear(u, array(mixer.dt.down.weight), what=where)
    if mixer.read is not None:
        low = normed(low, EPSILON)
    up = linear(low, array(mixer.dt.up.weight), array(mixer.dt.up.bias), what=where)
    return softplus(up, f"{where}, dt")


def _read(mixer: MambaMixer, name: str, u: Enclosure, where: str) -> Enclosure:
    """B or C."""
    found = linear(u, array(mixer.get_parameter(f"{name}.weight")), what=where)
    if mixer.read is None:
        return found
    found = normed(found, EPSILON)
    if name == "b":
        return found
    scale = Enclosure.point(array(mixer.read)[None], found.arithmetic)
    return times(found, scale, where)


def rglru(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, RGLRUMixer)
    u = _inputs(mixer, _held(stream, place, at_place, where), where)
    speed = softplus(_point(mixer.rate[None], stream), f"{where}, rate")
    opened, gated = (
        u.map(
            lambda x, gate=gate: sigmoid(
                linear(x, array(gate.weight), array(gate.bias), what=where), where
            )
        )
        for gate in (mixer.r, mixer.g)
    )
    slow = opened.map(lambda r: times(speed.like(SCALE * speed.mid, SCALE * speed.rad), r, where))
    kept = slow.map(lambda x: exponential(-x, where))
    put = slow.map(_root).times(gated, where).times(u, where)
    tokens = len(stream.by_place.mid)
    stale = _within(_most(kept.before, put.before, tokens), u.last)
    h = _two_steps(stale, kept, put, where)
    return _written(h, _most(kept.anywhere, put.anywhere, tokens), array(mixer.o.weight), where)


def _most(kept: Enclosure, put: Enclosure, tokens: int) -> Array:
    """The most that a state may be: the sum of all that was put in, or put / (1 - a)."""
    many = tokens * put.size * (1 + float(roundings(tokens + 64, put.arithmetic)))
    gap = np.maximum(1 - kept.high, 2.0**-60)
    rounded = 1 + 64 * float(put.arithmetic.summed)
    return np.minimum(put.size / gap * rounded, many) + put.arithmetic.tiny


def _root(slow: Enclosure) -> Enclosure:
    """sqrt(-expm1(-2 x)), of at least the smallest normal number, within 16 u of its size."""
    off = max(2.0**-16, 16 * float(slow.arithmetic.summed))
    tiny = slow.arithmetic.tiny
    low = np.sqrt(-np.expm1(-2 * np.maximum(slow.low, 0.0))) * (1 - off)
    high = np.sqrt(np.maximum(-np.expm1(-2 * np.maximum(slow.high, 0.0)), tiny)) * (1 + off)
    return slow.spanning(np.minimum(low, high), high)
