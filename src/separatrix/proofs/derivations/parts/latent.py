"""A head of latent attention (MLA) as a reader: keys and values are maps of a latent that a norm
has scaled, beside a rotated key.

What scales the latent c of a token at a place is 1 / rms(c). Numbers of c that the place decides
are known place by place, those that the token decides token by token: their squares add up.

Decoding reads in another order than the parallel form (mixers/mla.py): <q W^K, c> instead
of <q, W^K c>, and W^V after the sum over tokens. Both are enclosed: each product of the one is a
product of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.mla import LatentMixer
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array
from separatrix.proofs.derivations.parts.steps import (
    ROOTS,
    Rotated,
    Rows,
    Where,
    own_group,
    reciprocal_root,
    squares,
)
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, linear, one, roundings, slack, times

_WIDE = 2.0**-8
"""A number of a latent that moves by more than this share of its size is the token's."""


@dataclass(frozen=True, kw_only=True)
class LatentHead(Head):
    """Its maps q (rotated numbers first), k and v of the latent, o; and the maps of the latent."""

    latent: Array
    """(latent, width)"""
    turned: Array
    """(rope_dim, width): the key that is rotated."""
    factor: Enclosure
    """What scales the latent at each place: (places, 1)."""

    @property
    def assumes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().assumes, ROOTS)))

    def keys(self, rows: Enclosure, places: Where, where: str) -> Enclosure:
        what = f"{where}, k"
        latents = times(linear(rows, self.latent, what=what), self.factor, what)
        written = linear(latents, self.k, what=what)
        # <q W, c> has two sums of these products where <q, W c> has one
        terms = int(self.k.any(1).sum()) + int(self.k.any(0).sum()) + 8
        size = latents.size @ np.abs(self.k).T * (1 + slack(self.k.shape[1]))
        off = 2 * float(roundings(terms, rows.arithmetic)) + slack(terms)
        more = off * size + 8 * terms * rows.arithmetic.summed_tiny
        written = written.wider(np.where(size == 0, 0.0, more))
        if not len(self.turned):
            return written
        turned = Rows((linear(rows, self.turned, what=what),), places)
        (turned_rows,) = self.behind("k", turned, what).parts
        return written.like(
            np.concatenate([turned_rows.mid, written.mid], 1),
            np.concatenate([turned_rows.rad, written.rad], 1),
        )

    def values(self, rows: Enclosure, where: str) -> Enclosure:
        what = f"{where}, v"
        latents = times(linear(rows, self.latent, what=what), self.factor.hull(), what)
        found = linear(latents, self.v, what=what)
        # one product, before or after the sum over tokens
        off = 2 * one(rows.arithmetic) * found.size + 4 * rows.arithmetic.tiny
        return found.wider(np.where(found.size == 0, 0.0, off))


def latent_head(stream: Stream, part: Live) -> LatentHead:
    """The live head of latent attention. Raises CheckFailed for a parameter that is not read, a
    convolution that mixes tokens, or unless exactly one head has weights that are not zero.
    """
    mixer = part.mixer
    assert isinstance(mixer, LatentMixer)
    where = part.where
    if mixer.mechanism.altered - {"conv", "rope_scaling"}:
        raise CheckFailed(f"{where}: nothing is proved of its options")
    taps = _taps(mixer, where)
    o = array(mixer.o.weight).reshape(mixer.width, mixer.heads, mixer.dv)
    live = np.flatnonzero((o != 0.0).any(axis=(0, 2)))
    if len(live) != 1:
        raise CheckFailed(f"{where}: {len(live)} heads write; a construction uses one per layer")
    index = int(live[0])

    def own(weight: Array, name: str) -> Array:
        rows = weight.reshape(mixer.heads, -1, weight.shape[1])
        return own_group(rows, index, mixer.heads, f"{where}: {name}")

    q = own(array(mixer.q.weight) * taps[0][:, None], "q")
    rotated = np.zeros((0, mixer.width)) if mixer.r is None else array(mixer.r.weight)
    v = own(array(mixer.v.weight), "v")
    if ((v != 0.0).sum(1) > 1).any():
        raise CheckFailed(f"{where}, v: its map of the latent adds numbers up")
    turning = mixer.rotation
    head = LatentHead(
        index=index,
        q=np.concatenate([q[mixer.head_dim :], q[: mixer.head_dim]]),
        k=own(array(mixer.k.weight), "k"),
        v=v,
        o=o[:, index],
        steps=() if turning is None else (Rotated(turning),),
        latent=array(mixer.c.weight) * taps[1][:, None],
        turned=rotated * taps[2][:, None],
        factor=Enclosure.point(np.ones((1, 1))),
    )
    return replace(head, factor=_factor(stream, head.latent, f"{where}, its norm"))


def _taps(mixer: LatentMixer, where: str) -> list[Array]:
    """The newest token's weights in the convolution of q, c and r; ones without."""
    if mixer.conv is None:
        return [np.ones(count) for count in mixer.channels]
    kernel = array(mixer.conv.weight)
    if kernel[:, :-1].any() or not np.isin(kernel[:, -1], (0.0, 1.0)).all():
        raise CheckFailed(f"{where}: its convolution mixes or scales tokens")
    return np.split(kernel[:, -1], np.cumsum(mixer.channels)[:-1])


def _factor(stream: Stream, latent: Array, what: str) -> Enclosure:
    """1 / rms of the latent of a token at each place, whatever the token: (places, 1)."""
    places = linear(stream.by_place, latent, what=what)
    tokens = linear(stream.by_token, latent, what=what)
    token_s = places.rad.max(0) > _WIDE * places.size.max(0)
    at_place = squares((places.only(~token_s),))
    of_token = squares((tokens.only(token_s),)).hull()
    off = slack(4)
    total = at_place.spanning(
        (at_place.low + of_token.low) * (1 - off), (at_place.high + of_token.high) * (1 + off)
    )
    return reciprocal_root(total, len(latent), what)
