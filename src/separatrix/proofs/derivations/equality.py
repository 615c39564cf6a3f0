"""Equality of two strings: every place fetches the bit of its partner, the MLP flags a difference,
and the last token looks for a flag.
"""

from __future__ import annotations

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.flagged import Kinds, after_mlp, look, said
from separatrix.proofs.derivations.parts.live_parts import live_parts
from separatrix.proofs.derivations.parts.partners import fetch_partners, left_in
from separatrix.proofs.derivations.parts.stream import RESIDUAL, Stream
from separatrix.proofs.machine import add
from separatrix.tasks import Equality
from separatrix.tasks.base.task import Tokens

_BITS = 2
_FETCHES = "the bit at the same place of the first string"


def derive(task: Equality, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if model.config.bos:
        raise CheckFailed("this construction has no start token")
    live = live_parts(model)
    if len(live) != 2:
        raise CheckFailed(f"{len(live)} layers write; this construction is two")
    first, second = live
    stream = Stream.of(model, task.length, _BITS, arithmetic)
    # a place of the first string is its own partner
    partner = np.arange(task.length) % task.n
    fetched = fetch_partners(stream, first, partner, slice(0, _BITS))
    # a token at any place, and what it has fetched: the same bit, or the other
    bit, other = (grid.ravel() for grid in np.indices((_BITS, _BITS)))
    rows = add(stream.by_token.rows(bit), fetched.written.rows(other), RESIDUAL)
    after = after_mlp(first, rows)
    kinds = Kinds(plain=after.rows(bit == other), flagged=after.rows(bit != other))
    looked = look(model, second, kinds, kinds, task.length, (1, 0))
    entry = fetched.entry(first, _FETCHES, left_in(first, fetched.written, rows, after))
    used = {
        "layers": 2,
        "head_dim": max(fetched.key_numbers, looked.key_numbers),
        "value_dim": max(fetched.value_numbers, looked.value_numbers),
    }
    near = fetched.lead
    return Derived(
        [entry, looked.entry],
        looked.margin,
        used,
        lambda rng: closest(task, (near.token % task.n, near.rival % task.n), rng),
        arithmetic=said(arithmetic, fetched.assumes, looked.assumes),
        formats=(arithmetic.name,),
    )


def closest(task: Equality, near: tuple[int, int], rng: np.random.Generator) -> Tokens:
    """Strings that are equal, and that differ in one bit: of constants, of those where the two
    places of the smallest lead differ, and of any.
    """
    rows = []
    two = np.zeros(task.n, np.int64)
    two[near[0]] = 1
    for u in (0 * two, 0 * two + 1, two, 1 - two, rng.integers(_BITS, size=task.n)):
        rows.append(np.concatenate([u, u]))
        for place in {0, task.n - 1, *near}:
            v = u.copy()
            v[place] ^= 1
            rows.append(np.concatenate([u, v]))
    return np.array(rows, np.int64)


def ids(task: Equality) -> list[int]:
    """Two strings of bits."""
    return [_BITS] * task.length


DERIVATION = Derivation(name="equality", task=Equality, derive=derive, ids=ids)
