"""Recurrences with decay, in chunks: R_i = diag(a_i) R_{i-1} + k_i v_i^T, y_i = R_i^T q_i, 0 < a_i
<= 1 per key dimension or for all of them.

With G_i = log a_1 + ... + log a_i inside a chunk and R the state before it,

    y_i = (q_i exp(G_i))^T R + sum_{j<=i} <q_i, exp(G_i - G_j) k_j> v_j,
    R' = exp(G_c) R + sum_j (exp(G_c - G_j) k_j) v_j^T

No exponent is above 0: exp(-G_j) alone would overflow. Where decay differs between key dimensions,
scores are matrix products by halves: for a query i in the later half of a block and a key j in the
earlier half, with G_m the sum up to the half, exp(G_i - G_j) = exp(G_i - G_m) exp(G_m - G_j).
Halves are halved again, down to single tokens. Backward pass: the score s_ij depends on G through
exp(G_i - G_j) alone, so the gradient by G_i is q_i dq_i - k_i dk_i, dimension by dimension. None
passes through an exponential; exponentials are not kept but formed again.

Shapes: n chunks, c tokens per chunk, m queries per token; G is (..., 1) or (..., d).
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.mixers.base.mixer import even, join_chunks, plus_product, split_chunks
from separatrix.mixers.base.tensors import Decays, Keys, Matrices, Matrix, Places, Queries, Values
from separatrix.mixers.ops.recompute import recomputed

NUMBERS = 1 << 20
"""Largest number of elements of queries, keys or values in a segment."""


Segment = Callable[..., tuple[Tensor, Tensor]]
"""Inputs (b h t .) of a segment, the `chunk` and, by the name `state`, the state before it, None
for the empty one -> its outputs and the state after it.
"""


def in_segments(run: Segment, *inputs: Tensor, chunk: int) -> Tensor:
    """The outputs for all tokens, in segments that hand on the state: what is formed on the way
    stays small. Segments are multiples of `chunk` tokens; on CUDA, where large steps are cheap,
    there is one.

    Allocators keep small pieces of memory for the next use. Large ones (in glibc those above 32
    MiB) they give back to the system, which zeroes them page by page at every use. Without
    segments, times more than double from 8,192 to 16,384 tokens.
    """
    tokens = inputs[0].shape[2]
    per_token = max(x[:1, :1, :1].numel() for x in inputs) * inputs[0].shape[0] * inputs[0].shape[1]
    most = max(1, NUMBERS // per_token // chunk) * chunk
    # a little more than one segment is one: a pass over a few tokens costs more
    size = tokens if inputs[0].is_cuda or 2 * tokens <= 3 * most else most
    state = None
    outputs = []
    for part in zip(*(x.split(size, 2) for x in inputs), strict=True):
        y, state = run(*part, state=state, chunk=chunk)
        outputs.append(y)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2)


CHUNK = 24
"""Tokens of a chunk, about and at most, where one decay serves all key dimensions. Training steps
of a Mamba-2 of 2 layers, batch 64, one head of 64 numbers: of 256 tokens 171 ms in chunks of 16,
157 of 24, 166 of 32 and 48, 171 of 64; of 64 tokens 48, 45, 46 and 41 in chunks of 16, 22, 32, 64;
with the delta rule and 256 tokens 292 ms in chunks of 17, 284 of 24, 295 of 32, 312 of 48.
"""


def chunk_of(log_a: Decays, chunk: int) -> int:
    """How many tokens a chunk has, where one of `chunk` is asked for."""
    return chunk if log_a.shape[-1] > 1 else even(log_a.shape[2], min(chunk, CHUNK))


def decayed(q: Keys, k: Keys, v: Values, log_a: Decays, *, chunk: int) -> Values:
    """y_i of the recurrence for every i."""
    chunk = chunk_of(log_a, chunk)
    if q.shape[2] <= chunk:
        # one chunk: no state comes in, and none is asked for
        log_a = bounded(log_a)
        return scores(q, k, log_a, log_a.cumsum(2)) @ v
    return in_segments(_segment, q, k, v, log_a, chunk=chunk)


def _segment(*inputs: Tensor, state: Tensor | None, chunk: int) -> tuple[Tensor, Tensor]:
    tokens = inputs[0].shape[2]
    # filled-up tokens have k = 0 and log a = 0: they leave the state as it is
    q, k, v, log_a = (split_chunks(x, chunk) for x in inputs)
    log_a = bounded(log_a)
    total = log_a.cumsum(3)
    # R' = exp(G_c) R + added; the decay up to the end of the chunk, so at most 1
    added = (after(log_a).exp() * k).mT @ v  # b h n d e
    states, last = carry(total[:, :, :, -1:].mT.exp(), added, state)
    y = plus_product(scores(q, k, log_a, total) @ v, total.exp() * q, states)
    return join_chunks(y, tokens), last


def carry(
    kept: Float[Tensor, "b h n s r"], added: Matrices, state: Matrix | None = None
) -> tuple[Matrices, Matrix]:
    """The state before every chunk, from what each keeps (numbers, or a matrix that multiplies it)
    and adds, and after the last.
    """
    state = torch.zeros_like(added[:, :, 0]) if state is None else state
    states = []
    for keep, add in zip(kept.unbind(2), added.unbind(2), strict=True):
        states.append(state)
        state = torch.addcmul(add, keep, state) if keep.shape[-1] == 1 else keep @ state + add
    return torch.stack(states, 2), state


def bounded(log_a: Float[Tensor, "... c s"]) -> Float[Tensor, "... c s"]:
    """Decays whose exponential is 0 anyway raised to the border of that: sums of stronger ones
    would cost the differences of G their digits, and at last overflow.
    """
    format_ = torch.finfo(log_a.dtype)
    # tiny * eps is the smallest number above 0; one e-fold below it rounds to 0
    return log_a.clamp_min(log(format_.tiny * format_.eps) - 1)


def after(log_a: Float[Tensor, "... c s"]) -> Float[Tensor, "... c s"]:
    """log a_{j+1} + ... + log a_c for every j."""
    # summed up from the end: G_c - G_j would lose the digits that the two have in common
    return F.pad(log_a[..., 1:, :], (0, 0, 0, 1)).flip(-2).cumsum(-2).flip(-2)


def after_at(log_a: Float[Tensor, "b h t 1"], places: Places) -> Float[Tensor, "b h k t"]:
    """log a_{j+1} + ... + log a_i for every j and the tokens i at the places; of later j 0."""
    token = torch.arange(log_a.shape[2], device=log_a.device)
    later = token[:, None] > places[:, None, None]
    # 0 beyond the place, summed up from the end: `after` from there on
    return after(log_a.masked_fill(later, 0)).mT


def scores(
    q: Float[Tensor, "... c d"],
    k: Float[Tensor, "... c d"],
    log_a: Float[Tensor, "... c s"],
    total: Float[Tensor, "... c s"],
) -> Float[Tensor, "... c c"]:
    """<q_i, exp(G_i - G_j) k_j> for j <= i, else 0."""
    if log_a.shape[-1] == 1:
        return products(log_a) * (q @ k.mT)
    return scores_by_halves(q[..., None, :], k, total)[..., 0, :].tril()


def products(log_a: Float[Tensor, "... c 1"]) -> Float[Tensor, "... c c"]:
    """exp(G_i - G_j) for j <= i, else 0."""
    # log a_{j+1} + ... + log a_i summed up as it is: the difference of two sums from the start has
    # fewer digits
    return log_a.expand(*log_a.shape[:-1], log_a.shape[-2]).tril(-1).cumsum(-2).exp().tril()


def decayed_scores(
    q: Queries, k: Keys, log_a: Decays, places: Int[Tensor, "b r"]
) -> Float[Tensor, "b h r t"]:
    """a_{j+1} ... a_i <q_i, k_j> for the tokens i at the places, 0 for later j, without the
    states that chunks hand on. One decay serves all key dimensions, or there is one place.
    """
    log_a = bounded(log_a)
    hidden = later(places, k.shape[2])
    if log_a.shape[-1] == 1:
        return (after_at(log_a, places).exp() * (q @ k.mT)).masked_fill(hidden, 0)
    kept = after(log_a.masked_fill(hidden.mT, 0)).exp() * k
    return (q @ kept.mT).masked_fill(hidden, 0)


def later(places: Int[Tensor, "b r"], tokens: int) -> Bool[Tensor, "b 1 r t"]:
    """Which tokens come after each place."""
    return torch.arange(tokens, device=places.device) > places[:, None, :, None]


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
    return recomputed(_Halving(), q, k, total)[..., :tokens, :, :tokens]


class _Halving:
    """The scores by halves and, in `gradient`, their derivatives."""

    def __call__(self, q: Tensor, k: Tensor, total: Tensor) -> Tensor:
        return _scores(q, k, total)

    def gradient(
        self, grad: Tensor, q: Tensor, k: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        by_q, by_k = _gradients(q, k, total, grad)
        own = torch.diagonal(grad, dim1=-3, dim2=-1).mT[..., None]  # c m 1: does not decay
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
