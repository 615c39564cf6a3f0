"""DeepSeek sparse attention: a small indexer scores every earlier token, and all heads read the k =
`topk` best; over keys and values per key-value head (indexed), or over latents as released (dsa).

    I_ij = sum_h w_ih max(0, <q^I_ih, k^I_j>),   h over the index heads,   w_i = W x_i
    M_i  = the k tokens j <= i with the largest I_ij; of equal scores the earlier token; all if
           fewer
    y_i  = softmax attention, or latent attention as in mla.py, over j in M_i alone

Indexed: q^I_i = Q^I x_i, k^I_j = K^I x_j, with neither norm nor rotation (`conv` and `rope` are for
q, k and v only). DSA:

    a_i    = A x_i / rms(A x_i)               the latent of queries, where there is one; else x_i
    q^I_ih = R_i(Q^I_h a_i)                   per index head; R_i turns the first rope_dim numbers
    k^I_j  = R_j(LayerNorm(K^I x_j))          `index_dim` numbers for all index heads

and q_i is a map of a_i; `conv` runs on q, C x and R x, as in mla.py.

The token itself is scored like the others and may be left out. The released factors 1/sqrt of the
index heads and of their dimension do not change the choice, nor does the rotation of all index
numbers that comes before its 8-bit scores. The choice has no gradient, so neither have Q^I, K^I, W
and the norm of index keys: DeepSeek trains them to predict full attention, with a loss of its own
that is not here.
Source: DeepSeek-AI 2025 (DeepSeek-V3.2), arXiv 2512.02556, section 2.1; transformers' deepseek_v32.
State after t tokens: keys and values (kv_heads, t, .), or latents (t, latent) and rotated keys (t,
rope_dim); and index keys (t, index_dim). Parallel form: ops/indexed_softmax.py, of keys and values
written out. The index scores take time T^2.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.heads import merge_heads
from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import OneQuery, OneToken, Tokens
from separatrix.mixers.mla import EPS, LatentMixer, scaled
from separatrix.mixers.ops.block_choice import largest
from separatrix.mixers.ops.indexed_softmax import index_scores, indexed_softmax
from separatrix.mixers.ops.rope import rotate
from separatrix.stacks.mechanisms import DSA, Indexed


class Indexer(nn.Module):
    """The indexer. It stands beside a mixer among the bases of a class."""

    index_rotation: Rotation | None = None
    chooses: ClassVar[bool] = True

    def _add_index(
        self, mechanism: Indexed | DSA, inputs: int, width: int, *, norm: bool = False
    ) -> None:
        self.topk = mechanism.topk
        self.index_heads = mechanism.index_heads
        self.index_dim = mechanism.index_dim
        self.index_q = linear(inputs, self.index_heads * self.index_dim)
        self.index_k = linear(width, self.index_dim)
        self.index_w = linear(width, self.index_heads)
        self.index_norm = nn.LayerNorm(self.index_dim, eps=EPS) if norm else None

    def _asking(self, x: Tokens) -> Float[Tensor, "b t n"]:
        return x

    def _index(
        self, x: Tokens, start: int
    ) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t h"]]:
        """Queries and weights of the indexer for tokens that stand at `start`, ..."""
        # the choice has no gradient
        x = x.detach()
        q = self.index_q(self._asking(x)).unflatten(-1, (self.index_heads, -1))
        if self.index_rotation is not None:
            q = rotate(q.transpose(1, 2), self.index_rotation, start=start).transpose(1, 2)
        return q, self.index_w(x)

    def _index_keys(self, x: Tokens, start: int) -> Float[Tensor, "b t d"]:
        k = self.index_k(x.detach())
        if self.index_norm is not None:
            k = self.index_norm(k)
        if self.index_rotation is not None:
            k = rotate(k[:, None], self.index_rotation, start=start)[:, 0]
        return k

    def _chosen(self, x: OneToken, kept: State, place: int) -> Int[Tensor, "b k"]:
        """The tokens that the one at a place reads."""
        scores = index_scores(*self._index(x, place), kept["index_keys"])
        return largest(scores[:, 0], self.topk)


class IndexedMixer(Indexer, SoftmaxMixer):
    """Attention to the tokens an indexer chooses. Raises SizeError for blocks."""

    def __init__(self, mechanism: Indexed, *, width: int) -> None:
        if mechanism.block > 1:
            raise SizeError(
                f"'indexed' with block={mechanism.block} has declared sizes but no mixer; set"
                " block=1"
            )
        super().__init__(mechanism, width=width)
        self._add_index(mechanism, width, width)

    def _more(self, t: int) -> Shapes:
        return {"index_keys": (t, self.index_dim)}

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        index = (*self._index(x, 0), self._index_keys(x, 0))
        return self._out(indexed_softmax(q, k, v, index, self.topk), x)

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        return {"keys": k, "values": v, "index_keys": self._index_keys(x, start)}

    def _read(self, x: OneToken, q: OneQuery, kept: State, place: int) -> OneToken:
        chosen = self._chosen(x, kept, place)[:, None, :, None]  # b 1 k 1
        k, v = (
            y.gather(2, chosen.expand(-1, y.shape[1], -1, y.shape[3]))
            for y in (kept["keys"], kept["values"])
        )
        return self._out(self._attend(q, k, v), x)


class DSAMixer(Indexer, LatentMixer):
    """Latent attention to the tokens an indexer chooses."""

    def __init__(self, mechanism: DSA, *, width: int) -> None:
        queries = mechanism.query_latent
        super().__init__(mechanism, width=width, queries=queries)
        self.a = None if queries is None else linear(width, queries)
        self._add_index(mechanism, queries or width, width, norm=True)
        self.index_rotation = self.rotation

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        assert self.index_norm is not None
        self.index_norm.reset_parameters()

    def _more(self, t: int) -> Shapes:
        return {"index_keys": (t, self.index_dim)}

    def _asking(self, x: Tokens) -> Float[Tensor, "b t n"]:
        return x if self.a is None else scaled(self.a(x))

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._latents(x)
        k, v = self._written_out(c, r)
        index = (*self._index(x, 0), self._index_keys(x, 0))
        y = indexed_softmax(wide(q), wide(k), wide(v), index, self.topk)
        return self.o(merge_heads(y.to(x.dtype)))

    def _beside(self, x: Tokens, start: int) -> State:
        return {"index_keys": self._index_keys(x, start)}

    def _picked(self, x: OneToken, kept: State, place: int) -> State:
        chosen = self._chosen(x, kept, place)[..., None]
        return {
            name: kept[name].gather(1, chosen.expand(-1, -1, kept[name].shape[2]))
            for name in ("latents", "rotated")
            if name in kept
        }
