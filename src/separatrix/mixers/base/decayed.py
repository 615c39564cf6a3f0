"""Mixers whose state only decays and grows: S_i = S_{i-1} diag(a_i) + v_i k_i^T, y_i = S_i q_i.
Subclasses say what q, k, v and a are.
"""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import State, wide
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.kernels import decayed


class DecayedMixer(RecurrentMixer):
    """A matrix state with decay. State: S^T (heads, head_dim, value_dim). Parallel form: chunks
    (_decay.py), on CUDA fla's kernels.
    """

    @abstractmethod
    def _inputs(
        self, qkv: Projected, x: Float[Tensor, "b t w"], start: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q (b h t d), k (b h t d), v (b h t e) and log a (b h t d or 1) of the tokens x, the first
        of which stands at `start`; q may be there for the last token only.
        """

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        return self._out(
            decayed(*self._inputs(self._qkv(x), x, 0), chunk=self.chunk, dtype=x.dtype), x
        )

    def _last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        return self._out(
            decayed(*self._inputs(self._qkv_last(x), x, 0), chunk=self.chunk, dtype=x.dtype),
            x[:, -1:],
        )[:, 0]

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        qkv, conv = self._qkv_step(x, state)
        q, k, v, log_a = self._inputs(qkv, x[:, None], t)
        new = log_a.exp().transpose(-1, -2) * wide(state["S"]) + k.transpose(-1, -2) * v
        return self._out(q @ new, x[:, None])[:, 0], self._store(S=new) | conv
