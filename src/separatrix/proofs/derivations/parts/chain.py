"""Proves a chain of hops from the weights: each reads the value at the place that the task asks for
and hands it on, in float32, for every input.

The residual stream is carried along class by class (stream.py). A hop enumerates its queries, finds
the lead of the key the task asks for, and encloses what the layer then writes, for every value that
may stand there; the MLP after it is evaluated on that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from separatrix.mixers import Mixer
from separatrix.mixers.full import FoxMixer, FullMixer
from separatrix.mixers.mla import MLAMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derived, Layer, derived
from separatrix.proofs.derivations.parts.latent import latent_head
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    any_scores,
    prove_readout,
    with_sinks,
)
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Enclosure
from separatrix.tasks import Task


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
    return derived(arithmetic, done, prove_readout(model, stream))


_HEADS: dict[type[Mixer], Callable[[Stream, Live], Head]] = {
    FullMixer: lambda stream, part: part.softmax_head(),
    FoxMixer: lambda stream, part: part.softmax_head(),
    MLAMixer: latent_head,
}
"""Mixers whose heads compare a query with the keys of all tokens."""


def head_of(stream: Stream, part: Live) -> Head:
    """The live head of a layer that reads every token. Raises CheckFailed for another layer."""
    of = _HEADS.get(type(part.mixer))
    if of is None:
        raise part.other("full attention")
    return of(stream, part)


def full_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One head of full attention at the last token, which asks with what the hop before left
    behind.
    """
    head = head_of(stream, part)
    read = read_one(stream, part, hop, head)
    fetched = head.written(read.values, stream.at_last(), part.where)
    anywhere = read.reading.anywhere(stream.by_place.hull())
    return read.fetched("layers", stream, hop, fetched, anywhere)


def elsewhere(stream: Stream, part: Live, fetched: Fetched) -> Fetched:
    """The same fetch, made at another place of the prompt than the last, as the whole prompt sees
    it: every position gets some average of values.
    """
    head = head_of(stream, part)
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)), part.where)
    any_scores(stream, head, keys, part.where)
    seen = with_sinks(head, head.values(stream.by_place.hull(), part.where))
    average = any_average(seen, len(keys.mid) + len(head.rivals), part.where)
    anywhere = head.written(average, stream.by_place.hull(), part.where)
    after = stream.after(part, anywhere, anywhere)
    return fetched._replace(stream=after.stream)


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
        hop: Wanted,
        fetched: Enclosure,
        anywhere: Enclosure,
        **more: Any,
    ) -> Fetched:
        """The hop, once the outputs at the last token and anywhere are known."""
        part = self.reading.part
        after = stream.after(part, fetched, anywhere, hop.then)
        left = after.left(part, fetched)
        return Fetched(self.reading.layer(hop.fetches, left, kind, **more), after.stream)


def read_one(stream: Stream, part: Live, hop: Wanted, head: Head, *, kept: bool = False) -> Read:
    """One softmax that reads the place asked for. `kept`: what it reads stays in the arithmetic of
    sums. Raises CheckFailed where another key may win.
    """
    where = part.where
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)), where)
    queries = Queries.of(head, hop, stream, where)
    values = head.values(stream.by_token, where)
    values = values.summed() if kept else values
    reading = Reading.won(part, head, queries, keys, hop, values.hull())
    any_scores(stream, head, keys, where)
    return Read(reading, reading.read(values.rows(slice(0, hop.values))), queries, keys)
