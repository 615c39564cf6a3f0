"""Multi-head latent attention (MLA): full attention whose keys and values are linear in one cached
latent per token.

    c_j = C x_j / rms(C x_j)         the latent, `latent` numbers for all heads;
                                     rms(c)^2 = mean of squares + 1e-6
    r_j = R_j(R x_j)                 the rotated key, `rope_dim` numbers for all heads;
                                     R_j turns pairs by the place j
    k_j = (W^K c_j, r_j)             per head: head_dim + rope_dim numbers
    v_j = W^V c_j                    per head: value_dim numbers
    q_i = (Q^C x_i, R_i(Q^R x_i))    per head, the two side by side in q
    y_i = sum_{j<=i} a_ij v_j,   a_ij = exp(<q_i, k_j>) / sum_{j'<=i} exp(<q_i, k_j'>)

The latent's norm has no weights of its own: they are a part of W^K and W^V. Queries have no latent
of their own (DeepSeek's may have). rope_dim = 0: no rotated part. Rotation as in ops/maps.py; no
1/sqrt(d), as in full.py. `conv` runs on q, C x and R x, in this order.
Source: DeepSeek-AI 2024 (DeepSeek-V2), arXiv 2405.04434, section 2.1.
State after t tokens: latents (t, latent) and rotated keys (t, rope_dim).
Step: as decoding does it, <W^K c_j, q> as <c_j, W^K' q>, and W^V after the sum over latents.
Parallel form: keys and values written out.
"""

from __future__ import annotations

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected, merge_heads, split_heads
from separatrix.mixers.base.mixer import Shapes, State, linear, normed, wide
from separatrix.mixers.base.softmax import CachedMixer
from separatrix.mixers.base.tensors import (
    Keys,
    OneToken,
    Places,
    Queries,
    SomeTokens,
    Tokens,
    Values,
)
from separatrix.mixers.ops.maps import Convolution, rotate
from separatrix.mixers.ops.softmax import causal_softmax, softmax
from separatrix.stacks.mechanisms import LatentCache


class LatentMixer(CachedMixer):
    """Maps q (queries), c (latent), r (rotated key, absent if rope_dim = 0), k and v (up from
    the latent), o. Queries are maps of `queries` numbers: the model width, or a latent of theirs.
    """

    def __init__(self, mechanism: LatentCache, *, width: int, queries: int | None = None) -> None:
        super().__init__(mechanism, width=width)
        self.heads, self.head_dim, self.dv = mechanism.heads, mechanism.head_dim, mechanism.dv
        self.latent, self.rope_dim = mechanism.latent, mechanism.rope_dim
        self.rotation = mechanism.rotation
        self.scale = (self.head_dim + self.rope_dim) ** -0.5
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

    def _cached(self, tokens: int) -> Shapes:
        shapes: Shapes = {"latents": (tokens, self.latent)}
        return shapes | ({"rotated": (tokens, self.rope_dim)} if self.rope_dim else {})

    def _asking(self, x: SomeTokens) -> Float[Tensor, "*b n"]:
        """What queries are maps of."""
        return x

    def _maps(self, asking: Tensor, x: Tensor) -> Projected:
        r = x[..., :0] if self.r is None else self.r(x)
        return self.q(self._asking(asking)), self.c(x), r

    def _qkv(self, projected: Projected, start: int = 0, places: Places | None = None) -> Projected:
        """q (b h r d), latents c (b t l) and rotated keys r (b t p)."""
        q, c, r = projected
        q = split_heads(q, self.heads)
        if self.rotation is not None:
            first = start + c.shape[1] - q.shape[2]
            turned = rotate(q[..., self.head_dim :], self.rotation, start=first, places=places)
            q = torch.cat([q[..., : self.head_dim], turned], -1)
            r = rotate(r[:, None], self.rotation, start=start)[:, 0]
        return q, normed(c), r

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        return {"latents": k} | ({"rotated": v} if self.rope_dim else {})

    def _written_out(
        self, c: Float[Tensor, "b t l"], r: Float[Tensor, "b t p"]
    ) -> tuple[Keys, Values]:
        shared = repeat(r, "b t d -> b h t d", h=self.heads)
        k = torch.cat([split_heads(self.k(c), self.heads), shared], -1)
        return k, split_heads(self.v(c), self.heads)

    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        c = kept["latents"]
        up_k, up_v = (
            rearrange(wide(m.weight), "(h d) l -> h d l", h=self.heads) for m in (self.k, self.v)
        )
        q = wide(q)
        # <W^K c_j, q> = <c_j, W^K' q>: no keys are written out
        asked = torch.einsum("bhd,hdl->bhl", q[:, :, 0, : self.head_dim], up_k)
        # all heads read the same latents: one product for them
        scores = asked @ wide(c).mT
        if self.rope_dim:
            scores = scores + q[:, :, 0, self.head_dim :] @ wide(kept["rotated"]).mT
        # W^V is linear: it maps the mean of the latents instead of every latent
        y = torch.einsum("bhl,hel->bhe", softmax(scores, wide(c)), up_v)
        return self.o(y.flatten(1).to(c.dtype))[:, None]


class MLAMixer(LatentMixer):
    """Full attention from latents."""

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._qkv(self._project(x))
        return self.o(merge_heads(causal_softmax(q, *self._written_out(c, r))))
