"""Softmax attention of one query over keys that come block by block, none of which is kept.

    m' = max(m, max_j s_j)
    Z' = e^(m - m') Z + sum_j e^(s_j - m')
    y' = e^(m - m') y + sum_j e^(s_j - m') v_j

The output is y / Z. Sums are held in float32 at least.
Source: Milakov & Gimelshein 2018, arXiv 1805.02867.

Shapes: b batch, h heads, j keys of the block, e value dimension.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.tensors import OneRead


class RunningSoftmax:
    """The maximum, the normaliser and the weighted sum of values so far, for each head."""

    def __init__(self) -> None:
        self.top: Tensor | None = None
        self.normaliser: Tensor = torch.empty(0)
        self.values: Tensor = torch.empty(0)

    def add(self, scores: Float[Tensor, "b h 1 j"], v: Float[Tensor, "b h j e"]) -> None:
        """Takes in a block of keys, by their scores and values."""
        scores = wide(scores)
        top = scores.amax(-1, keepdim=True)
        if self.top is not None:
            top = torch.maximum(top, self.top)
        weights = (scores - top).exp_()
        normaliser = weights.sum(-1, keepdim=True)
        values = weights @ wide(v)
        if self.top is not None:
            kept = (self.top - top).exp_()
            normaliser += kept * self.normaliser
            values += kept * self.values
        self.top, self.normaliser, self.values = top, normaliser, values

    def output(self) -> OneRead:
        """The average of all values taken in."""
        return self.values / self.normaliser
