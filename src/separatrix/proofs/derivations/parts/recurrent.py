"""Proves one hop by a bounded layer: it brings what stands at one place to the last token."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.channels import MambaMixer, RGLRUMixer, ShortConvolutionMixer
from separatrix.mixers.window import WindowMixer
from separatrix.proofs.derivations.parts.arriving import Arrival, arrived
from separatrix.proofs.derivations.parts.chain import Fetched
from separatrix.proofs.derivations.parts.channel_states import mamba, rglru, short_convolution
from separatrix.proofs.derivations.parts.derivation import Layer
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.matrix_states import MATRIX_STATES, matrix_state
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import Reading, any_scores
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Enclosure, above


def windowed(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """By a sliding window: a softmax over all keys of which only the last ones are seen, so that
    the bounds of one over all keys hold.
    """
    head, mixer, where = part.softmax_head(WindowMixer), part.mixer, part.where
    assert isinstance(mixer, WindowMixer)
    tokens = len(stream.by_place.mid)
    first = max(0, tokens - mixer.size)
    if place < first:
        raise CheckFailed(f"{where}: position {place} is out of the window's sight")
    every = head.keys(stream.by_place, np.arange(tokens), where)
    any_scores(stream, head, every, where)
    keys = every.rows(slice(first, tokens))
    queries = Queries.alone(head.asked(stream.at_last(), np.array([tokens - 1]), where))
    seen = head.values(stream.by_place.hull(), where)
    hop = Wanted.each(f"{where}, its window", np.array([place - first]))
    reading = Reading.won(part, head, queries, keys, hop, seen)
    last = reading.written(head.values(at_place, where), stream.at_last())
    anywhere = reading.anywhere(stream.by_place.hull())
    return Arrival(last, anywhere, above(reading.mass), head.assumes)


_ARRIVALS: dict[type[Mixer], Callable[[Stream, Live, int, Enclosure], Arrival]] = {
    ShortConvolutionMixer: short_convolution,
    MambaMixer: mamba,
    RGLRUMixer: rglru,
    WindowMixer: windowed,
}
"""Mixers beside those with a matrix state whose operations can be evaluated."""


def arrival(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """What a bounded layer writes at the last token, for each thing that may stand at the place."""
    kind = type(part.mixer)
    if kind in MATRIX_STATES:
        maps, written = matrix_state(stream, part)
        return arrived(stream, maps, place, written, at_place)
    if kind in _ARRIVALS:
        return _ARRIVALS[kind](stream, part, place, at_place)
    name = part.mixer.mechanism.name
    raise CheckFailed(f"{part.where}: no proof is known that {name} carries a value")


def carry(stream: Stream, part: Live, hop: Wanted, place: int, at_place: Enclosure) -> Fetched:
    """A bounded layer that brings what stands at the place to the last token; `at_place` has a row
    for each value of the hop.
    """
    found = arrival(stream, part, place, at_place)
    after = stream.after(part, found.last, found.anywhere, hop.then)
    said = entry(
        part.place,
        after.left(part, found.last),
        carries=hop.fetches,
        mechanism=part.mixer.mechanism.name,
        keys=len(stream.by_place.mid),
        off_target_mass=found.mass,
    )
    return Fetched(Layer(said, "carriers", assumes=found.assumes), after.stream)
