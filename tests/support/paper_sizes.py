"""Stacks as the tables of theory.md take them: every number has p bits, accumulators too, and no
running maximum stands among these, so that h = H (d + 1) p.
"""

from __future__ import annotations


def paper_sizes(heads: int, head_dim: int, p: int) -> str:
    """Sizes to write behind the @ of a stack that has a softmax."""
    return f"heads={heads}, head_dim={head_dim}, p{p}, accumulator=p{p}, running_max=false"
