"""What tokens hold that have read an average, whatever it is, of values none of which is the one
asked for.

The MLP adds up, with weights of one sign, units of which each is convex in what is read: relu(z) is
at least z, and at least 0. So their sum is at least a linear function of what is read, for each
query another one, and of an average it is at least what it is of some value.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.reading import CHUNK, Reading, mixed
from separatrix.proofs.machine import Array, Enclosure, stacked, summing

_OURS = 2.0**-36
"""Of sums of sizes: far more than float64 takes from sums of fewer than 2^14 products."""


def behind_others(reading: Reading, tokens: Enclosure, values: Enclosure) -> Enclosure:
    """Tokens of these rows behind the MLP, each of which has read an average of values but the one
    in its own row. Raises CheckFailed for weights of another kind.
    """
    part, where, arithmetic = reading.part, reading.part.where, tokens.arithmetic
    after = part.after(tokens, reading.anywhere(tokens.hull()))
    o, writes = reading.head.o, (reading.head.o != 0.0).any(1)
    # one power of two for a number: what is written is not rounded
    powers = ((np.frexp(o)[0] == 0.5) | (o == 0.0)).all()
    if not powers or ((o != 0.0).sum(1) > 1).any() or (tokens.used & writes).any():
        raise CheckFailed(f"{where}: what it reads is not written as it is, beside all else")
    if not part.mlp:
        raise CheckFailed(f"{where}: no MLP compares what it reads")
    up, up_bias, down, down_bias = part.weights

    # sizes, and what rounding takes of them
    seen = values.size.max(0)
    off = mixed(seen, reading.count, Fraction(0), arithmetic)
    off = off + _one(seen + off, arithmetic)
    # gates are alike for all values, and round once more
    gates = reading.head.given(
        tokens.like(0 * seen[None] + 1, 0 * seen[None]), tokens.hull(), where
    )
    gate, loose = gates.mid[0], gates.rad[0]
    off = np.abs(gate) * off + loose * (seen + off) + arithmetic.tiny * (loose > 0)
    read = np.abs(o) @ (np.abs(gate) * seen + off)
    x = tokens.size + read
    centres = tokens.mid @ up.T + up_bias
    hidden = np.maximum(0.0, centres + (tokens.rad + read) @ np.abs(up).T)
    first = _lost(up, up_bias, x, hidden, arithmetic)
    hidden = hidden + first
    most = hidden @ np.abs(down).T + np.abs(down_bias)
    second = _lost(down, down_bias, hidden, most, arithmetic)
    second = second + np.where(tokens.used | writes, _one(most + x, arithmetic), 0.0)
    if reading.head.rivals:
        # a sink is one value more
        values = stacked(values, values.like(*np.zeros((2, 1, len(seen)))))

    low, high = after.low.copy(), after.high.copy()
    for number in np.flatnonzero(down.any(1)):
        sign = 1.0 if down[number].sum() > 0 else -1.0
        signs = sign * down[number]
        if not (signs >= 0).all():
            continue
        opened = signs * (centres > 0)
        slopes = opened @ up
        slopes[:, number] += sign
        lost = (opened * first).sum(1) + second[:, number]
        lost += np.abs(slopes @ o) @ off + (np.abs(slopes) * tokens.rad).sum(1)
        # what is written may be flushed to zero
        lost += np.abs(slopes) @ (arithmetic.tiny * writes)
        size = most[:, number] + x.max(1) * (1 + signs @ np.abs(up).sum(1))
        lost += _OURS * (size + signs @ np.abs(up_bias))
        own = (slopes * tokens.mid).sum(1) + opened @ up_bias + sign * down_bias[number]
        least = own - lost + _least(slopes @ (o * gate), values)
        if sign > 0:
            low[:, number] = np.maximum(low[:, number], least)
        else:
            high[:, number] = np.minimum(high[:, number], -least)
    if (low > high).any():
        raise CheckFailed(f"{where}: no token can hold what is proved of it")
    return after.spanning(low, high)


def _least(slopes: Array, values: Enclosure) -> Array:
    """The least of each row of slopes with a value of another row, at most."""
    found = np.empty(len(slopes))
    step = max(1, CHUNK // len(values.mid))
    for start in range(0, len(slopes), step):
        some = slopes[start : start + step]
        table = some @ values.mid.T - np.abs(some) @ values.rad.T
        row = np.arange(len(some))
        table[row, start + row] = np.inf
        found[start : start + step] = table.min(1)
    return found


def _lost(weight: Array, bias: Array, x: Array, result: Array, arithmetic: Arithmetic) -> Array:
    """How far the results of a map, of at most these sizes, may be off by its own roundings."""
    count: NDArray[np.int64] = (weight != 0.0).sum(1) + (bias != 0.0)
    size = x @ np.abs(weight).T + np.abs(bias)
    summed = summing(count, size, arithmetic)
    if not arithmetic.narrowed:
        return summed
    # a product that is stored before the bias is added
    again = np.where(bias == 0.0, 0.0, _one(size + summed, arithmetic))
    return summed + again + _one(result + summed + again, arithmetic)


def _one(size: Array, arithmetic: Arithmetic) -> Array:
    """How far a number of at most this size may be off once it is stored."""
    return float(arithmetic.stored) * size + arithmetic.tiny
