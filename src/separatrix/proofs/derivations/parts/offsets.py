"""Heads that read the token at an offset, whatever their own place, or the start token where there
is none: by addresses of places, or by rotations alone. Proved for every place, among the tokens
that it sees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.hops import Heads
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.reading import Reading
from separatrix.proofs.machine import Enclosure

OPTIONS = frozenset({"rope", "rope_dim", "rope_scaling", "qk_norm", "gate"})
"""Those that such heads may have."""


class Back(NamedTuple):
    """A head, and what it hands to the output map."""

    head: int
    offset: int
    """The largest there is where it reads the start token whatever the place."""
    reading: Reading
    fetched: Enclosure
    """A row for each of the contents given."""


def looking_back(
    part: Live, heads: Heads, by_place: Enclosure, contents: Enclosure, fetches: str
) -> list[Back]:
    """The heads by their offsets, which their weights tell. `by_place`: a row per place, the start
    token's first; `contents`: rows of which every token is within one. Raises CheckFailed where a
    place may read another token.
    """
    at = np.arange(len(by_place.mid))
    found: list[Back] = []
    for head in heads.each:
        turned = at if head.steps else None
        last = head.asked(by_place.rows(at[-1:]), at[-1:], part.where)
        keys = head.keys(by_place, at, part.where)
        offset = int(at[-1] - (last.mid @ keys.mid.T).argmax())
        wanted = np.maximum(at - offset, 0)
        reading = Reading.each(part, head, by_place, by_place, wanted, fetches, places=turned)
        average = reading.read(head.values(contents, part.where))
        given = head.given(average, contents.hull(), part.where)
        found.append(Back(head.index, offset, reading, given))
    return sorted(found, key=lambda one: one.offset)


def check_offsets(part: Live, found: list[Back], due: list[int]) -> None:
    """Raises CheckFailed where heads look back other offsets than are due."""
    offsets = [one.offset for one in found]
    if offsets != due:
        raise CheckFailed(
            f"{part.where}: its heads look back {offsets} places, where {due} are due"
        )
