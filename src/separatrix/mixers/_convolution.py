"""The short causal convolution, channel by channel: y_i = sum_{r<K} c_r x_{i-r}, tokens before the first taken as 0.

Shapes: b batch, t tokens, c channels, K kernel size. State after t tokens: the last min(t, K-1) inputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Convolution(nn.Module):
    """Kernels (c, K), the newest token's weight last; SiLU after them if `silu`."""

    def __init__(self, channels: int, kernel: int, *, silu: bool) -> None:
        super().__init__()
        self.weight, self.silu = nn.Parameter(torch.empty(channels, kernel)), silu

    def forward(self, x: Float[Tensor, "b t c"]) -> Float[Tensor, "b t c"]:
        kernel, tokens = self.weight.shape[1], x.shape[1]
        padded = F.pad(x, (0, 0, kernel - 1, 0))
        y = sum((padded[:, r : r + tokens] * self.weight[:, r] for r in range(1, kernel)), padded[:, :tokens] * self.weight[:, 0])
        return F.silu(y) if self.silu else y

    def step(self, x: Float[Tensor, "b c"], before: Float[Tensor, "b s c"]) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b r c"]]:
        """One token; `before` and the second result are the state."""
        seen = torch.cat([before, x[:, None]], 1)
        y = (seen * self.weight.T[-seen.shape[1] :]).sum(1)
        return F.silu(y) if self.silu else y, seen[:, max(0, seen.shape[1] - self.weight.shape[1] + 1) :]
