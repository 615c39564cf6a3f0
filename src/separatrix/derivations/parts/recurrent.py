"""Proves one hop by a recurrent layer: it brings the value at one place to the last token."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from separatrix.derivations.parts.chain import Fetched, left_by
from separatrix.derivations.parts.delta import gated_delta
from separatrix.derivations.parts.live_parts import Live
from separatrix.derivations.parts.queries import Wanted
from separatrix.derivations.parts.stream import Stream
from separatrix.derivations.parts.sums import linear_attention
from separatrix.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.gdn import GDNMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.proofs.entries import carry_entry
from separatrix.proofs.machine import Enclosure

_ARRIVALS: dict[type[Mixer], Callable[[Stream, Live, int], tuple[Enclosure, Enclosure, float]]] = {
    LinearMixer: linear_attention,
    GDNMixer: gated_delta,
}
"""The mixers whose operations can be evaluated: outputs at the last token for each token at the
place, at any position, and the weight of all other tokens.
"""


def carry(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """A recurrent layer that brings the value at the one place asked for to the last token."""
    place = np.unique(np.asarray(hop.place(hop.part, 0)))
    if len(place) != 1:
        raise CheckFailed(
            f"{hop.fetches}: a state of bounded size carries one place, but the task asks for"
            f" {len(place)}"
        )
    arrive = _ARRIVALS.get(type(part.mixer))
    name = part.mixer.mechanism.name
    if arrive is None:
        raise CheckFailed(f"{part.where}: no proof is known that {name} carries a value")
    every, anywhere, mass = arrive(stream, part, int(place[0]))
    fetched = every.rows(slice(0, hop.values))
    after = stream.after(part, fetched, anywhere, hop.then)
    entry = carry_entry(
        part.place,
        fetches=hop.fetches,
        mechanism=name,
        keys=len(stream.by_place.mid),
        mass=Fraction(mass),
        left=left_by(part, fetched, after),
    )
    return Fetched(
        kind="carriers",
        entry=entry,
        stream=after.stream,
        near=[],
        key_numbers=0,
        value_numbers=0,
    )
