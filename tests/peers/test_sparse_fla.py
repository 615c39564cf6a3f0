"""Block-sparse attention against the parts of flash-linear-attention's naive NSA, and log-linear
attention over Gated DeltaNet against its gated delta rule.

NSA there differs from (B, k)-sparse attention here by definition, and is matched so:
- compression: a token sees its own block there if it is the block's last token, here from the next
  token on: queries go in one place earlier and outputs are taken one place later. Poolings are
  means there and learned here: the pooled keys and values go in.
- selection: one choice per key-value head there, one per query head here: keys and values go in
  copied for every query head. There the first block, the own block and the one before it are always
  chosen, here the own block only: the choice goes in, made by sorting.
- the window: flash-attn there; here against its naive attention with a window.
- the sum: added up here, weighted by gates from x as the last lines of `naive_nsa` and its layer's
  sigmoids have it, or by learned shares per head, which are ours alone.
`nsa` is compared with `naive_nsa` as a whole, choice and gates included.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.peer_tools import agree, differ_when_perturbed, naive, ours, out, qkv, same, tokens
from torch import Tensor

from separatrix.mixers.ops import blockwise

WIDTH = 12
HEADS = 4
KV = 2
DIM = 6
VALUE = 5
BLOCK = 8
TOPK = 3
SPARSE: dict[str, Any] = {
    "heads": HEADS,
    "kv_heads": KV,
    "head_dim": DIM,
    "value_dim": VALUE,
    "block": BLOCK,
    "topk": TOPK,
}
OPTIONS: list[dict[str, Any]] = [{}, {"window": 11}, {"gates": True}, {"window": 11, "gates": True}]
DELTA: dict[str, Any] = {"heads": HEADS, "head_dim": DIM, "value_dim": VALUE, "base": "gdn"}


def pooled(x: Tensor, weights: Tensor) -> Tensor:
    """(b, t, h, d) -> (b, complete blocks, h, d)."""
    full = x.shape[1] // BLOCK * BLOCK
    return (x[:, :full].unflatten(1, (-1, BLOCK)) * weights[:, None, None]).sum(2)


def chosen(q: Tensor, keys: Tensor) -> Tensor:
    """The own block of every token, and of the blocks before it those with the largest scores
    (b, t, h, 1 + k); -1 where there are fewer.
    """
    own = torch.arange(q.shape[1]) // BLOCK
    scores = torch.einsum("bthd,bmhd->bthm", q, keys)
    scores = scores.masked_fill(
        (torch.arange(keys.shape[1]) >= own[:, None])[:, None], float("-inf")
    )
    best, order = torch.sort(
        F.pad(scores, (0, TOPK), value=float("-inf")), dim=-1, descending=True, stable=True
    )
    picked = order.masked_fill(best == float("-inf"), -1)[..., :TOPK]
    return torch.cat([own[:, None, None].expand(*q.shape[:3], 1), picked], -1)


def nsa(m: Any, x: Tensor) -> Tensor:
    operators = naive("nsa")
    q, k, v = qkv(m, x)
    k, v = (y.repeat_interleave(HEADS // KV, 2) for y in (k, v))
    keys = pooled(k, m.pool_k)
    values = pooled(v, m.pool_v)
    selected = operators.naive_nsa_selection(
        q, k, F.pad(v, (0, DIM - VALUE)), chosen(q, keys), BLOCK, 1.0
    )[..., :VALUE]
    compressed = torch.zeros_like(selected)
    if keys.shape[1]:
        compressed = F.pad(
            operators.naive_nsa_compression(q[:, 1:], keys, values, BLOCK, 1.0)[0],
            (0, 0, 0, 0, 1, 0),
        )
    branches = [compressed, selected]
    if m.window:
        branches.append(
            naive("attn").naive_parallel_attn(q, k, v, scale=1.0, window_size=m.window)[0]
        )
    if m.g is not None:
        shares = torch.sigmoid(x @ m.g.weight.T).unflatten(-1, (len(branches), HEADS)).unbind(-2)
    else:
        powers = [m.mix.exp(), torch.ones(HEADS)] + ([m.mix_window.exp()] if m.window else [])
        shares = [power / sum(powers) for power in powers]
    return out(
        m,
        torch.stack(
            [share[..., None] * branch for share, branch in zip(shares, branches, strict=True)]
        ).sum(0),
    )


NATIVE: dict[str, Any] = {
    "heads": 32,
    "kv_heads": 2,
    "head_dim": DIM,
    "value_dim": DIM,
    "block": BLOCK,
    "stride": BLOCK,
    "selected": BLOCK,
    "topk": 4,
    "window": 11,
    "pool": "mean",
    "shared": True,
}


def mean_pooled(x: Tensor, size: int, offsets: None) -> Tensor:
    """What flash-linear-attention's kernel gives: of an incomplete block the mean of its tokens."""
    return torch.stack([part.mean(1) for part in x.split(size, 1)], 1)


def in_window(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window_size: Any) -> Tensor:
    """flash-attn's function, as its documentation has it."""
    k, v = (y.repeat_interleave(q.shape[2] // k.shape[2], 2) for y in (k, v))
    place = torch.arange(q.shape[1])
    ahead = place[:, None] - place
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    seen = (ahead >= 0) & (ahead <= window_size[0])
    return torch.einsum("bhij,bjhe->bihe", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)


def native(m: Any, x: Tensor) -> Tensor:
    """All of `naive_nsa`, choice included; only its mean pooling and flash-attn's window, which run
    on CUDA alone, are written out. It scales scores by 1/sqrt(d): Q is multiplied by that root.
    """
    q, k, v = qkv(m, x)
    gates = torch.sigmoid(x @ m.g.weight.T).unflatten(-1, (3, 32)).unbind(-2)
    instead = {"mean_pooling": mean_pooled, "flash_attn_func": in_window}
    operator = naive("nsa", **instead).naive_nsa
    y = operator(q * DIM**0.5, k, v, *gates, block_counts=4, block_size=BLOCK, window_size=11)
    return out(m, y)


@pytest.mark.parametrize("tiles", [False, True])
def test_native(tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tiles:
        monkeypatch.setattr(blockwise, "SHORT", 0)
        monkeypatch.setattr(blockwise, "DENSE", 0)
    m = ours("nsa", NATIVE, width=WIDTH)
    agree(m, lambda x: native(m, x))


def test_a_changed_weight_of_native_is_seen() -> None:
    m, unchanged = (ours("nsa", NATIVE, width=WIDTH) for _ in range(2))
    differ_when_perturbed(m, lambda x: native(unchanged, x))


def by_level(m: Any, x: Tensor) -> Tensor:
    """Log-linear attention over Gated DeltaNet, which is linear in the values: for token i and
    level l, the output of the gated delta rule at i with the values outside of level l of i as 0,
    times the weight of l; summed over l.
    """
    q, k, v = qkv(m, x)
    b = torch.sigmoid(x @ m.b.weight.T)
    log_a = -m.rate.exp() * F.softplus(F.linear(x, m.a.weight, m.a.bias))
    count = x.shape[1]
    level = torch.tensor(
        [[(i ^ j).bit_length() if j <= i else -1 for j in range(count)] for i in range(count)]
    )
    inside = level[:, None] == torch.arange((count - 1).bit_length() + 1)[:, None]  # i l j
    runs = inside.flatten(0, 1)
    operator = naive("gated_delta_rule").naive_recurrent_gated_delta_rule
    y = []
    q, k = (z / z.norm(dim=-1, keepdim=True) for z in (q, k))
    for one in range(len(x)):
        many = (z[one].expand(len(runs), *z.shape[1:]) for z in (q, k, v, b, log_a))
        q_, k_, v_, b_, log_a_ = many
        every, _ = operator(q_, k_, v_ * runs[:, :, None, None], b_, log_a_, 1.0)
        every = every.unflatten(0, inside.shape[:2])  # i l t h e
        y.append(every[torch.arange(count), :, torch.arange(count)])  # i l h e
    weights = F.softplus(x @ m.level.weight.T).unflatten(-1, (-1, HEADS))[:, :, : inside.shape[1]]
    return out(m, (torch.stack(y) * weights[..., None]).sum(2))


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sparse(options: dict[str, Any], tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tiles:
        monkeypatch.setattr(blockwise, "SHORT", 0)
        monkeypatch.setattr(blockwise, "DENSE", 0)
    m = ours("sparse", SPARSE | options, width=WIDTH)
    agree(m, lambda x: nsa(m, x))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_changed_weight_of_sparse_is_seen(options: dict[str, Any]) -> None:
    m, unchanged = (ours("sparse", SPARSE | options, width=WIDTH) for _ in range(2))
    differ_when_perturbed(m, lambda x: nsa(unchanged, x))


@pytest.mark.parametrize("length", [1, 2, 5, 16, 37])
@torch.no_grad()
def test_loglinear_over_gdn(length: int) -> None:
    m = ours("loglinear", DELTA, width=WIDTH)
    x = tokens(WIDTH)[:, :length]
    m.chunk = 8
    same(m(x), by_level(m, x), f"T={length}")
