"""Full causal softmax attention.

    y_i = sum_{j<=i} a_ij V x_j,   a_ij = exp(<Q x_i, K x_j>) / sum_{j'<=i} exp(<Q x_i, K x_j'>)

There is no 1/sqrt(d) in the definition of [Ye26]; `reset` draws Q smaller by that factor instead.
Carried: the keys and values of all tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from separatrix.architecture.mechanisms import Full
from separatrix.errors import SizeError
from separatrix.mixers._base import Mixer, State, fan_in_normal, linear

EXPLICIT_UP_TO = 128
"""Sequences up to this length use the explicit softmax, which is faster there than the fused kernel."""


class FullMixer(Mixer):
    """Full attention, with grouped key-value heads. Raises SizeError for a convolution, which this mixer does not have yet."""

    def __init__(self, mechanism: Full, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        if mechanism.conv:
            raise SizeError(f"full(conv={mechanism.conv}): the mixer has no short convolution; use conv=0 to build a model")
        self.heads, self.kv = mechanism.heads, mechanism.kv
        self.q = linear(width, mechanism.heads * mechanism.head_dim)
        self.k = linear(width, mechanism.kv * mechanism.head_dim)
        self.v = linear(width, mechanism.kv * mechanism.dv)
        self.o = linear(mechanism.heads * mechanism.dv, width)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        assert isinstance(self.mechanism, Full)
        fan_in_normal(self.q.weight, generator, gain=self.mechanism.head_dim**-0.5)

    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q = rearrange(self.q(x), "b t (h d) -> b h t d", h=self.heads)
        k, v = self._keys_values(x)
        y = causal_softmax(q, self._shared(k), self._shared(v))
        return self.o(rearrange(y, "b h t d -> b t (h d)"))

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        q = rearrange(self.q(x[:, -1]), "b (h d) -> b h d", h=self.heads)
        k, v = self._keys_values(x)
        return self._read(q, k, v)

    def init_state(self, batch: int) -> State:
        assert isinstance(self.mechanism, Full)
        return {
            "keys": self.empty(batch, self.kv, 0, self.mechanism.head_dim),
            "values": self.empty(batch, self.kv, 0, self.mechanism.dv),
        }

    def step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        q = rearrange(self.q(x), "b (h d) -> b h d", h=self.heads)
        k, v = self._keys_values(x[:, None])
        keys, values = torch.cat([state["keys"], k], 2), torch.cat([state["values"], v], 2)
        return self._read(q, keys, values), {"keys": keys, "values": values}

    def _keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k = rearrange(self.k(x), "b t (h d) -> b h t d", h=self.kv)
        return k, rearrange(self.v(x), "b t (h d) -> b h t d", h=self.kv)

    def _shared(self, x: Tensor) -> Tensor:
        return x if self.kv == self.heads else repeat(x, "b h t d -> b (h g) t d", g=self.heads // self.kv)

    def _read(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bhd,bhtd->bht", q, self._shared(k))
        y = torch.einsum("bht,bhtd->bhd", scores.softmax(-1), self._shared(v))
        return self.o(rearrange(y, "b h d -> b (h d)"))


def causal_softmax(q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], v: Float[Tensor, "b h t e"]) -> Float[Tensor, "b h t e"]:
    """Causal softmax attention with scores <q, k>: explicit when short, the fused kernel when long."""
    tokens = q.shape[2]
    if tokens > EXPLICIT_UP_TO:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1)
    scores = torch.einsum("bhid,bhjd->bhij", q, k).masked_fill(hidden, float("-inf"))
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
