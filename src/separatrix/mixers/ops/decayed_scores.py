"""Scores inside a chunk where decay differs between key dimensions: <q_i, exp(G_i - G_j) k_j> for j
<= i, as matrix products.

No exponent may be above 0: exp(-G_j) alone would overflow. For a query i in the later half of a
block and a key j in the earlier half, with G_m the sum up to the half, exp(G_i - G_j) = exp(G_i -
G_m) exp(G_m - G_j). Halves are halved again, down to single tokens.

Backward pass: the score s_ij depends on G through exp(G_i - G_j) alone, so the gradient by G_i is
q_i dq_i - k_i dk_i, dimension by dimension. None passes through an exponential; exponentials are
not kept but formed again.

Shapes: c tokens per chunk, m queries per token, d key dimension.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

PRODUCT_FROM = 2
"""Blocks of at least twice this many tokens use matrix products; in smaller ones these cost more
than they save.
"""


def scores_by_halves(
    q: Float[Tensor, "... c m d"], k: Float[Tensor, "... c d"], total: Float[Tensor, "... c d"]
) -> Float[Tensor, "... c m c"]:
    """<q_i, exp(G_i - G_j) k_j> for j <= i, else 0."""
    tokens = k.shape[-2]
    # halves of halves need a power of two; filled-up tokens neither decay nor are read
    missing = (1 << (tokens - 1).bit_length()) - tokens
    if missing:
        q = F.pad(q, (0, 0, 0, 0, 0, missing))
        k = F.pad(k, (0, 0, 0, missing))
        total = torch.cat(
            [total, total[..., -1:, :].expand(*total.shape[:-2], missing, total.shape[-1])], -2
        )
    return _Scores.apply(q, k, total)[..., :tokens, :, :tokens]


class _Scores(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, k: Tensor, total: Tensor) -> Tensor:
        return _scores(q, k, total)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, total = ctx.saved_tensors
        by_q, by_k = _gradients(q, k, total, grads[0])
        own = torch.diagonal(grads[0], dim1=-3, dim2=-1).mT[..., None]  # c m 1: does not decay
        # by G: of the scores without the diagonal, where G_i - G_i is 0
        return by_q + own * k[..., None, :], by_k + (own * q).sum(-2), (q * by_q).sum(-2) - k * by_k


def _scores(q: Tensor, k: Tensor, total: Tensor) -> Tensor:
    size = k.shape[-2]
    if size == 1:
        return (q * k[..., None, :]).sum(-1, keepdim=True)
    half = size // 2
    (late, _), (early, _) = _across(q, k, total)
    if half < PRODUCT_FROM:
        across = (late[..., None, :] * early[..., None, None, :, :]).sum(-1)
    else:
        across = (late.flatten(-3, -2) @ early.mT).unflatten(-2, late.shape[-3:-1])
    # both (... c m c) of half as many tokens
    upper, lower = _scores(*_halves(q, k, total)).unbind(-4)
    return torch.cat([F.pad(upper, (0, half)), torch.cat([across, lower], -1)], -3)


def _gradients(q: Tensor, k: Tensor, total: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """By q and by k, of the scores for j < i."""
    half = k.shape[-2] // 2
    if half == 0:
        return torch.zeros_like(q), torch.zeros_like(k)
    (late, decay_late), (early, decay_early) = _across(q, k, total)
    upper = grad[..., :half, :, :half]
    lower = grad[..., half:, :, half:]
    across = grad[..., half:, :, :half]
    if half < PRODUCT_FROM:
        by_late = (across[..., None] * early[..., None, None, :, :]).sum(-2)
        by_early = (across[..., None] * late[..., None, :]).sum((-4, -3))
    else:
        across = across.flatten(-3, -2)
        by_late = (across @ early).unflatten(-2, late.shape[-3:-1])
        by_early = across.mT @ late.flatten(-3, -2)
    # each half by itself, and what passes across the middle on top
    by_q, by_k = _gradients(*_halves(q, k, total), torch.stack([upper, lower], -4))
    q_one, q_two = by_q.unbind(-4)
    k_one, k_two = by_k.unbind(-3)
    by_q = torch.cat([q_one, torch.addcmul(q_two, by_late, decay_late)], -3)
    by_k = torch.cat([torch.addcmul(k_one, by_early, decay_early), k_two], -2)
    return by_q, by_k


def _halves(q: Tensor, k: Tensor, total: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both halves of every block side by side, as one batch."""
    half = k.shape[-2] // 2
    return q.unflatten(-3, (2, half)), k.unflatten(-2, (2, half)), total.unflatten(-2, (2, half))


def _across(
    q: Tensor, k: Tensor, total: Tensor
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The later queries and the earlier keys, decayed from and to the middle, and these decays."""
    half = k.shape[-2] // 2
    # both differences are at most 0
    middle = total[..., half - 1 : half, :]
    late = (total[..., half:, :] - middle).exp()[..., None, :]
    early = (middle - total[..., :half, :]).exp()
    return (q[..., half:, :, :] * late, late), (k[..., :half, :] * early, early)
