"""Proves a chain of hops from the weights: each reads the value at the place that the task asks for
and hands it on, in float32, for every input.

The residual stream is carried along class by class (stream.py). A hop enumerates its queries, finds
the lead of the key the task asks for, and encloses what the layer then writes, for every value that
may stand there; the MLP after it is evaluated on that.

A head of latent attention (MLA) as a reader: keys and values are maps of a latent that a norm
has scaled, beside a rotated key.

What scales the latent c of a token at a place is 1 / rms(c). Numbers of c that the place decides
are known place by place, those that the token decides token by token: their squares add up.

Decoding reads in another order than the parallel form (mixers/mla.py): <q W^K, c> instead
of <q, W^K c>, and W^V after the sum over tokens. Both are enclosed: each product of the one is a
product of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.mla import LatentMixer, MLAMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derived, Layer, derived
from separatrix.proofs.derivations.parts.gates import reciprocal_root, squares
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    readout,
    with_sinks,
)
from separatrix.proofs.derivations.parts.steps import (
    ROOTS,
    Rotated,
    Where,
    own_group,
)
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, linear, one, roundings, slack, times
from separatrix.tasks import Task

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

    def keys(self, rows: Enclosure, places: Where = None) -> Enclosure:
        what = f"{self.where}, k"
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
        turned = self.behind("k", linear(rows, self.turned, what=what), places)
        return written.like(
            np.concatenate([turned.mid, written.mid], 1),
            np.concatenate([turned.rad, written.rad], 1),
        )

    def values(self, rows: Enclosure) -> Enclosure:
        what = f"{self.where}, v"
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
        where=where,
        place=part.place,
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
    at_place = squares(places.only(~token_s))
    of_token = squares(tokens.only(token_s)).hull()
    off = slack(4)
    total = at_place.spanning(
        (at_place.low + of_token.low) * (1 - off), (at_place.high + of_token.high) * (1 + off)
    )
    return reciprocal_root(total, len(latent), what)


class Fetched(NamedTuple):
    """What a hop leaves behind: its proof, and the stream after it."""

    layer: Layer
    stream: Stream


Fetcher = Callable[[Stream, Live, Wanted], Fetched]
"""Proves one hop from the stream before it."""


def derive_chain(
    task: Task,
    model: Model,
    hops: Sequence[Wanted],
    by: Sequence[Fetcher],
    arithmetic: Arithmetic,
) -> Derived:
    """The proof of a chain whose i-th hop is proved by the i-th fetcher. Raises CheckFailed, naming
    the part, where the weights do not bear it out.
    """
    # whatever finds places, the score of the right key leads by it
    live = live_of(model, len(hops), placed=False)
    asking = slice(hops[0].first, hops[0].first + len(hops[0].part))
    stream = Stream.of(model, task.length, asking, arithmetic)
    done: list[Layer] = []
    for number, (part, hop, fetch) in enumerate(zip(live, hops, by, strict=True)):
        if number + 1 < len(hops):
            hop = replace(hop, then=hops[number + 1].part)
        layer, stream = fetch(replace(stream, ends=number == len(hops) - 1), part, hop)
        done.append(layer)
    margin = readout(model, stream.rows(), when="when it was fetched")
    return derived(arithmetic, done, margin)


def head_of(stream: Stream, part: Live) -> Head:
    """The live head of a layer that reads every token. Raises CheckFailed for another layer."""
    return latent_head(stream, part) if type(part.mixer) is MLAMixer else part.softmax_head()


def full_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One head of full attention at the last token, which asks with what the hop before left
    behind.
    """
    head = head_of(stream, part)
    read = read_one(stream, part, hop, head)
    fetched = head.written(read.values, stream.at_last())
    anywhere = read.reading.anywhere(stream.by_place.hull())
    return read.fetched("layers", stream, part, hop, fetched, anywhere)


def elsewhere(stream: Stream, part: Live, fetched: Fetched) -> Fetched:
    """The same fetch, made at another place of the prompt than the last, as the whole prompt sees
    it: every position gets some average of values.
    """
    head = head_of(stream, part)
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)))
    head.numbers(keys, stream.by_place.hull(), stream.at_last())
    seen = with_sinks(head, head.values(stream.by_place.hull()))
    average = any_average(seen, len(keys.mid) + len(head.rivals), part.where)
    anywhere = head.written(average, stream.by_place.hull())
    return fetched._replace(stream=stream.after(part, anywhere, anywhere))


class Read(NamedTuple):
    """What one head reads at the last token, one row per value of the place asked for, before the
    output map.
    """

    reading: Reading
    values: Enclosure
    queries: Queries
    keys: Enclosure

    def fetched(
        self,
        kind: str,
        stream: Stream,
        part: Live,
        hop: Wanted,
        fetched: Enclosure,
        anywhere: Enclosure,
        **more: Any,
    ) -> Fetched:
        """The hop, once the outputs at the last token and anywhere are known."""
        after = stream.after(part, fetched, anywhere, hop.then)
        return Fetched(self.reading.layer(hop.fetches, kind, **more), after)


def read_one(stream: Stream, part: Live, hop: Wanted, head: Head, *, kept: bool = False) -> Read:
    """One softmax that reads the place asked for. `kept`: what it reads stays in the arithmetic of
    sums. Raises CheckFailed where another key may win.
    """
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)))
    queries = Queries.of(head, hop, stream)
    values = head.values(stream.by_token)
    values = values.summed() if kept else values
    reading = Reading.won(head, queries, keys, hop, values.hull())
    head.numbers(keys, stream.by_place.hull(), stream.at_last())
    return Read(reading, reading.read(values.rows(slice(0, hop.values))), queries, keys)
