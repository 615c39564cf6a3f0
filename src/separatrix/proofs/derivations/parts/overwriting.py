"""A delta-rule head that overwrites or leaves: with k_i a unit vector and b_i = 1 in S_i = S_{i-1}
(I - b_i k_i k_i^T) + b_i v_i k_i^T the token's value replaces one column of S, its slot; with k_i
or b_i 0 nothing changes. Every number is a value, or a difference of two: in the parallel form,
too, where the triangular system of a chunk has entries 0 and 1, and its solution is v_i less what
the slot held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.delta import DeltaNetMixer, GDNMixer
from separatrix.proofs.derivations.parts.live_parts import Head, Live
from separatrix.proofs.derivations.parts.reflections import updates_of
from separatrix.proofs.exact import Exactly, lowest
from separatrix.proofs.machine import Array


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What a delta-rule head does at some rows: slots are numbered as dimensions of keys, and -1 is
    none.
    """

    writes: NDArray[np.int64]
    reads: NDArray[np.int64]
    values: Array
    made_of: Array
    """(n, .): keys, queries, values and strengths."""

    def same(self, some: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
        """Whether some rows are made of the same numbers as others, and so are all between them
        where what they are mapped from is affine: whole multiples of a unit vector on its one side
        are such between each other, and gates as far open or shut.
        """
        return bool(np.array_equal(self.made_of[some], self.made_of[others]))


def delta_head(part: Live) -> Head:
    """The live head of DeltaNet, gated or not."""
    gates = ("a.weight", "a.bias", "rate") if isinstance(part.mixer, GDNMixer) else ()
    return part.head(DeltaNetMixer | GDNMixer, "DeltaNet, gated or not", "b.weight", *gates)


def moves(part: Live, rows: Array, tokens: int, whole: Exactly, more: Array | float = 0.0) -> Moves:
    """What the head of a layer does at rows of the residual stream, in prompts of so many tokens
    that write; `more`: what the gate's argument is beside what the rows say. Raises CheckFailed
    where it neither overwrites nor leaves, or not exactly.
    """
    head, mixer, where = delta_head(part), part.mixer, part.where
    assert isinstance(mixer, DeltaNetMixer | GDNMixer)
    found = updates_of(mixer, head.index, rows, whole, where, more)
    (keys,), (values,) = (x.swapaxes(0, 1) for x in (found.k, found.v))
    note_sums(part, float(np.abs(values).max(initial=0.0)), lowest(values), tokens, whole)
    return Moves(
        writes=np.where(found.b[:, 0] > 0, _slot(keys, f"{where}, k"), -1),
        reads=_slot(found.q, f"{where}, q"),
        values=values,
        made_of=np.concatenate([keys, found.q, values, found.b], 1),
    )


def note_sums(part: Live, most: float, bits: int, tokens: int, whole: Exactly) -> None:
    """Notes the digits of values of at most this size, all multiples of 2^bits, where so many
    tokens write: what is solved for in the parallel form is a difference of two; sums over tokens.
    """
    whole.digits.sum(4 * tokens * most, bits, f"{part.where}, sums")


def _slot(rows: Array, what: str) -> NDArray[np.int64]:
    """The dimension of each row that is a unit vector; -1 for 0."""
    if not (np.isin(rows, (0.0, 1.0)).all() and (rows.sum(1) <= 1).all()):
        raise CheckFailed(f"{what}: neither 0 nor a multiple of a unit vector")
    return np.where(rows.any(1), rows.argmax(1), -1)
