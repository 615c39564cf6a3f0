"""The maps of a recurrent layer's live head: queries, keys and values, behind a short convolution
where there is one, and what follows the state: norm, gate and output map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.gates import exponential, normed, sigmoid, silu
from separatrix.proofs.derivations.parts.live_parts import Live, array, weights_of
from separatrix.proofs.derivations.parts.steps import own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, linear, times

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
