"""Room for a construction: full layers with a head to spare, and room for the bits they
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from separatrix.architecture import Architecture
from separatrix.mechanisms.base import Head

WIDE = frozenset({"fp64", "fp32"})
"""Formats for which the block-sparse construction is proved."""
TAGS = 2
"""Key dimensions a retrieval head keeps free for tags beside the address."""


def full_heads(architecture: Architecture) -> Iterator[tuple[int, Head]]:
    """(layer, head) of the full attention, latent attention included, in formats that keep
    scores exact.
    """
    for index, layer in enumerate(architecture):
        for part in layer:
            if part.retrieval_head is not None:
                yield index, part.retrieval_head


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())
