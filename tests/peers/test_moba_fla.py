"""Mixture of block attention against flash-linear-attention's `parallel_moba`, its softmax kernels
replaced.

It needs flash-attn, so CUDA, for the softmax within given pieces, and triton for the borders of
chunks: plain functions stand in for both here. The means of keys, their scores, the choice, who
reads what, and the merging of the pieces' softmaxes are its own. What differs:
- its k counts the own block, ours does not: k + 1 goes in.
- at k + 1 = 1 it is full attention: not compared.
- it packs sequences into one and has no grouped heads: the batch goes in packed, keys and values
  copied for every query head.
- keys and values have one dimension there: values are filled up with zeros.
- it multiplies scores by 1/sqrt(d): queries go in multiplied by sqrt(d).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.peer_tools import agree, differ_when_perturbed, naive, ours, out, qkv
from torch import Tensor

from separatrix.mixers.ops import blockwise

pytestmark = pytest.mark.filterwarnings("ignore:index_reduce")

WIDTH = 12
HEADS = 4
KV = 2
DIM = 6
VALUE = 5
SIZES = [(8, 3), (16, 1), (7, 30)]
"""Block and topk; of 7, all complete blocks are read."""


def softmaxes(
    *,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    softmax_scale: float,
    causal: bool,
    **_: Any,
):
    """Softmax attention (t, h, d) within pieces, queries and keys of each between consecutive
    borders, and the log-denominators (h, t).
    """
    outputs = []
    denominators = []
    for piece in zip(
        cu_seqlens_q[:-1], cu_seqlens_q[1:], cu_seqlens_k[:-1], cu_seqlens_k[1:], strict=True
    ):
        first, last, start, end = (int(place) for place in piece)
        scores = softmax_scale * torch.einsum("ihd,jhd->hij", q[first:last], k[start:end])
        if causal:
            scores = scores.masked_fill(
                torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), float("-inf")
            )
        outputs.append(torch.einsum("hij,jhd->ihd", scores.softmax(-1), v[start:end]))
        denominators.append(scores.logsumexp(-1))
    return torch.cat(outputs), torch.cat(denominators, 1), None, None


def whole(
    q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, *_: int, causal: bool
) -> Tensor:
    return softmaxes(
        q=q,
        k=k,
        v=v,
        cu_seqlens_q=cu_q,
        cu_seqlens_k=cu_k,
        softmax_scale=q.shape[-1] ** -0.5,
        causal=causal,
    )[0]


def chunks(borders: Tensor, size: int) -> Tensor:
    """How many chunks each sequence has."""
    return (borders.diff() + size - 1) // size


def cut(*, split_size: int, cu_seqlens: Tensor, **_: Any) -> Tensor:
    borders = cu_seqlens.tolist()
    return torch.tensor(
        [i for a, b in pairwise(borders) for i in range(a, b, split_size)] + borders[-1:]
    )


def moba(m: Any, x: Tensor) -> Tensor:
    operator = naive(
        "moba",
        file="parallel",
        flash_attn_varlen_func=whole,
        _flash_attn_varlen_forward=softmaxes,
        prepare_lens=torch.diff,
        prepare_chunk_offsets=lambda borders, size: F.pad(chunks(borders, size).cumsum(0), (1, 0)),
        prepare_split_cu_seqlens=cut,
        prepare_chunk_indices=lambda borders, size: torch.arange(
            len(borders) - 1
        ).repeat_interleave(chunks(borders, size))[:, None],
        prepare_cu_seqlens_from_lens=lambda lengths: F.pad(lengths.cumsum(0), (1, 0)),
    ).parallel_moba
    q, k, v = qkv(m, x)
    k, v = (y.repeat_interleave(HEADS // KV, 2) for y in (k, F.pad(v, (0, DIM - VALUE))))
    packed = (y.flatten(0, 1)[None] for y in (q * DIM**0.5, k, v))
    batch, length = x.shape[:2]
    y = operator(*packed, torch.arange(batch + 1) * length, length, m.block, m.topk + 1)
    return out(m, y[0].unflatten(0, (batch, length))[..., :VALUE])


def mixed(block: int, topk: int) -> Any:
    return ours(
        "moba",
        {
            "heads": HEADS,
            "kv_heads": KV,
            "head_dim": DIM,
            "value_dim": VALUE,
            "block": block,
            "topk": topk,
        },
        width=WIDTH,
    )


@pytest.mark.parametrize(("block", "topk"), SIZES)
def test_moba(block: int, topk: int) -> None:
    m = mixed(block, topk)
    agree(m, lambda x: moba(m, x))


def test_moba_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "SHORT", 0)
    monkeypatch.setattr(blockwise, "DENSE", 0)
    m = mixed(8, 3)
    agree(m, lambda x: moba(m, x))


def test_a_changed_weight_is_seen() -> None:
    m = mixed(8, 3)
    unchanged = mixed(8, 3)
    differ_when_perturbed(m, lambda x: moba(unchanged, x))
