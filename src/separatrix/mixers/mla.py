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
of their own (DeepSeek's may have). rope_dim = 0: no rotated part. Rotation as in ops/rope.py; no
1/sqrt(d), as in full.py. `conv` runs on q, C x and R x, in this order.
Source: DeepSeek-AI 2024 (DeepSeek-V2), arXiv 2405.04434, section 2.1.
State after t tokens: latents (t, latent) and rotated keys (t, rope_dim).
Step: as decoding does it, <W^K c_j, q> as <c_j, W^K' q>, and W^V after the sum over latents.
Parallel form: keys and values written out.
"""

from __future__ import annotations

from separatrix.mixers.base.heads import merge_heads
from separatrix.mixers.base.latent import LatentMixer
from separatrix.mixers.base.mixer import State
from separatrix.mixers.base.tensors import Token, Tokens
from separatrix.mixers.ops.causal_softmax import causal_softmax
from separatrix.stacks.mechanisms import Latent


class MLAMixer(LatentMixer):
    """Full attention from latents."""

    def __init__(self, mechanism: Latent, *, width: int) -> None:
        super().__init__(mechanism, width=width)

    def _forward(self, x: Tokens) -> Tokens:
        q, c, r = self._latents(x)
        return self.o(merge_heads(causal_softmax(q, *self._written_out(c, r))))

    def _last(self, x: Tokens) -> Token:
        q, c, r = self._latents(x)
        return self._read(q[:, :, -1:], c, r)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        parts, new = self._extended(x, state, t)
        return self._read(*parts), new
