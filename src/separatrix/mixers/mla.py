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

from separatrix.mixers.base.heads import merge_heads, split_heads
from separatrix.mixers.base.mixer import (
    Mixer,
    Shapes,
    State,
    appended,
    fan_in_normal,
    linear,
    normed,
    wide,
)
from separatrix.mixers.base.tensors import Channels, Keys, OneToken, Queries, Token, Tokens, Values
from separatrix.mixers.ops.maps import Convolution, rotate
from separatrix.mixers.ops.softmax import causal_softmax, softmax
from separatrix.stacks.mechanisms import LatentCache


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
        return shapes | self._conv_shapes(t) | self._more(t)

    def _more(self, t: int) -> Shapes:
        """What is kept of t tokens beside them."""
        return {}

    def _beside(self, x: Tokens, start: int) -> State:
        """The same, of tokens that stand at `start`, ..."""
        return {}

    def _picked(self, x: OneToken, kept: State, place: int) -> State:
        """Latents and rotated keys that the token at a place reads."""
        return kept

    def _asking(self, x: Tokens) -> Float[Tensor, "b t n"]:
        """What queries are maps of."""
        return x

    def _latents(self, x: Tokens) -> tuple[Tensor, Tensor, Tensor]:
        """q (b h t d), latents c (b t l) and rotated keys r (b t p) of a whole sequence."""
        return self._split(self._convolved(self._projected(x)), 0)

    def _last(self, x: Tokens) -> Token:
        q, c, r = self._latents(x)
        kept = {"latents": c, "rotated": r} | self._beside(x, 0)
        return self._read(q[:, :, -1:], self._picked(x[:, -1:], kept, x.shape[1] - 1))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        parts, conv = self._convolved_step(self._projected(x[:, None])[:, 0], state)
        q, c, r = self._split(parts[:, None], t)
        new = {"latents": c} | ({"rotated": r} if self.rope_dim else {})
        new |= self._beside(x[:, None], t)
        kept = {name: appended(state[name], y) for name, y in new.items()}
        return self._read(q, self._picked(x[:, None], kept, t)), kept | conv

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
        c = normed(c)
        q = split_heads(q, self.heads)
        if self.rotation is not None:
            turned = rotate(q[..., self.head_dim :], self.rotation, start=start)
            q = torch.cat([q[..., : self.head_dim], turned], -1)
            r = rotate(r[:, None], self.rotation, start=start)[:, 0]
        return q, c, r

    def _read(self, q: Queries, kept: State) -> Token:
        """The output of one token from the latents and rotated keys that it reads."""
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
        return self.o(y.flatten(1).to(c.dtype))


class MLAMixer(LatentMixer):
    """Full attention from latents."""

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._latents(x)
        return self.o(merge_heads(causal_softmax(q, *self._written_out(c, r))))
