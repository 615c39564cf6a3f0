"""Proves that sliding-window attention brings what stands at one place of the window to the last
token: a softmax over all keys of which only the last ones are seen, so that the bounds of one over
all keys hold.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.arriving import Arrival
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.softmax import any_scores, averaged
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Enclosure, Scores, above
from separatrix.proofs.softmax import off_target


def windowed(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, head = part.window_head()
    where = part.where
    tokens = len(stream.by_place.mid)
    first = max(0, tokens - mixer.size)
    if place < first:
        raise CheckFailed(f"{where}: position {place} is out of the window's sight")
    every = head.keys(stream.by_place, np.arange(tokens), where)
    any_scores(stream, head, every, where)
    keys = every.rows(slice(first, tokens))
    query = head.asked(stream.at_last(), np.array([tokens - 1]), where)
    scores = Scores(keys, query.used, f"{where}, scores")
    centres = scores.centres(query)[0]
    off = float(scores.errors(query)[0])
    right = float(centres[place - first])
    others = float(np.delete(centres, place - first).max(initial=-np.inf))
    arithmetic = keys.arithmetic
    mass = _mass(len(centres) - 1, right - others - 2 * off, arithmetic, where)
    seen = head.values(stream.by_place.hull(), where)
    for score in head.rivals:
        mass += _mass(1, right - score - off, arithmetic, where)
        seen = seen.spanning(np.minimum(seen.low, 0.0), np.maximum(seen.high, 0.0))
    count = len(centres) + len(head.rivals)
    values = head.values(at_place, where)
    last = averaged(values, seen, count, mass, where)
    anywhere = averaged(seen, seen, count, Fraction(0), where)
    return Arrival(
        head.written(last, stream.at_last(), where),
        head.written(anywhere, stream.by_place.hull(), where),
        above(mass),
        head.assumes,
    )


def _mass(keys: int, lead: float, arithmetic: Arithmetic, where: str) -> Fraction:
    """What that many keys weigh that score less by `lead`, which is rounded down first."""
    least = lead - 2.0**-40 * (1 + abs(lead))
    if least <= 0:
        raise CheckFailed(f"{where}: another key of the window scores no less")
    return off_target(keys, Fraction(min(least, 1e6)), arithmetic)
