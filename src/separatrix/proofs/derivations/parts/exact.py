"""Evaluates maps of integers where nothing is rounded: `proofs.exact` says in which formats.

Shapes: n rows, w inputs, o outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.exact import Digits
from separatrix.proofs.machine import Array


@dataclass(frozen=True)
class Integers:
    """Maps of integers, and the binary digits that all of them took so far. What holds for some
    rows holds for all integer rows between them, where the map is affine.
    """

    digits: Digits = field(default_factory=Digits)

    def kept(self, numbers: Array, what: str) -> Array:
        """The numbers. Raises CheckFailed for one that is no integer, or that float32 may round."""
        if (numbers != np.rint(numbers)).any():
            raise CheckFailed(f"{what}: a number is no integer, and the proof is about integers")
        self.digits.keep(float(np.abs(numbers).max(initial=0.0)), 0, what)
        return numbers

    def mapped(self, rows: Array, weight: Array, bias: Array | None = None, *, what: str) -> Array:
        """W x + b for each row, all products and sums integers. Raises CheckFailed as `kept`."""
        weight = self.kept(weight, what)
        bias = np.zeros(len(weight)) if bias is None else self.kept(bias, what)
        self.kept(np.abs(rows) @ np.abs(weight).T + np.abs(bias), what)
        return rows @ weight.T + bias

    def summed(self, x: Array, y: Array, what: str) -> Array:
        """x + y, number by number. Raises CheckFailed as `kept`."""
        return self.kept(self.kept(x, what) + self.kept(y, what), what)

    def after_mlp(self, part: Live, rows: Array) -> tuple[Array, Array]:
        """The rows after the MLP of a layer, and what its hidden units see. Raises CheckFailed as
        `kept`.
        """
        what = f"layer {part.layer + 1}, MLP"
        if not part.mlp:
            return rows, np.zeros((len(rows), 0))
        hidden = self.mapped(rows, part.mlp["up.weight"], part.mlp["up.bias"], what=what)
        open_ = np.maximum(hidden, 0.0)
        added = self.mapped(open_, part.mlp["down.weight"], part.mlp["down.bias"], what=what)
        return self.summed(rows, added, what), hidden
