"""What the softmax mixers share: projections with grouped key-value heads, and softmax attention under a mask.

Shapes: b batch, t tokens, w model width, h query heads, g key-value heads, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.architecture.mechanisms import Full, Sparse, Window
from separatrix.mixers._base import Mixer, State, fan_in_normal, linear, no_convolution

EXPLICIT_UP_TO = 128
"""Sequences up to this length use the explicit softmax, which is faster there than the fused kernel."""


class SoftmaxMixer(Mixer):
    """Queries, keys, values and the output map.

    There is no 1/sqrt(d) in the scores of [Ye26]; `reset` draws Q smaller by that factor instead.
    """

    def __init__(self, mechanism: Full | Window | Sparse, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        no_convolution(mechanism)
        self.heads, self.kv, self.head_dim, self.dv = mechanism.heads, mechanism.kv, mechanism.head_dim, mechanism.dv
        self.q = linear(width, self.heads * self.head_dim)
        self.k = linear(width, self.kv * self.head_dim)
        self.v = linear(width, self.kv * self.dv)
        self.o = linear(self.heads * self.dv, width)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        fan_in_normal(self.q.weight, generator, gain=self.head_dim**-0.5)

    def init_state(self, batch: int) -> State:
        return {"keys": self.empty(batch, self.kv, 0, self.head_dim), "values": self.empty(batch, self.kv, 0, self.dv)}

    def _queries(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b h t d"]:
        return rearrange(self.q(x), "b t (h d) -> b h t d", h=self.heads)

    def _keys_values(self, x: Float[Tensor, "b t w"]) -> tuple[Float[Tensor, "b g t d"], Float[Tensor, "b g t e"]]:
        k = rearrange(self.k(x), "b t (g d) -> b g t d", g=self.kv)
        return k, rearrange(self.v(x), "b t (g e) -> b g t e", g=self.kv)

    def _shared(self, x: Float[Tensor, "b g ..."]) -> Float[Tensor, "b h ..."]:
        """Every key-value head copied to the query heads that share it."""
        return x if self.kv == self.heads else repeat(x, "b g ... -> b (g r) ...", r=self.heads // self.kv)

    def _read(self, x: Float[Tensor, "b 1 w"], k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t e"]) -> Float[Tensor, "b w"]:
        """The output of one token that sees all the keys and values given."""
        scores = self._queries(x) @ self._shared(k).transpose(-1, -2)
        return self._out(scores.softmax(-1) @ self._shared(v))[:, 0]

    def _out(self, y: Float[Tensor, "b h t e"]) -> Float[Tensor, "b t w"]:
        return self.o(rearrange(y, "b h t e -> b t (h e)"))


def causal_softmax(q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], v: Float[Tensor, "b h t e"]) -> Float[Tensor, "b h t e"]:
    """Causal softmax attention with scores <q, k>."""
    tokens = q.shape[2]
    if _fused(tokens):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return masked_softmax(q, k, v, torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).tril())


def masked_softmax(
    q: Float[Tensor, "*b i d"], k: Float[Tensor, "*b j d"], v: Float[Tensor, "*b j e"], seen: Bool[Tensor, "*#b i j"]
) -> Float[Tensor, "*b i e"]:
    """Softmax attention with scores <q, k> where query i sees key j if `seen[..., i, j]`; every query sees at least one key."""
    if _fused(k.shape[-2]) and q.dim() == 4:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=1.0)
    scores = (q @ k.transpose(-1, -2)).masked_fill(~seen, float("-inf"))
    return scores.softmax(-1) @ v


def _fused(tokens: int) -> bool:
    # the fused kernel has no batching rule, so under torch.func.vmap it would run model by model, with a warning
    return tokens > EXPLICIT_UP_TO and not torch._C._are_functorch_transforms_active()
