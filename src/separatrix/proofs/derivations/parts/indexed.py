"""Proves one hop by an indexed head: the place asked for has the indexer's largest score, and among
the tokens chosen it outweighs the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.indexed import IndexedMixer
from separatrix.proofs.derivations.parts.chain import Fetched
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array
from separatrix.proofs.derivations.parts.nearest import Near
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, winning
from separatrix.proofs.derivations.parts.reading import any_scores
from separatrix.proofs.derivations.parts.softmax import read_one
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import rounded
from separatrix.proofs.machine import Array, Scores, limited, linear


def indexed_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One indexed head at the last token.

    It reads only some keys, the right one first among them: what is proved of a softmax over all
    keys holds for those.
    """
    evaluated = ("index_q.weight", "index_k.weight", "index_w.weight")
    head = part.head(IndexedMixer, "indexed attention", *evaluated)
    mixer = part.mixer
    assert isinstance(mixer, IndexedMixer)
    read = read_one(stream, part, hop, head)
    lead = _choice(mixer, head, stream, hop, part.where)
    written = linear(read.values, head.o, what=f"{part.where}, o")
    anywhere = read.reading.anywhere(stream.by_place.hull())
    fetched = read.fetched("indexed", stream, hop, written, anywhere)
    entry = fetched.entry | {"topk": mixer.topk}
    entry |= rounded(index_gap=lead.gap, index_error=lead.error)
    return replace(fetched, entry=entry, near=[*fetched.near, Near.of(lead)])


def _choice(mixer: IndexedMixer, head: Head, stream: Stream, hop: Wanted, where: str) -> Lead:
    """The smallest lead of the place asked for in the one head of the indexer that has a weight,
    over all queries. Raises CheckFailed where another token may be chosen before it.

    The indexer's score is the weight times the product, or 0 where that is negative. Times a power
    of two nothing is rounded that is not tiny, so what leads, and is positive, leads still.
    """
    where = f"{where}, the indexer"
    weights = array(mixer.index_w.weight)
    live = np.flatnonzero(weights.any(1))
    if len(live) != 1:
        raise CheckFailed(
            f"{where}: {len(live)} of its heads have a weight; the proof is about one"
        )
    (number,) = live.tolist()
    dims = mixer.index_dim
    chooser = replace(
        head,
        q=array(mixer.index_q.weight)[number * dims : (number + 1) * dims],
        k=array(mixer.index_k.weight),
    )
    rest = np.delete(array(mixer.index_q.weight).reshape(-1, dims, head.q.shape[1]), number, 0)
    if rest.any():
        raise CheckFailed(f"{where}: a head without a weight has queries")
    factor = _power_of_two(stream, weights[live], where)
    keys = chooser.keys(stream.by_place, np.arange(len(stream.by_place.mid)), where)
    queries = Queries.of(chooser, hop, stream, where)
    scores = Scores(keys, queries.used, f"{where}, scores")
    lead = winning(queries.lead(scores, hop), f"{where}: position")
    lowest = queries.lowest(scores, hop)
    if lowest <= 0:
        raise CheckFailed(f"{where}: the token asked for may score nothing")
    inner = keys.arithmetic.inner
    # what is less may be rounded or flushed, and is less still
    if lowest * factor < 2 * inner.tiny:
        raise CheckFailed(f"{where}: the score of the token asked for may be flushed to zero")
    most = queries.of_token.size.max(0) + queries.of_field.size.max(0)
    products = float(most @ keys.size.max(0)) * (1 + 2.0**-30)
    limited(np.array([products * max(1.0, factor)]), where, inner)
    any_scores(stream, chooser, keys, where)
    return lead


def _power_of_two(stream: Stream, weight: Array, where: str) -> float:
    """The weight of every query. Raises CheckFailed unless it is one and the same power of two, and
    a number everywhere.
    """
    given = linear(stream.at_last(), weight, what=f"{where}, weight")
    linear(stream.by_place.hull(), weight, what=f"{where}, weight")
    if given.rad.any() or np.frexp(given.mid)[0] != 0.5:
        raise CheckFailed(f"{where}: the weight is no power of two, the same for every query")
    return float(given.mid[0, 0])
