"""Proves that a sparse layer reads the block the task asks for, from its weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from separatrix.checks.exact import Array, exact_lead, exact_product, largest_row_sum
from separatrix.checks.live_parts import Live, array
from separatrix.errors import CheckFailed
from separatrix.mixers.sparse import SparseMixer

_SHUT_GATE = -32.0


def prove_block_choice(
    part: Live,
    head: int,
    queries: Array,
    keys: Array,
    places: NDArray[np.int64],
    *,
    key_sum: Fraction,
) -> Fraction | None:
    """The smallest lead of the block that holds `places[i]`, over all queries i whose place is in a
    complete block; None without a rival.

    The last token sees the blocks before its own as complete; its own is read in any case.
    `key_sum` is the largest sum of absolute values of a key, for which the caller bounds rounding
    errors. Raises CheckFailed where the weights do not bear it out.
    """
    mixer = part.mixer
    where = f"layer {part.layer + 1}"
    assert isinstance(mixer, SparseMixer)
    assert mixer.mix is not None  # no gates: `part.sparse_head` refuses options
    weights = array(mixer.pool_k)
    gate = array(mixer.mix)
    if array(mixer.pool_v).any() or gate[head] > _SHUT_GATE or np.delete(gate, head).any():
        raise CheckFailed(
            f"{where}: the compressed values are not shut off (pool_v = 0, mix = {_SHUT_GATE:g} or"
            " less)"
        )
    # the last token is in the block after those that are complete
    complete = (len(keys) - 1) // mixer.block
    closed = np.flatnonzero(places < complete * mixer.block)
    if complete < 2 or not len(closed):
        return None
    # keys by place in the block: (block, complete, head_dim). The model pools in float32, whose
    # mantissa has 24 bits, so exactness in 24 bits makes its pooled keys these
    inside = keys[: complete * mixer.block].reshape(complete, mixer.block, -1).transpose(1, 0, 2)
    pooled = exact_product(weights[None], inside.reshape(mixer.block, -1), bits=24).reshape(
        complete, -1
    )
    # the caller's rounding error of a score grows with the sum of its key
    if largest_row_sum(pooled) > key_sum:
        raise CheckFailed(f"{where}: a pooled key is larger than every key")
    scores = exact_product(queries[closed], pooled.T)
    row = np.arange(len(closed))
    block = places[closed] // mixer.block
    right = scores[row, block]
    # the right block is taken out, so that the largest of the rest is its best rival
    scores[row, block] = -np.inf
    lead = float(exact_lead(right, scores.max(1)).min())
    if lead <= 0:
        raise CheckFailed(
            f"{where}: for some query another block scores no less than the one the task asks for"
        )
    return Fraction(lead)
