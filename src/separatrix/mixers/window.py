"""Sliding-window attention: full attention to the last s = `size` tokens, the token itself
included.

    y_i = sum_{i-s<j<=i} a_ij V x_j,
    a_ij = exp(<Q x_i, K x_j>) / sum_{i-s<j'<=i} exp(<Q x_i, K x_j'>)

Source: Beltagy, Peters, Cohan 2020 (Longformer); scores and options as in full.py.
State after t tokens: the keys (kv_heads, min(t, s), head_dim) and values (kv_heads, min(t, s),
value_dim) of the last s. The oldest of them is out of the next token's sight; it is carried because
a window of s tokens is what models allocate and `cache_bits` declares. Parallel form: queries in
chunks of at least s tokens; a chunk sees itself and the chunk before it, under a band. No quadratic
memory.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, split_chunks
from separatrix.mixers.base.softmax import SoftmaxMixer, latest, tokens_back
from separatrix.mixers.base.tensors import Keys, Places, Token, Tokens, Values
from separatrix.mixers.ops.causal_softmax import causal_softmax
from separatrix.mixers.ops.softmax import masked_softmax
from separatrix.stacks.mechanisms import Window


class WindowMixer(SoftmaxMixer):
    """Attention to the last `size` tokens. Raises SizeError where key and value are one."""

    caps = True

    def __init__(self, mechanism: Window, *, width: int) -> None:
        if mechanism.shared:
            raise SizeError(
                "'window' with shared=true (key and value in one) has declared sizes but no mixer;"
                " set shared=false"
            )
        super().__init__(mechanism, width=width, sink=mechanism.sink)
        self.size = mechanism.size

    def shapes(self, t: int) -> Shapes:
        return self._cached(min(t, self.size)) | self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        k = self._shared(k)
        v = self._shared(v)
        if x.shape[1] <= self.size:
            return self._out(causal_softmax(q, k, v, self.sink, self.cap), x)
        # a chunk of at least the window sees no further than the chunk before it
        chunk = max(self.size, self.chunk)
        y = banded_softmax(q, k, v, self.sink, size=self.size, chunk=chunk, cap=self.cap)
        return self._out(y, x)

    def _sees(self, places: Places, tokens: int) -> Bool[Tensor, "b 1 k t"]:
        back = tokens_back(places, tokens)
        return (back >= 0) & (back < self.size)

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project_last(x))
        y = self._attend(q, k[:, :, -self.size :], v[:, :, -self.size :])
        return self._out(y, x[:, -1:])[:, 0]

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = latest(state["keys"], k, self.size)
        values = latest(state["values"], v, self.size)
        y = self._out(self._attend(q, keys, values), x[:, None])[:, 0]
        return y, {"keys": keys, "values": values} | conv


def banded_softmax(
    q: Keys,
    k: Keys,
    v: Values,
    sink: Float[Tensor, " h"] | None = None,
    *,
    size: int,
    chunk: int,
    cap: int = 0,
) -> Values:
    """Softmax attention to the last `size` tokens, in chunks of `chunk` >= size."""
    tokens = q.shape[2]
    q, k, v = (split_chunks(x, chunk).transpose(1, 2) for x in (q, k, v))  # b n h c ...
    # split_chunks makes no chunk longer than the sequence
    chunk = q.shape[3]
    place = torch.arange(chunk, device=q.device)
    ahead = place[:, None] - place  # query minus key in one chunk
    seen = (ahead >= 0) & (ahead < size)
    y = masked_softmax(q[:, 0], k[:, 0], v[:, 0], seen, sink, cap)[:, None]
    if q.shape[1] > 1:
        # every chunk but the first beside the one before it: (b n) h 2c ...
        keys, values = (torch.cat([x[:, :-1], x[:, 1:]], 3).flatten(0, 1) for x in (k, v))
        seen = torch.cat([ahead + chunk < size, (ahead >= 0) & (ahead < size)], 1)
        later = masked_softmax(q[:, 1:].flatten(0, 1), keys, values, seen, sink, cap)
        y = torch.cat([y, later.unflatten(0, (len(q), -1))], 1)
    return join_chunks(y.transpose(1, 2), tokens)
