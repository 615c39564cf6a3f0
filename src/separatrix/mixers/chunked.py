"""Chunked attention: full attention within consecutive chunks of s = `size` tokens, nothing across
their borders.

    y_i = sum_{s floor(i/s) <= j <= i} a_ij V x_j,
    a_ij = exp(<Q x_i, K x_j>) / the same summed over these j

Tokens and places (`rope`) are counted from the start of the sequence. Source: Meta 2025 (Llama 4);
scores as in full.py. State after t tokens: keys (kv_heads, min(t, s), head_dim) and values
(kv_heads, min(t, s), value_dim) of the last s, as `cache_bits` declares and as caches are allotted;
those of the chunk before are carried along and not seen. Parallel form: the chunks side by side as
a batch. No quadratic memory.
"""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor

from separatrix.mixers.base.mixer import Shapes, State, join_chunks, split_chunks
from separatrix.mixers.base.softmax import SoftmaxMixer, latest, tokens_back
from separatrix.mixers.base.tensors import Places, Token, Tokens
from separatrix.mixers.ops.causal_softmax import causal_softmax
from separatrix.stacks.mechanisms import Chunked


class ChunkedMixer(SoftmaxMixer):
    """Attention to the earlier tokens of the same chunk."""

    def __init__(self, mechanism: Chunked, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.size = mechanism.size

    def shapes(self, t: int) -> Shapes:
        return self._cached(min(t, self.size)) | self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        q, k, v = (
            split_chunks(y, self.size).transpose(1, 2).flatten(0, 1)
            for y in (q, self._shared(k), self._shared(v))
        )
        # (b n) h c .: a chunk sees itself alone, so chunks are a batch
        y = causal_softmax(q, k, v).unflatten(0, (len(x), -1))  # b n h c e
        return self._out(join_chunks(y.transpose(1, 2), x.shape[1]))

    def _sees(self, places: Places, tokens: int) -> Bool[Tensor, "b 1 k t"]:
        back = tokens_back(places, tokens)
        return (back >= 0) & (back <= (places % self.size)[:, None, :, None])

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project_last(x))
        start = (x.shape[1] - 1) // self.size * self.size
        return self._out(self._attend(q, k[:, :, start:], v[:, :, start:]))[:, 0]

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = latest(state["keys"], k, self.size)
        values = latest(state["values"], v, self.size)
        # the keys of the chunk before are carried, not read
        seen = t % self.size + 1
        y = self._out(self._attend(q, keys[:, :, -seen:], values[:, :, -seen:]))[:, 0]
        return y, {"keys": keys, "values": values} | conv
