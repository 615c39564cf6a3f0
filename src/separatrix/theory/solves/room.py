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

CHOSEN_WEIGHTS = (
    "weights, embeddings and position-wise maps, rotations of queries and keys (RoPE) among"
    " them, may be chosen"
)
"""A premise of constructions in full layers."""


def full_heads(architecture: Architecture) -> Iterator[tuple[int, Head]]:
    """(layer, head) of the full attention, latent attention included, in formats that keep
    scores exact.
    """
    for index, layer in enumerate(architecture):
        for part in layer:
            if part.retrieval_head is not None:
                yield index, part.retrieval_head


def flagging_layers(architecture: Architecture, bits: int) -> tuple[int, int] | None:
    """The first full layer that can compare so many bits and flag what it finds, and the next full
    layer after it, which can look for a flag; None where the stack has no such two.
    """
    heads = list(full_heads(architecture))
    flags = [i for i, head in heads if bits <= 256 and head.has_room(bits + TAGS, 1)]
    after = [i for i, _ in heads if flags and i > flags[0]]
    return (flags[0], after[0]) if after else None


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())
