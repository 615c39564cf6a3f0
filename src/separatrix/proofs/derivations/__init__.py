"""Every construction whose proof can be derived from weights, a file for each family.

A derivation evaluates the model's own forward pass in the interval machine of
`separatrix.proofs`, class by class of positions. The checker derives a proof again with it; the
builders of `separatrix.constructions` let it say what their weights do. It imports nothing of
either.
"""

from __future__ import annotations

from typing import Any

from separatrix.proofs.derivations import (
    brackets,
    copying,
    counting,
    flags,
    induction,
    khop,
    lookups,
    question_first,
    retrieval,
    seqcomp,
    tracked,
)
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived

__all__ = ["DERIVATIONS", "Derivation", "Derived"]

DERIVATIONS: dict[str, Derivation[Any]] = {
    derivation.name: derivation
    for family in (
        retrieval,
        seqcomp,
        flags,
        brackets,
        tracked,
        lookups,
        induction,
        khop,
        copying,
        counting,
        question_first,
    )
    for derivation in family.DERIVATIONS
}
"""Name of a construction -> how its proof is derived."""
