"""Full causal softmax attention.

    y_i = sum_{j<=i} a_ij V x_j,   a_ij = exp(<Q x_i, K x_j>) / sum_{j'<=i} exp(<Q x_i, K x_j'>)

Source: Vaswani et al. 2017; the form without 1/sqrt(d) is that of [Ye26] section 2.
State after t tokens: the keys (kv_heads, t, head_dim) and values (kv_heads, t, value_dim) of all of them.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers._base import State
from separatrix.mixers._softmax import SoftmaxMixer, causal_softmax


class FullMixer(SoftmaxMixer):
    """Full attention, with grouped key-value heads. Raises SizeError for a convolution."""

    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        k, v = self._keys_values(x)
        return self._out(causal_softmax(self._queries(x), self._shared(k), self._shared(v)))

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        return self._read(x[:, -1:], *self._keys_values(x))

    def step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        k, v = self._keys_values(x[:, None])
        keys, values = torch.cat([state["keys"], k], 2), torch.cat([state["values"], v], 2)
        return self._read(x[:, None], keys, values), {"keys": keys, "values": values}
