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
from separatrix.proofs.derivations.parts.gates import normed, sigmoid, silu
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
    norm: Array | None
    gate: Array | None
    stored: Arithmetic

    @classmethod
    def of(cls, part: Live, stream: Stream, *more: str) -> Maps:
        """`more`: parameters beside those of the maps that the caller evaluates. Raises CheckFailed
        for any other, and unless exactly one head has weights that are not zero.
        """
        mixer = part.mixer
        assert isinstance(mixer, RecurrentMixer)
        where = part.where
        stored = stream.last.arithmetic
        if not mixer.mechanism.plain:
            not_narrowed(stored, where)
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
        gate = None
        if mixer.gate is not None:
            table = array(mixer.gate.weight)
            table = table.reshape(mixer.heads, mixer.dv, -1)
            gate = own_group(table, index, mixer.heads, f"{where}: its gate")
        return cls(
            mixer,
            where,
            index,
            found[0][0],
            found[1],
            found[2],
            weights.o[:, index],
            None if mixer.norm is None else array(mixer.norm),
            gate,
            stored,
        )

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
        if self.norm is not None:
            scale = Enclosure.point(self.norm[None], y.arithmetic)
            y = times(normed(y, self.mixer.epsilon), scale, f"{self.where}, norm")
        if self.gate is not None:
            what = f"{self.where}, gate"
            act = _ACTIVATIONS[self.mixer.mechanism.sizes()["gate"]]
            opened = act(linear(x, self.gate, what=what), what)
            y = times(y, opened, what)
        return linear(y.stored_in(self.stored), self.o, what=f"{self.where}, o")


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
