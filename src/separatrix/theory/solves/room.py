"""Room for a construction: full layers with a head to spare, and room for the bits they
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import Head

WIDE = frozenset({"fp64", "fp32"})
"""Formats for which the block-sparse construction is proved."""
TAGS = 2
"""Key dimensions a retrieval head keeps free for tags beside the address."""

CHOSEN_WEIGHTS = (
    "weights, token embeddings and position-wise maps may be chosen, for this size; rotations"
    " (RoPE) are the model's own"
)
"""A premise of constructions in full layers."""
PLACES = (
    "a source of positions, named with each verdict: embeddings that give every token its place;"
    " rotations alone, under which the score at the offset asked for leads by more than rounding"
    " takes; or recurrent layers before that count the tokens"
)
"""A premise of constructions that look up places."""
CONTENTS = "key dimensions that no rotation turns, in which contents are compared"
"""A premise of constructions that look up contents."""


def full_heads(architecture: Architecture) -> Iterator[tuple[int, Mechanism, Head]]:
    """(layer, its heads, one of them) of the full attention, latent attention included, in formats
    that keep scores exact.
    """
    for index, layer in enumerate(architecture):
        for part in layer:
            if part.retrieval_head is not None:
                yield index, part, part.retrieval_head


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())
