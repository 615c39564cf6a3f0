"""(B, k)-sparse attention: B = `block` tokens per block, k = `topk` blocks read in full per head.

Tokens are counted from 0. Block m holds the tokens mB, ..., mB+B-1. For token i the blocks m < floor(i/B) are complete; its own block
is open, up to the token itself, even where the token is the B-th of it. A complete block has one compressed key and value per
key-value head, learned linear poolings over the place in the block:

    k^_m = sum_r alpha_r K x_{mB+r},   v^_m = sum_r beta_r V x_{mB+r}

    y_i^compressed = softmax over the complete blocks of <Q x_i, k^_m>, applied to v^_m;   0 where there is none
    M_i            = the k complete blocks with the largest <Q x_i, k^_m>, per head; of equal scores the earlier block; all if fewer
    y_i^selected   = one softmax of <Q x_i, K x_j> over the tokens j of the blocks in M_i and of the open block, applied to V x_j
    y_i            = lambda y_i^compressed + (1 - lambda) y_i^selected,   lambda = sigmoid of a learned number per head

The choice of blocks has no gradient; the poolings learn through y^compressed.
Source: [Ye26] section 2; Yuan et al. 2025 (NSA), arXiv 2502.11089.
State after t tokens: keys and values (kv_heads, t, .) and compressed ones (kv_heads, floor(t/B), .).
Parallel form: selection as a mask over a (T, T) softmax.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn

from separatrix.architecture.mechanisms import Sparse
from separatrix.mixers._base import Shapes, State
from separatrix.mixers._softmax import SoftmaxMixer, masked_softmax


class SparseMixer(SoftmaxMixer):
    """Block-sparse attention with compression and selection."""

    def __init__(self, mechanism: Sparse, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.block, self.topk = mechanism.block, mechanism.topk
        self.pool_k, self.pool_v = (nn.Parameter(torch.full((self.block,), 1 / self.block)) for _ in range(2))
        self.mix = nn.Parameter(torch.zeros(self.heads))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.pool_k.fill_(1 / self.block)
            self.pool_v.fill_(1 / self.block)
            self.mix.zero_()

    def shapes(self, t: int) -> Shapes:
        compressed = {f"compressed_{name}": shape for name, shape in self._cached(t // self.block).items()}
        return self._cached(t) | compressed | self._conv_shapes(t)

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q, k, v = self._qkv(self._project(x))
        scores = q @ self._shared(self._pooled(k, self.pool_k)).transpose(-1, -2)  # b h t m
        place = torch.arange(x.shape[1], device=x.device)
        complete = torch.arange(scores.shape[-1], device=x.device) < (place // self.block)[:, None]
        scores = scores.masked_fill(~complete, float("-inf"))
        # the first B tokens have no complete block: all their scores are -inf, which no softmax takes
        compressed = scores[:, :, self.block :].softmax(-1) @ self._shared(self._pooled(v, self.pool_v))
        compressed = F.pad(compressed, (0, 0, x.shape[1] - compressed.shape[2], 0))
        seen = self._tokens(best(scores, self.topk) & complete) | own_block(x.shape[1], self.block, device=x.device)
        return self._mixed(compressed, masked_softmax(q, self._shared(k), self._shared(v), seen))

    def _last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        q, k, v = self._qkv(self._project_last(x))
        before = (x.shape[1] - 1) // self.block * self.block
        compressed = (self._pooled(k[:, :, :before], self.pool_k), self._pooled(v[:, :, :before], self.pool_v))
        return self._sparse_read(q, k, v, *compressed)

    def _step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys, values = torch.cat([state["keys"], k], 2), torch.cat([state["values"], v], 2)
        compressed_keys, compressed_values = state["compressed_keys"], state["compressed_values"]
        y = self._sparse_read(q, keys, values, compressed_keys, compressed_values)
        if (t + 1) % self.block == 0:
            compressed_keys = torch.cat([compressed_keys, self._pooled(keys[:, :, -self.block :], self.pool_k)], 2)
            compressed_values = torch.cat([compressed_values, self._pooled(values[:, :, -self.block :], self.pool_v)], 2)
        return y, {"keys": keys, "values": values, "compressed_keys": compressed_keys, "compressed_values": compressed_values} | conv

    def _pooled(self, x: Float[Tensor, "b g t d"], weights: Float[Tensor, " block"]) -> Float[Tensor, "b g m d"]:
        """One vector per complete block."""
        full = x.shape[2] // self.block * self.block
        return torch.einsum("bgmrd,r->bgmd", rearrange(x[:, :, :full], "b g (m r) d -> b g m r d", r=self.block), weights)

    def _tokens(self, chosen: Bool[Tensor, "b h t m"]) -> Bool[Tensor, "b h t t"]:
        """The tokens of the chosen blocks."""
        tokens = repeat(chosen, "b h t m -> b h t (m r)", r=self.block)
        return F.pad(tokens, (0, chosen.shape[2] - tokens.shape[3]))

    def _sparse_read(
        self,
        q: Float[Tensor, "b h 1 d"],
        k: Float[Tensor, "b g t d"],
        v: Float[Tensor, "b g t e"],
        compressed_k: Float[Tensor, "b g m d"],
        compressed_v: Float[Tensor, "b g m e"],
    ) -> Float[Tensor, "b w"]:
        """The output of the last of t tokens, reading only the blocks it selects; m blocks are complete for it."""
        blocks = compressed_k.shape[2]
        scores = q @ self._shared(compressed_k).transpose(-1, -2)  # b h 1 m
        chosen = torch.sort(scores[:, :, 0], dim=-1, descending=True, stable=True).indices[..., : self.topk]
        compressed = scores.softmax(-1) @ self._shared(compressed_v)
        k, v = (self._selected(self._shared(y), chosen, blocks) for y in (k, v))
        return self._mixed(compressed, (q @ k.transpose(-1, -2)).softmax(-1) @ v)[:, 0]

    def _selected(self, x: Float[Tensor, "b h t d"], chosen: Tensor, blocks: int) -> Float[Tensor, "b h s d"]:
        """The rows of the chosen blocks (b h k), then those of the open block."""
        complete, opened = x[:, :, : blocks * self.block], x[:, :, blocks * self.block :]
        complete = rearrange(complete, "b h (m r) d -> b h m (r d)", m=blocks, r=self.block)
        picked = complete.gather(2, chosen[..., None].expand(*chosen.shape, complete.shape[-1]))
        return torch.cat([rearrange(picked, "b h k (r d) -> b h (k r) d", r=self.block), opened], 2)

    def _mixed(self, compressed: Float[Tensor, "b h t e"], selected: Float[Tensor, "b h t e"]) -> Float[Tensor, "b t w"]:
        share = self.mix.sigmoid()[:, None, None]
        return self._out(share * compressed + (1 - share) * selected)


def best(scores: Float[Tensor, "b h t m"], k: int) -> Bool[Tensor, "b h t m"]:
    """Marks the k largest of m scores, the earlier of equal ones first."""
    order = torch.sort(scores, dim=-1, descending=True, stable=True).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order[..., :k], True)


def own_block(tokens: int, block: int, *, device: torch.device) -> Bool[Tensor, "t t"]:
    """Which earlier tokens stand in the same block."""
    place = torch.arange(tokens, device=device)
    return (place[:, None] // block == place // block).tril()
