"""Proves that a short convolution hands on numbers of tokens some places back, unrounded.

    y_h = c_h sum_r w_r (b u_h)_{i-r},   u_h = x[source],   b_h = c_h = x[one] = 1,   one w_r is 1

Products with 1 and sums with 0 round nothing, in any arithmetic. So coordinate `target` holds at
every place what `source` held `back` places before it, and 0 where no such place is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.mixers.channels import ShortConvolutionMixer
from separatrix.models.model import Model
from separatrix.proofs.derivations.parts.derivation import Layer
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Array, Enclosure, stacked

_MAPS = ("v.weight", "b.weight", "c.weight", "o.weight", "conv.weight")


@dataclass(frozen=True)
class Taps:
    """Coordinates of the stream that are written, by which others, how many tokens back."""

    part: Live
    target: NDArray[np.int64]
    source: NDArray[np.int64]
    back: NDArray[np.int64]

    def lag(self, weight: Array, back: int) -> Array:
        """What rows of a map that stands behind this layer make of the token so many places back,
        as rows that are multiplied with what that token holds before this layer.
        """
        found = np.zeros_like(weight)
        if not back:
            found[:] = weight
            found[:, self.target] = 0.0
            return found
        some = self.back == back
        # no two targets hold the same source
        found[:, self.source[some]] = weight[:, self.target[some]]
        return found

    @property
    def lags(self) -> range:
        return range(int(self.back.max(initial=0)) + 1)

    def views(self, rows: Enclosure, before: int) -> list[Enclosure]:
        """Tokens behind this layer, a row for each id and then one for none: by their own id, and
        by that of the token 1, ..., `before` before them. `rows`: what tokens of each id hold.
        """
        every = rows.hull()
        found = [self.beside(stacked(rows, every), every)]
        anyone = self.beside(every, every).repeated(len(rows.mid) + 1)
        for back in range(1, before + 1):
            some = self.back == back
            mid, rad = anyone.mid.copy(), anyone.rad.copy()
            for numbers, held in ((mid, rows.mid), (rad, rows.rad)):
                numbers[:-1, self.target[some]] = held[:, self.source[some]]
                numbers[-1, self.target[some]] = 0.0
            found.append(rows.like(mid, rad))
        return found

    def beside(self, rows: Enclosure, before: Enclosure) -> Enclosure:
        """The rows with whatever is brought to them; `before` (one row): what any token holds."""
        mid, rad = rows.mid.copy(), rows.rad.copy()
        low = np.minimum(before.low[0, self.source], 0.0)
        high = np.maximum(before.high[0, self.source], 0.0)
        mid[:, self.target] = (low + high) / 2
        rad[:, self.target] = (high - low) / 2 * (1 + 2.0**-40)
        return rows.like(mid, rad)

    def layer(self, brings: str) -> Layer:
        mechanism = self.part.mixer.mechanism.name
        most = int(self.back.max(initial=0))
        numbers = len(self.target)
        said = entry(
            self.part.place,
            carries=brings,
            mechanism=mechanism,
            back=most,
            numbers=numbers,
            fetch_error=0,
        )
        return Layer(said, "carriers")


def exact_taps(model: Model, part: Live, length: int) -> Taps:
    """What the layer hands on, unrounded. Raises CheckFailed where it does anything else."""
    mixer, where = part.mixer, part.where
    if not isinstance(mixer, ShortConvolutionMixer):
        raise part.other("a short convolution that hands tokens on")
    if any(tensor.any() for tensor in part.mlp.values()):
        raise CheckFailed(f"{where}: nothing is proved about an MLP behind a short convolution")
    for name, _ in mixer.named_parameters():
        if name not in _MAPS:
            raise CheckFailed(f"{where}: nothing is proved about its parameter {name}")
    v, b, c, o, conv = (array(mixer.get_parameter(name)) for name in _MAPS)
    used = (o != 0.0).any(0)
    if any(rows[~used].any() for rows in (v, b, c, conv)):
        raise CheckFailed(f"{where}: a channel that writes nothing is not zero")
    v, b, c, o, conv = v[used], b[used], c[used], o[:, used].T, conv[used]
    always = _ones(model, length)
    for name, rows in (("b", b), ("c", c)):
        if not always[_only(rows, f"{where}, {name}")].all():
            raise CheckFailed(f"{where}: {name} is not 1 at every token")
    target = _only(o, f"{where}, o")
    held = array(model.embed.weight)[:, target].any() or (
        isinstance(model.position, nn.Embedding) and array(model.position.weight)[:, target].any()
    )
    if held or len(np.unique(target)) < len(target):
        raise CheckFailed(f"{where}: it writes where something stands already, or twice")
    back = conv.shape[1] - 1 - _only(conv, f"{where}, conv")
    if not back.all():
        raise CheckFailed(f"{where}: a channel reads the token itself and none before it")
    source = _only(v, f"{where}, v")
    if len(np.unique(np.stack([source, back]), axis=1).T) < len(source):
        raise CheckFailed(f"{where}: two channels bring the same number, whose sum may be rounded")
    return Taps(part, target, source, back)


def _only(rows: Array, where: str) -> NDArray[np.int64]:
    """The column of the one number of each row that is not 0, which is 1."""
    if ((rows != 0.0).sum(1) != 1).any() or (rows.max(1) != 1.0).any():
        raise CheckFailed(f"{where}: a channel is not a copy of one number")
    return rows.argmax(1)


def _ones(model: Model, length: int) -> NDArray[np.bool_]:
    """Coordinates that hold 1 at every token, whatever it is."""
    embed = array(model.embed.weight)
    if not isinstance(model.position, nn.Embedding):
        return (embed == 1.0).all(0)
    position = array(model.position.weight)[:length]
    of_token = (embed == 1.0).all(0) & ~position.any(0)
    return of_token | ((position == 1.0).all(0) & ~embed.any(0))


def head_behind(taps: Taps, part: Live) -> Head:
    """A plain head whose keys are made of the token before alone, its queries and values of the
    token itself, as maps of what tokens hold before the short convolution.
    """
    head = part.full_head()
    if head.q[:, taps.target].any() or head.v[:, taps.target].any():
        raise CheckFailed(f"{part.where}: queries or values read what was brought to their token")
    for back in taps.lags:
        if back != 1 and taps.lag(head.k, back).any():
            raise CheckFailed(f"{part.where}: keys are not made of the token before alone")
    return replace(head, k=taps.lag(head.k, 1))
