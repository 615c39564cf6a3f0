"""The short causal convolution, channel by channel: y_i = sum_{r<K} c_r x_{i-r}, tokens before the
first taken as 0.

Shapes: b batch, t tokens, c channels, K kernel size. State after t tokens: the last min(t, K-1)
inputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.tensors import Channels


class Convolution(nn.Module):
    """Kernels (c, K), the newest token's weight last; SiLU after them if `silu`, and then
    outputs in float32 at least.
    """

    def __init__(self, channels: int, kernel: int, *, silu: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, kernel))
        self.silu = silu

    def shape(self, t: int) -> tuple[int, int]:
        """Of the state after t tokens: the last inputs that later tokens still see."""
        channels, kernel = self.weight.shape
        return min(t, kernel - 1), channels

    def forward(self, x: Channels) -> Channels:
        kernel = self.weight.shape[1]
        tokens = x.shape[1]
        weights = wide(self.weight).unbind(1)
        padded = F.pad(wide(x), (0, 0, kernel - 1, 0))
        y = padded[:, :tokens] * weights[0]
        for r in range(1, kernel):
            y = torch.addcmul(y, padded[:, r : r + tokens], weights[r])
        return F.silu(y) if self.silu else y.to(x.dtype)

    def step(
        self, x: Float[Tensor, "b c"], before: Float[Tensor, "b s c"]
    ) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b r c"]]:
        """One token; `before` and the second result are the state."""
        seen = torch.cat([before, x[:, None]], 1)
        # fewer inputs than weights at the start: those before the first token are 0
        y = (wide(seen) * wide(self.weight).T[-seen.shape[1] :]).sum(1)
        forgotten = max(0, seen.shape[1] - self.weight.shape[1] + 1)
        # a view would keep the forgotten input in memory
        return F.silu(y) if self.silu else y.to(x.dtype), seen[:, forgotten:].clone()
