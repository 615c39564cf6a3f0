"""Proves one hop by a block-sparse head: the block that holds the place asked for is read, and in
it the place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from separatrix.mixers.sparse import SparseMixer
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.balls import sigmoid_bounds
from separatrix.proofs.derivations.parts.chain import Fetched
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array
from separatrix.proofs.derivations.parts.nearest import Near
from separatrix.proofs.derivations.parts.queries import Lead, Wanted, winning
from separatrix.proofs.derivations.parts.reading import any_average
from separatrix.proofs.derivations.parts.softmax import Read, read_one
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import rounded
from separatrix.proofs.machine import Enclosure, Scores, above, add, linear, times
from separatrix.proofs.softmax import averaging


def sparse_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One block-sparse head at the last token.

    It reads only some keys, the right one among them if its block is chosen: what is proved of a
    softmax over all keys holds for those.
    """
    head = part.head(SparseMixer, "sparse attention", "pool_k", "pool_v", "mix")
    mixer = part.mixer
    assert isinstance(mixer, SparseMixer)
    read = read_one(stream, part, hop, head, kept=True)
    lead = _block_lead(mixer, read, hop, part.where)
    compressed = _compressed(mixer, stream, head, read, part.where)
    arithmetic = stream.last.arithmetic
    shut, opened = _shares(mixer, head, arithmetic.inner)

    def mixed(selected: Enclosure) -> Enclosure:
        what = f"{part.where}, its gate"
        both = add(times(compressed, shut, what), times(selected, opened, what), what)
        return linear(both.stored_in(arithmetic), head.o, what=f"{part.where}, o")

    anywhere = mixed(read.reading.anything())
    fetched = read.fetched("sparse", stream, hop, mixed(read.values), anywhere)
    entry = fetched.entry | rounded(
        block_gap=None if lead is None else lead.gap, gate_error=float(shut.high.max())
    )
    near = [] if lead is None else [Near.of(lead, mixer.block)]
    return replace(fetched, entry=entry, near=[*fetched.near, *near])


def _pooled(numbers: Enclosure, weights: np.ndarray, block: int, what: str) -> Enclosure:
    """One row per complete block: the sum of its rows, each times the weight of its place."""
    complete = len(numbers.mid) // block

    def turned(table: np.ndarray) -> np.ndarray:
        # (complete, dimensions, block)
        return table[: complete * block].reshape(complete, block, -1).swapaxes(1, 2)

    rows = numbers.like(
        turned(numbers.mid).reshape(-1, block), turned(numbers.rad).reshape(-1, block)
    )
    sums = linear(rows, weights[None], what=what)
    return sums.like(sums.mid.reshape(complete, -1), sums.rad.reshape(complete, -1))


def _block_lead(mixer: SparseMixer, read: Read, hop: Wanted, where: str) -> Lead | None:
    """The smallest lead of the block that holds the place asked for, over all queries whose place
    is in a complete block; None without a rival. Raises CheckFailed when another block may win.

    The last token sees the blocks before its own as complete; its own is read in any case.
    """
    block = mixer.block
    complete = (len(read.keys.mid) - 1) // block
    if complete == 0:
        return None
    places = slice(0, complete * block)
    pooled = _pooled(
        read.keys.rows(places).summed(), array(mixer.pool_k), block, f"{where}, pooled keys"
    )
    scores = Scores(pooled, read.queries.used, f"{where}, scores of blocks")
    if complete == 1:
        # alone it is read whatever its score, if that is a number
        scores.errors(read.queries.of_token)
        scores.errors(read.queries.of_field)
        return None
    found = read.queries.lead(
        scores, hop, lambda place: np.where(place < complete * block, place // block, -1)
    )
    return None if found is None else winning(found, f"{where}, choice of blocks: block")


def _compressed(
    mixer: SparseMixer, stream: Stream, head: Head, read: Read, where: str
) -> Enclosure:
    """What the branch of pooled values gives, at any position: one row."""
    what = f"{where}, pooled"
    weights = array(mixer.pool_k)[None], array(mixer.pool_v)[None]
    # a block of places that hold anything, dimension by dimension
    every = linear(stream.by_place.hull(), head.k, what=what).summed()
    keys, values = (
        linear(
            row.like(np.repeat(row.mid.T, mixer.block, 1), np.repeat(row.rad.T, mixer.block, 1)),
            weight,
            what=what,
        )
        for row, weight in ((every, weights[0]), (read.reading.seen, weights[1]))
    )
    table = keys.like(keys.mid.T, keys.rad.T)
    for rows in (stream.by_place.hull(), stream.at_last()):
        queries = linear(rows, head.q, what=what)
        Scores(table, queries.used, f"{where}, scores of blocks").errors(queries)
    pooled = values.like(values.mid.T, values.rad.T)
    blocks = max(1, len(read.keys.mid) // mixer.block)
    # before the first complete block the branch is 0
    some = any_average(pooled, blocks, where)
    return some.spanning(np.minimum(some.low, 0.0), np.maximum(some.high, 0.0))


def _shares(mixer: SparseMixer, head: Head, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
    """The shares of the compressed and of the selected branch: a softmax of (mix, 0)."""
    assert mixer.mix is not None  # no gates: options are refused
    mix = float(array(mixer.mix)[head.index])
    low, high = sigmoid_bounds(mix, mix)
    off = above(averaging(2, arithmetic))
    tiny = arithmetic.summed_tiny

    def enclosed(low: float, high: float) -> Enclosure:
        return Enclosure.between(
            np.array([[max(0.0, low * (1 - off) - tiny)]]),
            np.array([[high * (1 + off) + tiny]]),
            arithmetic,
        )

    other_low, other_high = sigmoid_bounds(-mix, -mix)
    return enclosed(low, high), enclosed(other_low, other_high)
