"""Gates and activations of recurrent layers, number by number, as computed.

Each is rounded by at most 80 u of its size, which covers exp within 64 u and the operations around
it, or by 8 u where it is a logarithm near 0. Arguments beyond +-500 are taken as +-500: what is
beyond differs from that by less than any rounding.

The maps of a recurrent layer's live head: queries, keys and values, behind a short convolution
where there is one, and what follows the state: norm, gate and output map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.recurrent import SHORTEST_LENGTH, RecurrentMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.balls import exp_bounds, sigmoid_bounds, softplus_bounds
from separatrix.proofs.derivations.parts.live_parts import Live, array, weights_of
from separatrix.proofs.derivations.parts.steps import own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, limited, linear, roundings, slack, times

_MOST = 2.0**60
"""The most that an argument may be; beyond, its exponential would be of no use."""
_LAST = 500.0
_LOWEST = -0.27847
"""Below every value of silu, which is smallest between -1.279 and -1.278."""

Bounds = Callable[[float, float], tuple[float, float]]


def sigmoid(x: Enclosure, what: str) -> Enclosure:
    low, high = _ends(x, sigmoid_bounds, what)
    return _rounded(x, low, np.minimum(high, 1.0))


def softplus(x: Enclosure, what: str) -> Enclosure:
    """ln(1 + e^x): at least 0, and off by at most 8 u of its size or 1."""
    low, high = _ends(x, softplus_bounds, what)
    # beyond the last argument it is the argument itself, up to less than any rounding
    high = np.maximum(high, x.high + 2.0**-40)
    low = np.where(x.low > _LAST, x.low, low)
    off = 8 * float(x.arithmetic.summed) * np.maximum(1.0, high)
    return x.spanning(np.maximum(low - off, 0.0), high + off)


def log_sigmoid(x: Enclosure, what: str) -> Enclosure:
    """-ln(1 + e^-x)."""
    return -softplus(-x, what)


def exponential(x: Enclosure, what: str) -> Enclosure:
    if float(x.high.max(initial=0.0)) > 64:
        raise CheckFailed(f"{what}: e^{float(x.high.max()):g} is of no use")
    low, high = _ends(x, exp_bounds, what)
    return _rounded(x, low, high)


def silu(x: Enclosure, what: str) -> Enclosure:
    """x sigmoid(x); 0 stays 0."""
    # at each end a number times a factor within bounds
    first = _product(x.low, *_ends(Enclosure.point(x.low), sigmoid_bounds, what))
    last = _product(x.high, *_ends(Enclosure.point(x.high), sigmoid_bounds, what))
    low = np.minimum(first[0], last[0])
    high = np.maximum(first[1], last[1])
    turns = (x.low < -1.278) & (x.high > -1.279)
    low = np.where(turns, np.minimum(low, _LOWEST), low)
    found = _rounded(x, low, high)
    zero = x.size == 0
    return x.like(np.where(zero, 0.0, found.mid), np.where(zero, 0.0, found.rad))


def _product(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    ends = np.stack([x * low, x * high])
    return np.nextafter(ends.min(0), -np.inf), np.nextafter(ends.max(0), np.inf)


def _ends(x: Enclosure, bounds: Bounds, what: str) -> tuple[Array, Array]:
    """At or below, and at or above, what a function that rises gives."""
    if float(x.size.max(initial=0.0)) > _MOST:
        raise CheckFailed(f"{what}: its argument may be {float(x.size.max()):g}")
    return each(x.low, bounds, 0), each(x.high, bounds, 1)


def each(x: Array, bounds: Bounds, end: int) -> Array:
    """One end of the bounds at each number, taken as +-500 beyond that; equal numbers are asked for
    once.
    """
    clipped = np.clip(x, -_LAST, _LAST)
    found, inverse = np.unique(clipped, return_inverse=True)
    values = np.array([bounds(number, number)[end] for number in found.tolist()])
    return values[inverse].reshape(x.shape)


def _rounded(x: Enclosure, low: Array, high: Array) -> Enclosure:
    arithmetic = x.arithmetic
    off = 80 * float(arithmetic.summed) * np.maximum(np.abs(low), np.abs(high))
    off = off + arithmetic.summed_tiny
    return x.spanning(low - off, high + off)


def unit(x: Enclosure, what: str) -> Enclosure:
    """Each row divided by its length, or by SHORTEST_LENGTH where it is shorter than that."""
    arithmetic = x.arithmetic
    u = float(arithmetic.summed)
    dims = x.mid.shape[1]
    # each square may be a number and their sum none: the length is infinite, the quotient 0
    squares = (x.size * x.size).sum(1, keepdims=True)
    limited(squares * (1 + slack(dims)), f"{what}: its squares", arithmetic)
    count = dims + 4
    off = float(roundings(count, arithmetic)) + slack(count)
    flushed = 4 * count * arithmetic.summed_tiny
    # squares that are flushed to zero make a length too short
    least = (x.least * x.least).sum(1, keepdims=True)
    shortest = np.sqrt(np.maximum(least * (1 - off) - flushed, 0.0)) * (1 - off)
    longest = np.sqrt(squares * (1 + off) + flushed) * (1 + off)
    below = np.maximum(shortest, SHORTEST_LENGTH * (1 - u))
    over = np.maximum(longest, SHORTEST_LENGTH * (1 + u))
    # no number of a vector of length 1 is larger than 1, but for roundings: squares that are
    # flushed to zero belong to vectors shorter than SHORTEST_LENGTH
    return _divided(x, below, over, 2 * u + slack(4), 1 + 4 * off)


def normed(x: Enclosure, epsilon: float) -> Enclosure:
    """Each row divided by the root of the mean of its squares, with epsilon under the root."""
    dims = x.mid.shape[1]
    arithmetic = x.arithmetic
    off = float(roundings(dims + 16, arithmetic)) + slack(dims + 16)
    flushed = 4 * dims * arithmetic.summed_tiny
    low = ((x.least**2).mean(1, keepdims=True) + epsilon) * (1 - off) - flushed
    high = ((x.size**2).mean(1, keepdims=True) + epsilon) * (1 + off) + flushed
    # the root and its inverse: two more roundings, within those of `off`
    below = np.sqrt(np.maximum(low, epsilon / 2)) / (1 + off)
    # a number is no larger than the root of the sum of all squares
    return _divided(x, below, np.sqrt(high) / (1 - off), off, np.sqrt(dims) * (1 + 4 * off))


def _divided(x: Enclosure, below: Array, over: Array, off: float, largest: float) -> Enclosure:
    """Rows over numbers between these, off by such a share, of which none is larger than that."""
    ends = np.stack([x.low / below, x.low / over, x.high / below, x.high / over])
    found = x.spanning(ends.min(0), ends.max(0))
    found = found.wider(off * found.size + x.arithmetic.summed_tiny)
    cut = x.spanning(np.maximum(found.low, -largest), np.minimum(found.high, largest))
    zero, inside = x.size == 0, found.size <= largest
    return x.like(
        np.where(zero, 0.0, np.where(inside, found.mid, cut.mid)),
        np.where(zero, 0.0, np.where(inside, found.rad, cut.rad)),
    )


_ACTIVATIONS = {"silu": silu, "sigmoid": sigmoid}


@dataclass(frozen=True)
class Mapped:
    """A map behind the tap of a convolution that reads the token itself; `taps` is None without
    convolution.
    """

    weight: Array
    taps: Array | None
    silu: bool

    def of(self, x: Enclosure, what: str) -> Enclosure:
        y = linear(x, self.weight, what=what).summed()
        if self.taps is None:
            return y
        y = times(y, Enclosure.point(self.taps[None], y.arithmetic), what)
        return silu(y, what) if self.silu else y


@dataclass(frozen=True)
class Maps:
    """The one head of a recurrent mixer that writes."""

    mixer: RecurrentMixer
    where: str
    index: int
    q: Mapped
    k: tuple[Mapped, ...]
    """For each update of a token."""
    v: tuple[Mapped, ...]
    o: Array
    stream: Stream
    """What tokens hold before the layer."""

    @classmethod
    def of(cls, part: Live, stream: Stream, *more: str) -> Maps:
        """`more`: parameters beside those of the maps that the caller evaluates. Raises CheckFailed
        for any other, and unless exactly one head has weights that are not zero.
        """
        mixer = part.mixer
        assert isinstance(mixer, RecurrentMixer)
        where = part.where
        if not mixer.mechanism.plain:
            not_narrowed(stream.last.arithmetic, where)
        known = ("conv.weight", "norm", "gate.weight", *more)
        weights = weights_of(mixer, where, *known, updates=mixer.updates)
        index = weights.only(where)
        silu = mixer.conv is not None and mixer.conv.silu
        taps = None if mixer.conv is None else newest(mixer.conv, where)
        each = [None] * 3 if taps is None else np.split(taps, np.cumsum(mixer.channels)[:-1])
        found: list[tuple[Mapped, ...]] = []
        for matrix, tap in zip((weights.q, weights.k, weights.v), each, strict=True):
            rows = weights.own(matrix, index)
            # a tap for each row of the matrix
            of = None if tap is None else weights.own(tap.reshape(matrix.shape[:3]), index)
            found.append(
                tuple(
                    Mapped(row, None if of is None else of[update], silu)
                    for update, row in enumerate(rows)
                )
            )
        (q,), k, v = found
        return cls(mixer, where, index, q, k, v, weights.o[:, index], stream)

    def queries(self, x: Enclosure) -> Enclosure:
        return self.q.of(x, f"{self.where}, q")

    def keys(self, x: Enclosure, update: int = 0) -> Enclosure:
        return self.k[update].of(x, f"{self.where}, k")

    def values(self, x: Enclosure, update: int = 0) -> Enclosure:
        return self.v[update].of(x, f"{self.where}, v")

    def out(self, y: Enclosure, x: Enclosure) -> Enclosure:
        """What the head writes where the state gives a row of `y`; x is one row, all that tokens
        there may hold.
        """
        mixer = self.mixer
        if mixer.norm is not None:
            scale = Enclosure.point(array(mixer.norm)[None], y.arithmetic)
            y = times(normed(y, mixer.epsilon), scale, f"{self.where}, norm")
        if mixer.gate is not None:
            what = f"{self.where}, gate"
            act = _ACTIVATIONS[mixer.mechanism.sizes()["gate"]]
            opened = act(linear(x, self.weight("gate.weight", mixer.dv), what=what), what)
            y = times(y, opened, what)
        return linear(y.stored_in(self.stream.last.arithmetic), self.o, what=f"{self.where}, o")

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

    def gate(self, name: str) -> Enclosure:
        """What the map of a gate gives at each place."""
        weight, bias = self.weight(f"{name}.weight"), np.atleast_1d(self.weight(f"{name}.bias"))
        what = f"{self.where}, {name}"
        return linear(self.stream.by_place, np.atleast_2d(weight), bias, what=what).summed()

    def low_rank(self, name: str, *, tanh: bool = False) -> Enclosure:
        """W_2 f(W_1 x) + c at each place, a number for each key dimension."""
        what = f"{self.where}, {name}"
        down = array(self.mixer.get_parameter(f"{name}.down.weight"))
        x = linear(self.stream.by_place, down, what=what)
        if tanh:
            # whatever it is, it lies between -1 and 1
            most = 1.0 + 80 * float(x.arithmetic.stored)
            x = x.like(np.zeros_like(x.mid), np.where(x.size == 0, 0.0, most))
        dims = self.mixer.head_dim
        weight, bias = self.weight(f"{name}.up.weight", dims), self.weight(f"{name}.up.bias", dims)
        return linear(x, weight, bias, what=what).summed()

    def rated(self, steps: Enclosure) -> Enclosure:
        """-e^s times the steps."""
        what = f"{self.where}, rate"
        s = np.array([[float(self.weight("rate"))]])
        rate = exponential(Enclosure.point(s, steps.arithmetic), what)
        return -times(steps, rate, what)

    def constant(self, log_a: float) -> Enclosure:
        """The same decay at every place, computed in a few operations, or none."""
        full = np.full((len(self.stream.by_place.mid), 1), log_a)
        inner = self.stream.by_place.arithmetic.inner
        return Enclosure(full, np.abs(full) * 80 * float(inner.summed), inner)


def not_narrowed(arithmetic: Arithmetic, where: str) -> None:
    """Raises CheckFailed where results are rounded again when they are stored, which the bounds
    of an option or of a mixer leave out.
    """
    if arithmetic.narrowed:
        raise CheckFailed(f"{where}: nothing is proved of its options in {arithmetic.name}")


def newest(conv: Convolution, where: str) -> Array:
    """Weights of the taps that read the token itself. Raises CheckFailed where another is used."""
    weight = array(conv.weight)
    if weight[:, :-1].any():
        raise CheckFailed(f"{where}: its convolution mixes tokens, which the proof does not cover")
    return weight[:, -1]
