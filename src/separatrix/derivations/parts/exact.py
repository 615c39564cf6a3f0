"""Evaluates maps of integers where float32 rounds nothing: every product, and every sum in whatever
order, is an integer of at most 2^24.

Shapes: n rows, w inputs, o outputs.
"""

from __future__ import annotations

import numpy as np

from separatrix.derivations.parts.live_parts import Live
from separatrix.errors import CheckFailed
from separatrix.proofs.machine import Array

LARGEST = 1 << 24
"""Integers up to it are numbers of float32."""


def integers(numbers: Array, what: str) -> Array:
    """The numbers. Raises CheckFailed for one that is no integer, or too large."""
    if (numbers != np.rint(numbers)).any():
        raise CheckFailed(f"{what}: a number is no integer, and the proof is about integers")
    if float(np.abs(numbers).max(initial=0.0)) > LARGEST:
        raise CheckFailed(f"{what}: an integer is larger than 2^24 and may be rounded")
    return numbers


def mapped(rows: Array, weight: Array, bias: Array | None = None, *, what: str) -> Array:
    """W x + b for each row. Raises CheckFailed as `integers` does."""
    weight = integers(weight, what)
    bias = np.zeros(len(weight)) if bias is None else integers(bias, what)
    integers(np.abs(rows) @ np.abs(weight).T + np.abs(bias), what)
    return rows @ weight.T + bias


def summed(x: Array, y: Array, what: str) -> Array:
    """x + y, number by number. Raises CheckFailed as `integers` does."""
    return integers(integers(x, what) + integers(y, what), what)


def after_mlp(part: Live, rows: Array) -> tuple[Array, Array]:
    """The rows after the MLP of a layer, and what its hidden units see. Raises CheckFailed as
    `integers` does.
    """
    what = f"layer {part.layer + 1}, MLP"
    if not part.mlp:
        return rows, np.zeros((len(rows), 0))
    hidden = mapped(rows, part.mlp["up.weight"], part.mlp["up.bias"], what=what)
    added = mapped(
        np.maximum(hidden, 0.0), part.mlp["down.weight"], part.mlp["down.bias"], what=what
    )
    return summed(rows, added, what), hidden
