"""The softmax of attention: capped scores, masks, and whether PyTorch's fused kernel computes it.

Shapes: b batch, h heads, i queries, j keys, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.mixers.base.mixer import wide

FUSED_FROM = 129
"""Keys from which on the fused kernel is used where products are MKL's or CUDA's. Forward and
backward on one thread, batch 64, a head of 64, of the explicit form's time: 1.1 times at 65 tokens,
1.0 at 129 and 257, 0.7 with a head of 16 at 257.
"""
FUSED_FROM_ONEDNN = 769
"""The same where float32 products are oneDNN's, which the fused kernel does not use: 4.6 times at
65 tokens, 3.0 at 129, 1.6 at 257, 1.5 at 513, 1.15 at 769, 1.0 at 1,025; heads of 16 to 128 alike.
"""
KEPT = 1 << 25
"""Most weights that the explicit form keeps for the backward pass: 128 MiB of float32."""


def capped(scores: Float[Tensor, "*b"], cap: int) -> Float[Tensor, "*b"]:
    """cap tanh(scores / cap); the scores themselves where cap is 0."""
    return cap * (scores / cap).tanh() if cap else scores


def softmax(
    scores: Float[Tensor, "*b h i j"],
    v: Float[Tensor, "*b h j e"],
    sink: Float[Tensor, "*#b h"] | None = None,
) -> Float[Tensor, "*b h i e"]:
    """softmax(scores) v in float32 at least, the softmax with one score more, `sink`, of a value of
    0; rounded to the format of v once, at the end.
    """
    scores = wide(scores)
    if sink is None:
        weights = scores.softmax(-1)
    else:
        scores = torch.cat([wide(sink)[..., None, None].expand(*scores.shape[:-1], 1), scores], -1)
        weights = scores.softmax(-1)[..., 1:]
    return (weights @ wide(v)).to(v.dtype)


def masked_softmax(
    q: Float[Tensor, "*b h i d"],
    k: Float[Tensor, "*b h j d"],
    v: Float[Tensor, "*b h j e"],
    seen: Bool[Tensor, "... i j"],
    sink: Float[Tensor, " h"] | None = None,
    cap: int = 0,
) -> Float[Tensor, "*b h i e"]:
    """Softmax attention with scores <q, k>, capped where `cap` is not 0, where query i sees key j
    if `seen[..., i, j]`; every query sees at least one key.
    """
    if q.dim() == 4 and sink is None and not cap and fused(q, k):
        return fused_softmax(q, k, v, attn_mask=seen)
    scores = capped(wide(q) @ wide(k).transpose(-1, -2), cap)
    return softmax(scores.masked_fill(~seen, float("-inf")), v, sink)


def fused_softmax(
    q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False, attn_mask: Tensor | None = None
) -> Tensor:
    """The fused kernel takes one dimension for q, k and v, or falls back to quadratic memory:
    the shorter ones are filled up with zeros.
    """
    d = q.shape[-1]
    e = v.shape[-1]
    q, k, v = (
        F.pad(x, (0, max(d, e) - x.shape[-1])) if x.shape[-1] < max(d, e) else x for x in (q, k, v)
    )
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=1.0
    )[..., :e]


def fused(q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"]) -> bool:
    """Whether the fused kernel computes the softmax: where it is quicker, and where the weights of
    the explicit form would take too much memory.
    """
    # it has no batching rule, so under torch.func.vmap it would run model by model, with a warning
    if torch._C._are_functorch_transforms_active():
        return False
    tokens = k.shape[2]
    first = FUSED_FROM if q.is_cuda or not _onednn() else FUSED_FROM_ONEDNN
    return tokens >= first or q.shape[0] * q.shape[1] * q.shape[2] * tokens > KEPT


def _onednn() -> bool:
    """Whether float32 products on a CPU go through oneDNN, as
    `torch.set_float32_matmul_precision("medium")` has it.
    """
    # PyTorch 2.9 on; reading the older name fails once the newer one was set
    products = getattr(torch.backends.mkldnn, "matmul", None)
    precision = getattr(products, "fp32_precision", None)
    if precision is None:
        return torch.get_float32_matmul_precision() == "medium"
    return precision in ("bf16", "tf32")
