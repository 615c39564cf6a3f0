"""Attention to near tokens: to the last s = `size` ones, the token itself included (window), or to
those of the same chunk of s consecutive tokens (chunked).

    y_i = sum_{j in R_i} a_ij V x_j,   a_ij = exp(<Q x_i, K x_j>) / the same summed over R_i,
    R_i = {i-s+1, ..., i}              window
    R_i = {s floor(i/s), ..., i}       chunked

Tokens and places (`rope`) are counted from the start of the sequence; scores and options as in
full.py. Source: Beltagy, Peters, Cohan 2020 (Longformer); chunks: Meta 2025 (Llama 4).
State after t tokens: the keys (kv_heads, min(t, s), head_dim) and values (kv_heads, min(t, s),
value_dim) of the last s, as models allot and `cache_bits` declares: the oldest are carried though
the next token of a window does not see them, and those of the chunk before though none does.
Parallel form, without quadratic memory: window: queries in chunks of at least s tokens; a chunk
sees itself and the chunk before it, under a band; wide windows on a CPU a few queries at a time.
Chunked: the chunks side by side as a batch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from separatrix.mixers.base.mixer import join_chunks, split_chunks, unbuilt, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import Keys, Sinks, Tokens, Values
from separatrix.mixers.ops.blockwise import spans
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import (
    KEPT,
    PARTED,
    causal_softmax,
    masked_softmax,
    parted_softmax,
)
from separatrix.stacks.mechanisms import Chunked, Window


class WindowMixer(SoftmaxMixer):
    """Attention to the last `size` tokens. Raises SizeError where key and value are one."""

    caps = True

    def __init__(self, mechanism: Window, *, width: int) -> None:
        unbuilt(mechanism, shared=mechanism.shared)
        super().__init__(mechanism, width=width, sink=mechanism.sink)
        self.size = self.kept = mechanism.size

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        k = self._shared(k)
        v = self._shared(v)
        y = windowed(q, k, v, self.sink, size=self.size, chunk=self.chunk, cap=self.cap)
        return self._out(y, x)

    def _reach(self, place: Any) -> Any:
        return self.size


class ChunkedMixer(SoftmaxMixer):
    """Attention to the earlier tokens of the same chunk."""

    def __init__(self, mechanism: Chunked, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.size = self.kept = mechanism.size

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        q, k, v = (
            split_chunks(y, self.size).transpose(1, 2).flatten(0, 1)
            for y in (q, self._shared(k), self._shared(v))
        )
        # (b n) h c .: a chunk sees itself alone, so chunks are a batch
        y = causal_softmax(q, k, v).unflatten(0, (len(x), -1))  # b n h c e
        return self._out(join_chunks(y.transpose(1, 2), x.shape[1]), x)

    def _reach(self, place: Any) -> Any:
        return place % self.size + 1


WIDE = 256
"""Windows from here on go a few queries at a time: 2,048 tokens of 4 heads of 64 that see 512,
forward and backward, take 46 ms of a core, 58 where weights are computed again.
"""


class _Band(NamedTuple):
    """Attention to the last `size` tokens, 64 queries at a time, beside its gradient, which is
    added up in place: no query meets a token far outside of its window.
    """

    size: int
    keeps: bool
    """Whether weights are kept for the gradient, where they are few."""

    def __call__(self, q: Keys, k: Keys, v: Values) -> tuple[Tensor, ...]:
        keeps = self.keeps and q[..., 0].numel() * self.size <= KEPT
        outputs: list[Tensor] = []
        kept: list[Tensor] = []
        for own, seen in self._places(q):
            weights = self._weights(q, k, own, seen)
            outputs.append(weights @ v[:, :, seen])
            kept += [weights] * keeps
        return torch.cat(outputs, 2), *kept

    def gradient(
        self, grad: Values, q: Keys, k: Keys, v: Values, *kept: Tensor
    ) -> tuple[Tensor, ...]:
        to_q, to_k, to_v = (x.new_zeros(x.shape) for x in (q, k, v))
        for i, (own, seen) in enumerate(self._places(q)):
            weights = kept[i] if kept else self._weights(q, k, own, seen)
            here = grad[:, :, own]
            to_v[:, :, seen] += weights.mT @ here
            shares = here @ v[:, :, seen].mT
            scores = torch.ops.aten._softmax_backward_data(shares, weights, -1, weights.dtype)
            to_q[:, :, own] = scores @ k[:, :, seen]
            to_k[:, :, seen] += scores.mT @ q[:, :, own]
        return to_q, to_k, to_v

    def _places(self, q: Keys) -> list[tuple[slice, slice]]:
        return [
            (slice(first, last), slice(max(0, first + 1 - self.size), last))
            for first, last in spans(0, q.shape[2], 64)
        ]

    def _weights(self, q: Keys, k: Keys, own: slice, seen: slice) -> Tensor:
        scores = q[:, :, own] @ k[:, :, seen].mT
        queries = own.stop - own.start
        later = scores.new_full((queries, queries), -math.inf)
        scores[..., -queries:] += later.triu(1)
        scores[..., :queries] += later.tril(own.start - self.size - seen.start)
        return scores.softmax(-1)


def windowed(
    q: Keys, k: Keys, v: Values, sink: Sinks = None, *, size: int, chunk: int, cap: int = 0
) -> Values:
    """Softmax attention to the last `size` tokens, in chunks of half as many, or of `chunk`."""
    tokens = q.shape[2]
    if tokens <= size:
        parts = parted_softmax if tokens <= PARTED else causal_softmax
        return parts(q, k, v, sink, cap)
    if size >= WIDE and sink is None and not (cap or q.is_cuda):
        band = _Band(size, keeps=torch.is_grad_enabled())
        return recomputed(band, wide(q), wide(k), wide(v)).to(v.dtype)
    # a chunk sees no further than the two chunks before it, or the one
    q, k, v = (split_chunks(x, max(-(-size // 2), chunk)).transpose(1, 2) for x in (q, k, v))
    # split_chunks makes no chunk longer than the sequence
    chunk = q.shape[3]
    far = 1 if chunk + 1 >= size else 2
    place = torch.arange((far + 1) * chunk, device=q.device)
    ahead = place[:, None] - place  # query minus key
    seen = (ahead >= 0) & (ahead < size)
    first, keys, values = (x[:, :far].transpose(1, 2).flatten(2, 3) for x in (q, k, v))
    near = first.shape[2]
    y = masked_softmax(first, keys, values, seen[:near, :near], sink, cap)
    y = y.unflatten(2, (-1, chunk)).transpose(1, 2)
    if q.shape[1] > far:
        # every later chunk beside those before it: (b n) h 2c or 3c ...
        count = q.shape[1] - far
        keys, values = (
            torch.cat([x[:, i : i + count] for i in range(far + 1)], 3).flatten(0, 1)
            for x in (k, v)
        )
        later = masked_softmax(q[:, far:].flatten(0, 1), keys, values, seen[-chunk:], sink, cap)
        y = torch.cat([y, later.unflatten(0, (len(q), -1))], 1)
    return join_chunks(y.transpose(1, 2), tokens)
