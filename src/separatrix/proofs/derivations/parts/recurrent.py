"""Proves one hop by a bounded layer: it brings what stands at one place to the last token."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.linear import LinearMixer
from separatrix.mixers.mamba import MambaMixer
from separatrix.mixers.rglru import RGLRUMixer
from separatrix.mixers.shortconv import ShortConvolutionMixer
from separatrix.mixers.window import WindowMixer
from separatrix.proofs.derivations.parts.arriving import Arrival, arrived
from separatrix.proofs.derivations.parts.chain import Fetched, left_by
from separatrix.proofs.derivations.parts.channel_states import mamba, rglru, short_convolution
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.matrix_states import MATRIX_STATES
from separatrix.proofs.derivations.parts.queries import Wanted
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.parts.sums import linear_attention
from separatrix.proofs.derivations.parts.windowed import windowed
from separatrix.proofs.entries import carry_entry
from separatrix.proofs.machine import Enclosure

_ARRIVALS: dict[type[Mixer], Callable[[Stream, Live, int, Enclosure], Arrival]] = {
    LinearMixer: linear_attention,
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
        maps, written = MATRIX_STATES[kind](stream, part)
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
    entry = carry_entry(
        part.place,
        fetches=hop.fetches,
        mechanism=part.mixer.mechanism.name,
        keys=len(stream.by_place.mid),
        mass=Fraction(found.mass),
        left=left_by(part, found.last, after),
    )
    return Fetched(
        kind="carriers",
        entry=entry,
        stream=after.stream,
        near=[],
        key_numbers=0,
        value_numbers=0,
        assumes=found.assumes,
    )
