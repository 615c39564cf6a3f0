"""Chains of retrieval heads: each hop asks for an address, reads the bits stored there, and cleans
them; its proof in closed form.

The proof object follows from how the weights are made (signs scaled by `SCALE`, the threshold of
`spaces.threshold`); the checker derives every number of it again from the weights themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.constructions.parts.placement import Place
from separatrix.proofs.entries import fetch_entry
from separatrix.proofs.float32 import Fetch, Readout, Threshold

SCALE = 4
"""s: a power of two, so that scores are exact; the gap 2 s^2 = 32 makes everything off target
weigh less than n e^-32.
"""

CLAMP = Threshold(
    radius=Fraction(1, 2),
    up_terms=1,
    up_sum=Fraction(2),
    up_bias=Fraction(1),
    down_terms=2,
    down_sum=Fraction(2),
    down_bias=Fraction(1),
)
"""The sizes of `spaces.threshold`: constant until y moves from +-1 by 1/2."""


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One head: where it is, what it reads (for people), how many queries it can have, its
    address bits, and bits taken from the hop before.
    """

    place: Place
    fetches: str
    queries: int
    address: int
    """Address bits, the tag not counted."""
    linked: bool
    """Whether some of the address was fetched by an earlier hop."""


def hop_fetch(hop: Hop, *, keys: int, shut: Fraction = Fraction(0)) -> Fetch:
    """The sizes of a hop over `keys` keys; `shut` bounds the part of its output that a gate
    takes away.
    """
    return Fetch(
        keys=keys,
        gap=Fraction(2 * SCALE**2),
        terms=hop.address + 1,
        query=Fraction(SCALE),
        # what the hop before fetched enters the query times s
        query_gain=Fraction(SCALE if hop.linked else 0),
        key_sum=Fraction(SCALE * (hop.address + 1)),
        value=Fraction(1),
        threshold=CLAMP,
        shut=shut,
    )


def readout(code: int) -> Readout:
    """The sizes of a head that compares a code of that many bits with the code of every answer."""
    return Readout(
        gap=Fraction(2), terms=code, row_sum=Fraction(code), bias=Fraction(0), value=Fraction(1)
    )


def chain_proof(
    hops: Sequence[Hop], *, keys: int, code: int, before: Fraction = Fraction(0)
) -> tuple[list[dict[str, Any]], Fraction]:
    """The proof layer by layer and the final margin, for hops over `keys` keys that end in an
    answer of `code` bits.

    `before` bounds the error of what the first hop links to. Raises SizeError when n is so large
    that float32 misses a threshold.
    """
    layers: list[dict[str, Any]] = []
    for hop in hops:
        fetch = hop_fetch(hop, keys=keys)
        bounds = fetch.bounds(before)
        layers.append(
            fetch_entry(
                hop.place, fetches=hop.fetches, queries=hop.queries, fetch=fetch, bounds=bounds
            )
        )
        before = bounds.clean_error
    return layers, readout(code).margin(before)
