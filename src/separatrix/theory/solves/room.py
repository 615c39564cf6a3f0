"""What the constructions share: full layers with a head to spare, and room for the bits they
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from separatrix.architecture import Architecture
from separatrix.mechanisms import Full, Indexed, Latent, Sparse

FORMATS = ("fp64", "fp32", "bf16", "fp16")
"""Formats in which a power-of-two scale keeps scores of up to 256 address bits exact."""
WIDE = ("fp64", "fp32")
"""Formats for which the block-sparse construction is proved."""
TAGS = 2
"""Key dimensions a retrieval head keeps free for tags beside the address."""


def full_heads(architecture: Architecture) -> Iterator[tuple[int, Full | Latent]]:
    """(layer, heads) of the full attention, latent attention included, in formats that keep
    scores exact.
    """
    for index, layer in enumerate(architecture):
        for part in layer:
            if (
                isinstance(part, Full | Latent)
                and not getattr(part, "rope", False)
                and {part.format, part.accumulator or part.format} <= set(FORMATS)
            ):
                yield index, part


def has_room(part: Full | Latent | Sparse | Indexed, keys: int, values: int) -> bool:
    """Whether a head has that many key and value dimensions; a latent must hold both, since it
    is all that is kept of a token.
    """
    latent = part.latent if isinstance(part, Latent | Indexed) else None
    return (
        keys <= part.head_dim and values <= part.dv and (latent is None or keys + values <= latent)
    )


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())
