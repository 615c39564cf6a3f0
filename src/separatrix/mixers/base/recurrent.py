"""What the mixers with a matrix state share: several value heads may share one query-key head;
output norm and gate.

Shapes: b batch, t tokens, w model width, h heads, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mechanisms import Mamba2, MatrixState
from separatrix.mixers.base.heads import HeadsMixer, Projected, merge_heads, split_heads
from separatrix.mixers.base.mixer import Shapes, State, linear, wide

SHORTEST_LENGTH = 1e-6
"""Vectors shorter than this are divided by it instead of by their length, so that 0 stays 0."""
EPSILON = 1e-6
"""Added to the mean square under the root of an output norm; times d behind queries of unit length,
since released layers divide those by sqrt(d), which the norm takes out again but for its epsilon.
"""
ACTIVATIONS = {"silu": F.silu, "sigmoid": torch.sigmoid}


class RecurrentMixer(HeadsMixer):
    """Queries, keys, values, output norm and gate. With `gate` norm, every head's output is divided
    by its root mean square and scaled by a learned vector; with silu or sigmoid that is also
    multiplied by this function of a map G x.
    """

    def __init__(
        self,
        mechanism: MatrixState | Mamba2,
        *,
        width: int,
        updates: int = 1,
        silu: bool = True,
        unit_queries: bool = False,
    ) -> None:
        if isinstance(mechanism, Mamba2):
            heads = mechanism.heads
            qk = mechanism.groups
            head_dim = mechanism.state
            dv = mechanism.head_dim
        else:
            heads = mechanism.heads
            qk = mechanism.qk
            head_dim = mechanism.head_dim
            dv = mechanism.dv
        channels = (qk * head_dim, updates * qk * head_dim, updates * heads * dv)
        super().__init__(
            mechanism,
            width=width,
            channels=channels,
            outputs=heads * dv,
            head_dim=head_dim,
            silu=silu,
        )
        self.heads = heads
        self.qk = qk
        self.head_dim = head_dim
        self.dv = dv
        self.updates = updates
        tail = mechanism.sizes().get("gate", "none")
        self.norm = None if tail == "none" else nn.Parameter(torch.ones(dv))
        self.gate = linear(width, heads * dv) if tail in ACTIVATIONS else None
        self.activation = ACTIVATIONS.get(tail)
        self.epsilon = EPSILON * head_dim if unit_queries else EPSILON

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        if self.norm is not None:
            with torch.no_grad():
                self.norm.fill_(1)

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.heads, self.head_dim, self.dv)} | self._conv_shapes(t)

    def _heads_of(self, projected: Projected) -> Projected:
        """q (b h t d), k (b h (t n) d) and v (b h (t n) e) with n updates per token, in float32
        at least.
        """
        copies = self.heads // self.qk
        q, k, v = (wide(x) for x in projected)
        k, v = (rearrange(x, "b t (n c) -> b (t n) c", n=self.updates) for x in (k, v))
        return (
            split_heads(q, self.qk, copies),
            split_heads(k, self.qk, copies),
            split_heads(v, self.heads),
        )

    def _qkv(self, x: Float[Tensor, "b t w"]) -> Projected:
        return self._heads_of(self._project(x))

    def _qkv_last(self, x: Float[Tensor, "b t w"]) -> Projected:
        """As `_qkv`, queries of the last token only."""
        return self._heads_of(self._project_last(x))

    def _qkv_step(self, x: Float[Tensor, "b w"], state: State) -> tuple[Projected, State]:
        """As `_qkv` for one token, and the convolution's part of the new state."""
        projected, conv = self._project_step(x, state)
        return self._heads_of(projected), conv

    def _out(
        self,
        y: Float[Tensor, "b h t e"],
        x: Float[Tensor, "b t w"],
        beside: Float[Tensor, "b h t e"] | None = None,
    ) -> Float[Tensor, "b t w"]:
        """The output map, after norm and gate; y are the heads' outputs for the tokens x,
        `beside` what is added between norm and gate.
        """
        if self.norm is not None:
            y = y * (y.square().mean(-1, keepdim=True) + self.epsilon).rsqrt() * self.norm
        merged = merge_heads(y if beside is None else y + beside).to(x.dtype)
        if self.gate is not None and self.activation is not None:
            merged = merged * self.activation(self.gate(x))
        return self.o(merged)


def per_head(x: Float[Tensor, "b t h"]) -> Float[Tensor, "b h t 1"]:
    """A number per token and head, in float32 at least, to stand beside keys."""
    return wide(x).transpose(1, 2)[..., None]


def unit(x: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t d"]:
    """Vectors scaled to length 1; 0 stays 0."""
    return F.normalize(x, dim=-1, eps=SHORTEST_LENGTH)


def divide(
    numerator: Float[Tensor, "*b e"], denominator: Float[Tensor, "*b 1"]
) -> Float[Tensor, "*b e"]:
    """The quotient, and 0 where the denominator is 0."""
    zero = denominator == 0
    return torch.where(zero, 0.0, numerator / torch.where(zero, 1.0, denominator))
