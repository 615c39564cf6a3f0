"""Evaluates maps of integers where nothing is rounded, and a delta-rule head whose keys are unit
vectors or 0, and which overwrites or leaves.

    S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

With k_i a unit vector and b_i = 1 the token's value replaces one column of S, its slot; with k_i or
b_i 0 nothing changes. Every number is a value, or a difference of two: in the parallel form, too,
where the triangular system of a chunk has entries 0 and 1, and its solution is v_i less what the
slot held.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.delta import DeltaNetMixer, GDNMixer
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array
from separatrix.proofs.derivations.parts.reflections import keeps, tame
from separatrix.proofs.exact import SATURATED, Digits
from separatrix.proofs.machine import Array

_LONGEST = 1 << 11
"""The longest key whose square is a number of float32."""


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
        what = f"{part.where}, MLP"
        if not part.mlp:
            return rows, np.zeros((len(rows), 0))
        up, up_bias, down, down_bias = part.weights
        hidden = self.mapped(rows, up, up_bias, what=what)
        added = self.mapped(np.maximum(hidden, 0.0), down, down_bias, what=what)
        return self.summed(rows, added, what), hidden


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What a delta-rule head does at some rows: slots are numbered as dimensions of keys, and -1 is
    none.
    """

    writes: NDArray[np.int64]
    reads: NDArray[np.int64]
    values: Array
    made_of: Array
    """(n, .): keys, queries, values and the gate, before they are scaled."""

    def same(self, some: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
        """Whether some rows are made of the same numbers as others, and so are all between them
        where these are affine.
        """
        return bool(np.array_equal(self.made_of[some], self.made_of[others]))


def delta_head(part: Live) -> Head:
    """The live head of DeltaNet, gated or not."""
    gates = ("a.weight", "a.bias", "rate") if isinstance(part.mixer, GDNMixer) else ()
    return part.head(DeltaNetMixer | GDNMixer, "DeltaNet, gated or not", "b.weight", *gates)


def moves(part: Live, rows: Array, tokens: int, whole: Integers) -> Moves:
    """What the head of a layer does at rows of the residual stream, in prompts of so many tokens.
    Raises CheckFailed where it neither overwrites nor leaves, or not exactly.
    """
    head, mixer, where = delta_head(part), part.mixer, part.where
    assert isinstance(mixer, DeltaNetMixer | GDNMixer)
    keys = whole.mapped(rows, head.k, what=f"{where}, k")
    queries = whole.mapped(rows, head.q, what=f"{where}, q")
    values = whole.mapped(rows, head.v, what=f"{where}, v")
    strength = array(mixer.b.weight)[head.index : head.index + 1]
    gate = whole.mapped(rows, strength, what=f"{where}, b")
    # what is solved for in the parallel form is a difference of two values; sums over tokens
    whole.digits.sum(4 * tokens * float(np.abs(values).max(initial=0.0)), 0, f"{where}, sums")
    if mixer.largest != 1.0 or (np.abs(gate) < SATURATED).any():
        raise CheckFailed(f"{where}, b: the gate is neither 1 nor 0")
    keeps(mixer, head.index, rows, whole.digits, where)
    tame(mixer, rows, where)
    return Moves(
        writes=np.where(gate[:, 0] > 0, _unit(keys, f"{where}, k"), -1),
        reads=_unit(queries, f"{where}, q"),
        values=values,
        made_of=np.concatenate([keys, queries, values, gate], 1),
    )


def _unit(rows: Array, what: str) -> NDArray[np.int64]:
    """The dimension of each row that is a multiple of a unit vector, which is made 1; -1 for 0."""
    live = rows != 0
    if (live.sum(1) > 1).any() or (rows < 0).any() or (rows > _LONGEST).any():
        raise CheckFailed(f"{what}: neither 0 nor a small multiple of a unit vector")
    return np.where(live.any(1), live.argmax(1), -1)
