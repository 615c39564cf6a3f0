"""Every construction whose proof can be derived from weights, one file each.

A derivation evaluates the model's own forward pass in the interval machine of
`separatrix.proofs`, class by class of positions. The checker derives a proof again with it; the
builders of `separatrix.constructions` let it say what their weights do. It imports nothing of
either.
"""

from __future__ import annotations

from typing import Any

from separatrix.proofs.derivations import (
    automaton,
    brackets,
    carried,
    carried_mqar,
    carried_recall,
    cgram,
    counting,
    encoder,
    equality,
    group,
    index,
    indexed_retrieval,
    khop,
    match2,
    match2_bits,
    modular,
    mqar,
    neighbour,
    pairs,
    parity,
    permutation,
    qsa,
    recall,
    retrieval,
    seqcomp,
    sparse_retrieval,
    swaps,
    thought,
)
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived

__all__ = ["DERIVATIONS", "Derivation", "Derived"]

DERIVATIONS: dict[str, Derivation[Any]] = {
    derivation.name: derivation
    for derivation in (
        retrieval.DERIVATION,
        sparse_retrieval.DERIVATION,
        indexed_retrieval.DERIVATION,
        seqcomp.DERIVATION,
        carried.DERIVATION,
        match2.DERIVATION,
        match2_bits.DERIVATION,
        pairs.DERIVATION,
        equality.DERIVATION,
        neighbour.DERIVATION,
        brackets.DERIVATION,
        parity.DERIVATION,
        modular.DERIVATION,
        permutation.DERIVATION,
        group.DERIVATION,
        swaps.DERIVATION,
        automaton.DERIVATION,
        thought.DERIVATION,
        index.DERIVATION,
        recall.DERIVATION,
        mqar.DERIVATION,
        carried_recall.DERIVATION,
        carried_mqar.DERIVATION,
        cgram.DERIVATION,
        khop.DERIVATION,
        counting.DERIVATION,
        encoder.DERIVATION,
        qsa.DERIVATION,
    )
}
"""Name of a construction -> how its proof is derived."""
