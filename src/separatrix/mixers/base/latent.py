"""Attention with keys and values from one latent per token: its maps, and how decoding reads.

Shapes: b batch, t tokens, w model width, h heads, d key dimension, e value dimension, l latent, p
rotated key, c channels.
"""

from __future__ import annotations

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import merge_heads, split_heads
from separatrix.mixers.base.mixer import Mixer, Shapes, State, fan_in_normal, linear, wide
from separatrix.mixers.base.tensors import Channels, Keys, OneQuery, Token, Tokens, Values
from separatrix.mixers.ops.convolution import Convolution
from separatrix.mixers.ops.rope import rotate
from separatrix.mixers.ops.softmax import softmax
from separatrix.stacks.mechanisms import LatentCache

EPS = 1e-6


class LatentMixer(Mixer):
    """Maps q (queries), c (latent), r (rotated key, absent if rope_dim = 0), k and v (up from
    the latent), o. Queries are maps of `queries` numbers: the model width, or a latent of theirs.
    """

    def __init__(self, mechanism: LatentCache, *, width: int, queries: int | None = None) -> None:
        super().__init__(mechanism, width=width)
        self.heads = mechanism.heads
        self.head_dim = mechanism.head_dim
        self.dv = mechanism.dv
        self.latent = mechanism.latent
        self.rope_dim = mechanism.rope_dim
        self.rotation = mechanism.rotation
        self.channels = [self.heads * (self.head_dim + self.rope_dim), self.latent, self.rope_dim]
        self.q = linear(queries or width, self.channels[0])
        self.c = linear(width, self.latent)
        self.r = linear(width, self.rope_dim) if self.rope_dim else None
        self.k = linear(self.latent, self.heads * self.head_dim)
        self.v = linear(self.latent, self.heads * self.dv)
        self.o = linear(self.heads * self.dv, width)
        self.conv = (
            Convolution(sum(self.channels), mechanism.conv, silu=False) if mechanism.conv else None
        )

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        fan_in_normal(self.q.weight, generator, gain=(self.head_dim + self.rope_dim) ** -0.5)

    def shapes(self, t: int) -> Shapes:
        shapes: Shapes = {"latents": (t, self.latent)}
        if self.rope_dim:
            shapes["rotated"] = (t, self.rope_dim)
        if self.conv is not None:
            shapes["conv"] = self.conv.shape(t)
        return shapes

    def _asking(self, x: Tokens) -> Float[Tensor, "b t n"]:
        """What queries are maps of."""
        return x

    def _latents(self, x: Tokens) -> tuple[Tensor, Tensor, Tensor]:
        """q (b h t d), latents c (b t l) and rotated keys r (b t p) of a whole sequence."""
        parts = self._projected(x)
        return self._split(parts if self.conv is None else self.conv(parts), 0)

    def _extended(
        self, x: Token, state: State, t: int
    ) -> tuple[tuple[Tensor, Tensor, Tensor], State]:
        """q of one token, latents and rotated keys up to it, and the new state."""
        new: State = {}
        parts = self._projected(x[:, None])
        if self.conv is not None:
            y, new["conv"] = self.conv.step(parts[:, 0], state["conv"])
            parts = y[:, None]
        q, c, r = self._split(parts, t)
        new["latents"] = torch.cat([state["latents"], c], 1)
        if self.rope_dim:
            r = new["rotated"] = torch.cat([state["rotated"], r], 1)
        return (q, new["latents"], r), new

    def _written_out(
        self, c: Float[Tensor, "b t l"], r: Float[Tensor, "b t p"]
    ) -> tuple[Keys, Values]:
        """Keys and values of every head."""
        shared = repeat(r, "b t d -> b h t d", h=self.heads)
        k = torch.cat([split_heads(self.k(c), self.heads), shared], -1)
        return k, split_heads(self.v(c), self.heads)

    def _projected(self, x: Tokens) -> Channels:
        parts = [self.q(self._asking(x)), self.c(x)]
        if self.r is not None:
            parts.append(self.r(x))
        return torch.cat(parts, -1)

    def _split(self, parts: Channels, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """q (b h t d), latents c (b t l) and rotated keys r (b t p) of tokens that stand at
        `start`, ...
        """
        q, c, r = parts.split(self.channels, -1)
        c = scaled(c)
        q = split_heads(q, self.heads)
        if self.rotation is not None:
            turned = rotate(q[..., self.head_dim :], self.rotation, start=start)
            q = torch.cat([q[..., : self.head_dim], turned], -1)
            r = rotate(r[:, None], self.rotation, start=start)[:, 0]
        return q, c, r

    def _read(self, q: OneQuery, c: Float[Tensor, "b t l"], r: Float[Tensor, "b s p"]) -> Token:
        """The output of the last of t tokens from latents and rotated keys."""
        up_k, up_v = (
            rearrange(wide(m.weight), "(h d) l -> h d l", h=self.heads) for m in (self.k, self.v)
        )
        q = wide(q)
        # <W^K c_j, q> = <c_j, W^K' q>: no keys are written out
        asked = torch.einsum("bhid,hdl->bhil", q[..., : self.head_dim], up_k)
        scores = asked @ wide(c)[:, None].transpose(-1, -2)
        if self.rope_dim:
            scores = scores + q[..., self.head_dim :] @ wide(r)[:, None].transpose(-1, -2)
        # W^V is linear: it maps the mean of the latents instead of every latent
        mean = softmax(scores, wide(c)[:, None].expand(-1, self.heads, -1, -1))
        y = torch.einsum("bhil,hel->bhie", mean, up_v)
        return self.o(merge_heads(y.to(c.dtype)))[:, 0]


def scaled(c: Float[Tensor, "b t l"]) -> Float[Tensor, "b t l"]:
    """A latent by its root mean square."""
    return (wide(c) * (wide(c).square().mean(-1, keepdim=True) + EPS).rsqrt()).to(c.dtype)
