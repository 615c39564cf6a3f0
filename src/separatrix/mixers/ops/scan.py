"""Recurrences that scale each number of their state by itself, h_i = a_i h_{i-1} + added_i; and the
selective scan of Mamba, where every channel has a state of its own, and every number of it a rate:

    h_i = exp(D_i A) h_{i-1} + w_i B_i,   y_i = <C_i, h_i>

`scan`: all chunks at once token by token, then chunk by chunk: as many steps as a chunk has tokens,
and as many as there are chunks. Decays of the selective scan differ between the channels and the
numbers of their states, so there is no form of matrix products: h is computed for every token,
segment by segment, so that states of a few tokens only are there at a time. On a CPU a segment fits
the processor's cache: exponentials and products of all its tokens at once, then one multiplication
and addition for each token. Backward, from states that are computed again, the last segment first,

    G_i = y'_i C_i + a_{i+1} G_{i+1},   dL/d log a_i = a_i h_{i-1} G_i,   G_i = dL/dh_i, y' = dL/dy

Shapes: s tokens of a segment, c channels, or numbers of the state, n numbers of a channel's state.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels
from separatrix.mixers.ops.recompute import recomputed


def scan(
    log_a: Channels, added: Channels, *, chunk: int, state: Float[Tensor, "b c"] | None = None
) -> Channels:
    """h_i for every i, from the state before the first token (0 if not given), with log a of at
    most 0.
    """
    tokens = log_a.shape[1]
    size = min(chunk, tokens)
    log_a, added = (
        F.pad(x, (0, 0, 0, -tokens % size)).unflatten(1, (-1, size)) for x in (log_a, added)
    )  # b n s c
    h = torch.zeros_like(added[:, :, 0])
    parts = []
    for a, new in zip(log_a.exp().unbind(2), added.unbind(2), strict=True):
        h = torch.addcmul(new, a, h)
        parts.append(h)
    y = torch.stack(parts, 2)
    if y.shape[1] > 1 or state is not None:
        # no log a is above 0, so products of decays stay at most 1
        kept = log_a.cumsum(2).exp()
        state = torch.zeros_like(h[:, 0]) if state is None else state
        before = []
        for keep, end in zip(kept[:, :, -1].unbind(1), h.unbind(1), strict=True):
            before.append(state)
            state = torch.addcmul(end, keep, state)
        y = torch.addcmul(y, kept, torch.stack(before, 1)[:, :, None])
    return y.flatten(1, 2)[:, :tokens]


NUMBERS = 1 << 17
"""Largest number of states' numbers in a segment on a CPU. Of 256 channels of 16 numbers and 2,048
tokens, forward and backward take 64, 57, 49 and 49 ms in segments of 8, 16, 32 and 64 tokens.
"""
NUMBERS_CUDA = 1 << 28
"""And on CUDA, where large steps are cheap, and memory ends."""
SHORTEST = 8
"""Tokens of a segment at least: the backward pass holds the state before each."""


Rates = Float[Tensor, "c n"]
Numbers = Float[Tensor, "b t n"]


def selective_scan(
    step: Channels, rates: Rates, written: Channels, b: Numbers, c: Numbers, *, chunk: int
) -> Channels:
    """y_i for every i: steps D of at least 0, rates A of at most 0, `written` w."""
    if step.is_cuda:
        return _in_chunks(step, rates, written, b, c, chunk=chunk)
    each = rates.expand(len(step), *rates.shape)
    return recomputed(_TokenByToken(chunk), step, each, written, b, c)


def _in_chunks(
    step: Tensor, rates: Tensor, written: Tensor, b: Tensor, c: Tensor, *, chunk: int
) -> Tensor:
    """The same by `scan`, which autograd sees through."""
    most = NUMBERS_CUDA if step.is_cuda else NUMBERS
    size = max(1, most // (len(step) * rates.numel() * chunk)) * chunk
    state = None
    outputs: list[Tensor] = []
    for d, w, k, q in zip(*(x.split(size, 1) for x in (step, written, b, c)), strict=True):
        log_a = d[..., None] * rates
        added = w[..., None] * k[:, :, None]
        h = scan(log_a.flatten(2), added.flatten(2), chunk=chunk, state=state)
        state = h[:, -1]
        outputs.append((h.unflatten(2, rates.shape) * q[:, :, None]).sum(-1))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)


class _TokenByToken:
    """The scan on a CPU and its gradients; rates (b c n) of every sequence by itself."""

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk

    def __call__(self, step: Tensor, rates: Tensor, w: Tensor, b: Tensor, c: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # second derivatives
            rows = zip(*(x.split(1) for x in (step, w, b, c)), rates, strict=True)
            return torch.cat([_in_chunks(d, a, *x, chunk=self.chunk) for d, *x, a in rows])
        y = torch.empty_like(w)
        rates = rates.mT.contiguous()
        state = torch.zeros_like(rates)
        for d, w_, k, q, read in _slabs(rates, (step, w), (b, c), (y,)):
            _, h = _states(d, rates, w_, k, state)
            read.copy_(q.mT @ h[1:])
            state = h[-1]
        return y

    def gradient(
        self, grad: Tensor, step: Tensor, rates: Tensor, w: Tensor, b: Tensor, c: Tensor
    ) -> tuple[Tensor, ...]:
        """By the five inputs, of outputs with that gradient."""
        rates = rates.mT.contiguous()
        by_step, by_w, by_b, by_c = (torch.empty_like(x) for x in (step, w, b, c))
        by_rates = torch.zeros_like(rates)
        slabs = _slabs(rates, (step, w), (b, c), (grad, by_step, by_w), (by_b, by_c))
        starts = [torch.zeros_like(rates)]
        for d, w_, k, *_ in slabs[:-1]:
            starts.append(_states(d, rates, w_, k, starts[-1])[1][-1].clone())
        later = torch.zeros_like(rates)  # a G of the token after the segment
        while slabs:
            d, w_, k, q, y, d_step, d_w, d_b, d_c = slabs.pop()
            a, h = _states(d, rates, w_, k, starts.pop())
            g = q * y
            g[-1] += later
            tokens = list(zip(a.unbind(0), g.unbind(0), strict=True))
            for now, (keep, after_) in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
                now[1].addcmul_(keep, after_)
            later = a[0] * g[0]
            d_c.copy_(h[1:] @ y.mT)
            d_b.copy_(g @ w_.mT)
            d_w.copy_(k.mT @ g)
            by_log = a.mul_(h[:-1]).mul_(g)
            d_step.copy_(torch.mul(by_log, rates, out=g).sum(-2, keepdim=True))
            by_rates += by_log.mul_(d).sum(0)
        return by_step, by_rates.mT, by_w, by_b, by_c


def _slabs(rates: Float[Tensor, "b n c"], *groups: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
    """Views of segments of the inputs, tokens first: of groups of channels as rows (s b 1 c) and of
    numbers as columns (s b n 1), in turn.
    """
    tokens = groups[0][0].shape[1]
    size = min(tokens, max(SHORTEST, NUMBERS // rates.numel()))
    views = [
        x.transpose(0, 1)[..., None, :] if place % 2 == 0 else x.transpose(0, 1)[..., None]
        for place, group in enumerate(groups)
        for x in group
    ]
    return list(zip(*(x.split(size) for x in views), strict=True))


def _states(
    d: Float[Tensor, "s b 1 c"],
    rates: Float[Tensor, "b n c"],
    w: Float[Tensor, "s b 1 c"],
    k: Float[Tensor, "s b n 1"],
    start: Float[Tensor, "b n c"],
) -> tuple[Float[Tensor, "s b n c"], Float[Tensor, "r b n c"]]:
    """The decays of a segment's tokens, and the states from the one before it on."""
    a = (d * rates).exp_()
    h = a.new_empty(len(a) + 1, *start.shape)
    h[0] = start
    torch.mul(w, k, out=h[1:])
    for keep, (before, new) in zip(a.unbind(0), pairwise(h.unbind(0)), strict=True):
        new.addcmul_(keep, before)
    return a, h
