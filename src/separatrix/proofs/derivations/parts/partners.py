"""Proves a layer in which every place fetches what stands at one other place, or at its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.codes import Codes
from separatrix.proofs.derivations.parts.flagged import threshold_margin
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.queries import Lead, winning
from separatrix.proofs.derivations.parts.softmax import averaged
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import Left, fetch_entry
from separatrix.proofs.machine import Enclosure, Scores
from separatrix.proofs.softmax import off_target


@dataclass(frozen=True, kw_only=True)
class Partners:
    """What the layer writes: a row per token that may stand at the place asked for."""

    written: Enclosure
    lead: Lead
    mass: Fraction
    keys: int
    assumes: tuple[str, ...]
    key_numbers: int
    value_numbers: int

    def entry(self, part: Live, fetches: str, left: Left) -> dict[str, Any]:
        return fetch_entry(
            part.place,
            fetches=fetches,
            queries=self.keys,
            keys=self.keys,
            score_gap=self.lead.gap,
            score_error=self.lead.error,
            mass=self.mass,
            left=left,
        )


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
    mass = off_target(count - 1, Fraction(lead.least), keys.arithmetic)
    values = head.values(stream.by_token, where)
    seen = values.hull()
    lowest = float((queries.mid * keys.mid[place]).sum(1).min()) - lead.error * (1 + 2.0**-40)
    for score in head.rivals:
        over = Fraction(lowest) - Fraction(score)
        if over <= 0:
            raise CheckFailed(f"{where}: its sink scores no less than the key the task asks for")
        mass += off_target(1, over, keys.arithmetic)
        seen = seen.spanning(np.minimum(seen.low, 0.0), np.maximum(seen.high, 0.0))
    fetched = averaged(values.rows(tokens), seen, count + len(head.rivals), mass, where)
    return Partners(
        written=head.written(fetched, stream.by_place.hull(), where),
        lead=lead,
        mass=mass,
        keys=count,
        assumes=head.assumes,
        key_numbers=int((queries.used & keys.used).sum()),
        value_numbers=int((head.v != 0.0).any(1).sum()),
    )


def code_lead(
    queries: Enclosure, keys: Enclosure, right: NDArray[np.int64], what: str, *, exact: bool = False
) -> Lead:
    """The smallest lead, over all rows of `queries`, of the key that `right` names for the row
    (`token` and `rival` of the lead are rows); `exact`: scores are known not to be rounded.

    Raises CheckFailed where another key may win, or where the keys are no codes (codes.py).
    """
    asked = np.zeros(len(keys.mid), np.bool_)
    asked[right] = True
    codes = Codes.of(keys.mid, asked, queries.used)
    leads = None if codes is None else codes.leads(queries.mid, right)
    if leads is None:
        raise CheckFailed(f"{what}: the keys are no codes that differ, or not those asked for")
    error = Scores(keys, queries.used, what).errors(queries) * (not exact)
    computed = leads - 2 * error * (1 + 2.0**-40)
    worst = int(computed.argmin())
    scores = keys.mid @ queries.mid[worst]
    scores[right[worst]] = -np.inf
    least = float(computed[worst])
    rival = int(scores.argmax())
    return winning(Lead(float(leads.min()), float(error.max()), least, worst, 0, rival), what)


def left_in(part: Live, written: Enclosure, before: Enclosure, after: Enclosure) -> Left:
    """How far off what was fetched may be, and what the MLP made of it: rows before and after it.
    Raises CheckFailed where it does not clean them.
    """
    error = float(written.rad.max(initial=0.0))
    held = before.like(before.mid, np.where(written.used, 0.0, before.rad))
    room = threshold_margin(part, held)
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
