"""Proves one hop by a softmax over all keys, and what every position may get from such a head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.fox import FoxMixer
from separatrix.mixers.full import FullMixer
from separatrix.mixers.mla import MLAMixer
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.chain import Fetched, left_by
from separatrix.proofs.derivations.parts.latent import latent_head
from separatrix.proofs.derivations.parts.live_parts import Head, Live
from separatrix.proofs.derivations.parts.nearest import Near
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, winning
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import fetch_entry
from separatrix.proofs.machine import Enclosure, Scores, above, limited, shared
from separatrix.proofs.softmax import averaging, mixing, off_target

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
    anywhere = head.written(read.anywhere, stream.by_place.hull(), part.where)
    return read.fetched("layers", stream, part, hop, fetched, anywhere, assumes=head.assumes)


def elsewhere(stream: Stream, part: Live, fetched: Fetched) -> Fetched:
    """The same fetch, made at another place of the prompt than the last, as the whole prompt sees
    it: every position gets some average of values.
    """
    head = head_of(stream, part)
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)), part.where)
    any_scores(stream, head, keys, part.where)
    seen = head.values(stream.by_place.hull(), part.where)
    if head.rivals:
        seen = seen.spanning(np.minimum(seen.low, 0.0), np.maximum(seen.high, 0.0))
    count = len(keys.mid) + len(head.rivals)
    average = averaged(seen, seen, count, Fraction(0), part.where)
    anywhere = head.written(average, stream.by_place.hull(), part.where)
    after = stream.after(part, anywhere, anywhere)
    return replace(fetched, stream=after.stream, near=[])


@dataclass(frozen=True, kw_only=True)
class Read:
    """What one head reads at the last token, one row per value of the place asked for, and
    anywhere, one row; before the output map.
    """

    values: Enclosure
    anywhere: Enclosure
    seen: Enclosure
    """Values of any token at any position, one row."""
    queries: Queries
    keys: Enclosure
    lead: Lead
    mass: Fraction
    key_numbers: int
    value_numbers: int

    def fetched(
        self,
        kind: Literal["layers", "sparse", "indexed"],
        stream: Stream,
        part: Live,
        hop: Wanted,
        fetched: Enclosure,
        anywhere: Enclosure,
        assumes: tuple[str, ...] = (),
    ) -> Fetched:
        """The hop, once the outputs at the last token and anywhere are known."""
        after = stream.after(part, fetched, anywhere, hop.then)
        entry = fetch_entry(
            part.place,
            fetches=hop.fetches,
            queries=self.queries.count,
            keys=len(self.keys.mid),
            score_gap=self.lead.gap,
            score_error=self.lead.error,
            mass=self.mass,
            left=left_by(part, fetched, after),
        )
        return Fetched(
            kind=kind,
            entry=entry,
            stream=after.stream,
            near=[Near.of(self.lead)],
            key_numbers=self.key_numbers,
            value_numbers=self.value_numbers,
            assumes=assumes,
        )


def read_one(stream: Stream, part: Live, hop: Wanted, head: Head, *, kept: bool = False) -> Read:
    """One softmax that reads the place asked for. `kept`: what it reads stays in the arithmetic of
    sums. Raises CheckFailed where another key may win.
    """
    where = part.where
    keys = head.keys(stream.by_place, np.arange(len(stream.by_place.mid)), where)
    queries = Queries.of(head, hop, stream, where)
    scores = Scores(keys, queries.used, f"{where}, scores")
    found = queries.lead(scores, hop)
    assert found is not None
    lead = winning(found, f"{hop.fetches}: position")
    any_scores(stream, head, keys, where)
    mass = off_target(len(keys.mid) - 1, Fraction(lead.least), keys.arithmetic)
    values = head.values(stream.by_token, where)
    if kept:
        values = values.summed()
    seen = values.hull()
    for score in head.rivals:
        over = Fraction(queries.lowest(scores, hop)) - Fraction(score)
        if over <= 0:
            raise CheckFailed(f"{where}: its sink scores no less than the key the task asks for")
        mass += off_target(1, over, keys.arithmetic)
        seen = seen.spanning(np.minimum(seen.low, 0.0), np.maximum(seen.high, 0.0))
    count = len(keys.mid) + len(head.rivals)
    return Read(
        values=averaged(values.rows(slice(0, hop.values)), seen, count, mass, where),
        anywhere=averaged(seen, seen, count, Fraction(0), where),
        seen=seen,
        queries=queries,
        keys=keys,
        lead=lead,
        mass=mass,
        key_numbers=scores.terms,
        value_numbers=int((head.v != 0.0).any(1).sum()),
    )


def any_scores(stream: Stream, head: Head, keys: Enclosure, where: str) -> None:
    """Raises CheckFailed unless every score, of any position, is a number: infinity less infinity
    is none.
    """
    for rows in (stream.by_place.hull(), stream.at_last()):
        queries = head.asked(rows, None, where)
        Scores(keys, queries.used, f"{where}, scores").errors(queries)


def averaged(value: Enclosure, seen: Enclosure, keys: int, mass: Fraction, where: str) -> Enclosure:
    """What a softmax over `keys` keys computes where a key of a value within `value` outweighs all
    others, whose values are within `seen`, together: they weigh `mass` relative to it.

    With mass 0 it is any average of values within `value`.
    """
    arithmetic = shared(value, seen)
    largest = seen.size
    # unscaled sums of a fused kernel
    limited(largest * keys, f"{where}, the sum of its values", arithmetic, summed=True)
    off = above(mixing(keys, mass, arithmetic))
    # weights, products and sums that are flushed to zero, relative to a weight of 1
    flushed = 16 * keys * arithmetic.summed_tiny * (1 + largest)
    return value.wider(np.where(largest == 0, 0.0, largest * off + flushed)).stored()


def share(keys: int, arithmetic: Arithmetic) -> float:
    """The relative error of a weight of a softmax over that many keys."""
    return above(averaging(keys, arithmetic))
