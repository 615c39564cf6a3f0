"""Which bit of a token's id each coordinate depends on, so that two ids, 0 and the one of all bits,
tell what every id of 2^d does.

A coordinate that depends on bit k alone is, for any id, what it is for 0 or for 2^d - 1, as its bit
k is. Maps and MLPs hand dependence on: what reads coordinates of two bits depends on more than one,
and nothing is claimed of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.machine import Array

Bits = NDArray[np.bool_]
"""(coordinates, d): which bits each coordinate may depend on."""


def of_columns(table: NDArray[np.float32], bits: int) -> Bits:
    """Of each column of a table with a row for every id below 2^bits."""
    found = np.zeros((table.shape[1], bits), np.bool_)
    ids = np.arange(1 << bits)
    for number, column in enumerate(table.T):
        one = [bit for bit in range(bits) if column[1 << bit] != column[0]]
        right = np.full(len(column), column[0])
        if len(one) == 1:
            right = np.where(ids >> one[0] & 1, column[1 << one[0]], column[0])
        # of a column that is no function of one bit nothing is known
        found[number, one if (column == right).all() else slice(None)] = True
    return found


def through(weight: Array, bits: Bits) -> Bits:
    """Of each output of a map, from its inputs."""
    return ((weight != 0.0).astype(np.int64) @ bits.astype(np.int64)) > 0


def after_mlp(part: Live, bits: Bits) -> Bits:
    """Of the residual stream after the MLP of a layer."""
    if not part.mlp:
        return bits
    return bits | through(part.mlp["down.weight"], through(part.mlp["up.weight"], bits))
