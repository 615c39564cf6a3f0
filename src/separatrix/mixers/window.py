"""Sliding-window attention: full attention to the last s = `size` tokens, the token itself included.

    y_i = sum_{i-s<j<=i} a_ij V x_j,   a_ij = exp(<Q x_i, K x_j>) / sum_{i-s<j'<=i} exp(<Q x_i, K x_j'>)

Source: Beltagy, Peters, Cohan 2020 (Longformer); scores as in full.py.
State after t tokens: the keys (kv_heads, min(t, s), head_dim) and values (kv_heads, min(t, s), value_dim) of the last s. The oldest
of them is out of the next token's sight; it is carried because a window of s tokens is what models allocate and `cache_bits` declares.
Parallel form: queries in chunks of at least s tokens; a chunk sees itself and the chunk before it, under a band. No quadratic memory.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from separatrix.architecture.mechanisms import Window
from separatrix.mixers._base import State, split_chunks
from separatrix.mixers._softmax import SoftmaxMixer, causal_softmax, masked_softmax


class WindowMixer(SoftmaxMixer):
    """Attention to the last `size` tokens. Raises SizeError for a convolution."""

    def __init__(self, mechanism: Window, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.size = mechanism.size

    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q, (k, v) = self._queries(x), self._keys_values(x)
        if x.shape[1] <= self.size:
            return self._out(causal_softmax(q, self._shared(k), self._shared(v)))
        return self._out(banded_softmax(q, self._shared(k), self._shared(v), size=self.size, chunk=max(self.size, self.chunk)))

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        return self._read(x[:, -1:], *self._keys_values(x[:, -self.size :]))

    def step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        k, v = self._keys_values(x[:, None])
        keys = torch.cat([state["keys"], k], 2)[:, :, -self.size :]
        values = torch.cat([state["values"], v], 2)[:, :, -self.size :]
        return self._read(x[:, None], keys, values), {"keys": keys, "values": values}


def banded_softmax(
    q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], v: Float[Tensor, "b h t e"], *, size: int, chunk: int
) -> Float[Tensor, "b h t e"]:
    """Softmax attention to the last `size` tokens, in chunks of `chunk` >= size."""
    tokens = q.shape[2]
    q, k, v = (split_chunks(x, chunk) for x in (q, k, v))  # b h n c ...
    keys, values = (torch.cat([F.pad(x[:, :, :-1], (0, 0, 0, 0, 1, 0)), x], 3) for x in (k, v))  # b h n 2c ...
    query, key = torch.arange(q.shape[3], device=q.device)[:, None], torch.arange(-q.shape[3], q.shape[3], device=q.device)
    band = (key <= query) & (key > query - size)
    first = torch.arange(q.shape[2], device=q.device)[:, None, None] == 0
    y = masked_softmax(q, keys, values, band & ~(first & (key < 0)))
    return rearrange(y, "b h n c e -> b h (n c) e")[:, :, :tokens]
