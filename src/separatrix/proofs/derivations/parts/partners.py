"""Proves a layer in which every place fetches what stands at one other place, or at its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.queries import code_lead
from separatrix.proofs.derivations.parts.reading import Reading
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import Left
from separatrix.proofs.machine import Enclosure


class Partners(NamedTuple):
    """What the layer writes: a row per token that may stand at the place asked for."""

    reading: Reading
    written: Enclosure


def fetch_partners(
    stream: Stream, part: Live, place: NDArray[np.int64], tokens: NDArray[np.int64] | slice
) -> Partners:
    """Place i reads place `place[i]`, which is i or one before it, where one of the ids `tokens`
    stands. Raises CheckFailed where some other place may win, now or among those not yet read.
    """
    head = part.softmax_head()
    where = part.where
    count = len(stream.by_place.mid)
    if len(place) != count or (place > np.arange(count)).any():
        raise CheckFailed(f"{where}: a place would have to read one that comes after it")
    keys = head.keys(stream.by_place, np.arange(count), where)
    queries = head.asked(stream.by_place, np.arange(count), where)
    lead = code_lead(queries, keys, place, f"{where}: position")
    values = head.values(stream.by_token, where)

    def lowest() -> float:
        right = (queries.mid * keys.mid[place]).sum(1)
        return float(right.min()) - lead.error * (1 + 2.0**-40)

    reading = Reading.of(
        part,
        head,
        lead,
        values.hull(),
        queries=count,
        keys=count,
        key_numbers=int((queries.used & keys.used).sum()),
        lowest=lowest,
    )
    return Partners(reading, reading.written(values.rows(tokens), stream.by_place.hull()))


def left_in(part: Live, written: Enclosure, before: Enclosure, after: Enclosure) -> Left:
    """How far off what was fetched may be, and what the MLP made of it: rows before and after it.
    Raises CheckFailed where it does not clean them.
    """
    error = float(written.rad.max(initial=0.0))
    held = before.like(before.mid, np.where(written.used, 0.0, before.rad))
    room = part.threshold_margin(held)
    if error >= room:
        raise CheckFailed(
            f"{part.where}: what is fetched may be {error:g} off, and the MLP is constant only"
            f" within {room:g}: use a smaller n"
        )
    down = part.mlp["down.weight"]
    cleaned = (down != 0.0).any(1) | (part.mlp["down.bias"] != 0.0)
    return Left(
        fetch_error=error,
        threshold=room,
        clean_error=float(after.only(cleaned).rad.max(initial=0.0)),
    )
