"""DeepSeek sparse attention (DSA): multi-head latent attention to the k = `topk` tokens that a
lightning indexer scores best.

    a_i    = A x_i / rms(A x_i)               the latent of queries, where there is one; else x_i
    q^I_ih = R_i(Q^I_h a_i)                   per index head; R_i turns the first rope_dim numbers
    k^I_j  = R_j(LayerNorm(K^I x_j))          `index_dim` numbers for all index heads
    I_ij   = sum_h w_ih max(0, <q^I_ih, k^I_j>),   w_i = W x_i
    M_i    = the k tokens j <= i with the largest I_ij; of equal scores the earlier token; all if
             fewer
    y_i    = latent attention as in mla.py, over j in M_i alone, with q_i a map of a_i

The token itself is scored like the others and may be left out. The released factors 1/sqrt of the
index heads and of their dimension do not change the choice, nor does the rotation of all index
numbers that comes before its 8-bit scores. The choice has no gradient, so neither have Q^I, K^I, W
and the norm of index keys: DeepSeek trains them with a loss of their own that is not here. `conv`
runs on q, C x and R x, as in mla.py.
Source: DeepSeek-AI 2025 (DeepSeek-V3.2), arXiv 2512.02556, section 2.1; transformers' deepseek_v32.
State after t tokens: latents (t, latent), rotated keys (t, rope_dim) and index keys (t, index_dim).
Parallel form: keys and values written out, as in ops/indexed_softmax.py.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import merge_heads, split_heads
from separatrix.mixers.base.latent import EPS, LatentMixer, scaled
from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.tensors import OneQuery, OneToken, Token, Tokens
from separatrix.mixers.ops.block_choice import largest
from separatrix.mixers.ops.indexed_softmax import index_scores, indexed_softmax
from separatrix.mixers.ops.rope import rotate
from separatrix.stacks.mechanisms import DSA


class DSAMixer(LatentMixer):
    """Latent attention to the tokens an indexer chooses."""

    def __init__(self, mechanism: DSA, *, width: int) -> None:
        super().__init__(mechanism, width=width, queries=mechanism.query_latent)
        queries = mechanism.query_latent
        self.topk = mechanism.topk
        self.index_heads = mechanism.index_heads
        self.index_dim = mechanism.index_dim
        self.a = None if queries is None else linear(width, queries)
        self.index_q = linear(queries or width, self.index_heads * self.index_dim)
        self.index_k = linear(width, self.index_dim)
        self.index_w = linear(width, self.index_heads)
        self.index_norm = nn.LayerNorm(self.index_dim, eps=EPS)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.index_norm.reset_parameters()

    def shapes(self, t: int) -> Shapes:
        return super().shapes(t) | {"index_keys": (t, self.index_dim)}

    def _asking(self, x: Tokens) -> Float[Tensor, "b t n"]:
        return x if self.a is None else scaled(self.a(x))

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._latents(x)
        k, v = self._written_out(c, r)
        # the choice has no gradient
        seen = x.detach()
        index = (*self._index(seen, 0), self._index_keys(seen, 0))
        y = indexed_softmax(wide(q), wide(k), wide(v), index, self.topk)
        return self.o(merge_heads(y.to(x.dtype)))

    def _last(self, x: Tokens) -> Token:
        q, c, r = self._latents(x)
        return self._chosen(x[:, -1:], q[:, :, -1:], c, r, self._index_keys(x.detach(), 0))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        parts, new = self._extended(x, state, t)
        own = self._index_keys(x[:, None], t)
        new["index_keys"] = torch.cat([state["index_keys"], own], 1)
        return self._chosen(x[:, None], *parts, new["index_keys"]), new

    def _index(
        self, x: Tokens, start: int
    ) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t h"]]:
        """Queries and weights of the indexer for tokens that stand at `start`, ..."""
        q = split_heads(self.index_q(self._asking(x)), self.index_heads)
        if self.rotation is not None:
            q = rotate(q, self.rotation, start=start)
        return q.transpose(1, 2), self.index_w(x)

    def _index_keys(self, x: Tokens, start: int) -> Float[Tensor, "b t d"]:
        k = self.index_norm(self.index_k(x))
        if self.rotation is not None:
            k = rotate(k[:, None], self.rotation, start=start)[:, 0]
        return k

    def _chosen(
        self,
        x: OneToken,
        q: OneQuery,
        c: Float[Tensor, "b t l"],
        r: Float[Tensor, "b s p"],
        index_k: Float[Tensor, "b t i"],
    ) -> Token:
        """The output of the last of t tokens, reading only the tokens it chooses."""
        index_q, index_w = self._index(x, c.shape[1] - 1)
        chosen = largest(index_scores(index_q, index_w, index_k)[:, 0], self.topk)[..., None]
        c = c.gather(1, chosen.expand(-1, -1, c.shape[2]))
        if self.rope_dim:
            r = r.gather(1, chosen.expand(-1, -1, r.shape[2]))
        return self._read(q, c, r)
