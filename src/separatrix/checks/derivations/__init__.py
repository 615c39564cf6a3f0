"""Every construction that the checker can derive from weights, one file each.

The builders register themselves in `separatrix.constructions`, which no checker may import. A test
holds that both tables name the same constructions for the same kinds of tasks.
"""

from __future__ import annotations

from typing import Any

from separatrix.checks.derivation import Derivation, Derived
from separatrix.checks.derivations import carried, match2, retrieval, seqcomp, sparse_retrieval

__all__ = ["DERIVATIONS", "Derivation", "Derived"]

DERIVATIONS: dict[str, Derivation[Any]] = {
    derivation.name: derivation
    for derivation in (
        retrieval.DERIVATION,
        sparse_retrieval.DERIVATION,
        seqcomp.DERIVATION,
        carried.DERIVATION,
        match2.DERIVATION,
    )
}
"""Name of a construction -> how its proof is derived."""
