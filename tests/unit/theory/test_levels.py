"""Nested brackets by depths that full layers count: every prefix's count told apart in bf16, the
whole in real layers, and what it takes of a stack.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import torch
from torch import Tensor

from separatrix.mixers import Mixer, mixer
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Dyck
from separatrix.theory import judge, recheck
from separatrix.theory.solves.contents import APART, prefix_channels


def thresholds(n: int) -> list[tuple[float, int]]:
    """The share and the number that each channel takes off, for the fewest channels."""
    found: list[list[tuple[float, int]]] = []
    for d in range(8):
        most = -(-n // (APART << (d + 1)))
        if most <= 85 and (n + APART * most) << d <= 1 << 24:
            shares = [i / 2**d for i in range(2**d + 1)]
            found.append([(b, APART * r) for b in shares for r in range(-most, most + 1)])
    return min(found, key=len)


@pytest.mark.parametrize("n", [2, 200, 1000, 65_536, 131_072])
def test_channels_in_bf16_tell_every_count_apart(n: int) -> None:
    channels = thresholds(n)
    assert len(channels) == prefix_channels(n)
    shares, numbers = (torch.tensor(x, dtype=torch.float64) for x in zip(*channels, strict=True))
    # what stands in weights has eight digits, and sums are exact in fp32
    assert (shares.bfloat16().double() == shares).all()
    assert ((1 - shares).bfloat16().double() == 1 - shares).all()
    assert (numbers.bfloat16().double() == numbers).all()
    drawn = torch.Generator().manual_seed(n)
    every = [*range(1, n + 1)] if n <= 200 else torch.randint(n, (40,), generator=drawn).tolist()
    for t in {*every, n}:
        if t == 0:
            continue
        counts = torch.arange(t + 1) if t <= 1000 else torch.randint(t, (400,), generator=drawn)
        counts = torch.cat([counts, (counts + 1).clamp_max(t)]).unique()
        sums = counts[:, None].double() - t * shares - numbers
        assert (sums.float().double() == sums).all()
        told = (sums.float() / (t + 1)).bfloat16()
        # of two counts next to each other some channel is not alike
        near = counts.diff() == 1
        assert (told[1:] != told[:-1]).any(1)[near].all()
        assert len(told.unique(dim=0)) == len(counts)


def test_channels_by_hand() -> None:
    # one share of 1,024 needs 3 steps of 192 either way, with the other end 2 times 7
    assert prefix_channels(1024) == 2 * 7
    # 2^5 of 4,096 need 11; 2^6 of 2,048 need 6 and more sums than fp32 tells apart
    assert prefix_channels(131_072) == 33 * 23
    # eight digits hold 85 steps, and the shares that sums have room for lie further apart
    assert prefix_channels(1 << 20) == inf


def judged(ids: Tensor, k: int, depth: int) -> list[bool]:
    """Whether rows of brackets are balanced and not too deep, by a stack."""
    found: list[bool] = []
    for row in ids.tolist():
        held: list[int] = []
        right = True
        for one in row:
            if one < k:
                held.append(one)
                right = right and len(held) <= depth
            else:
                right = right and bool(held) and held.pop() == one - k
        found.append(right and not held)
    return found


def layer_of(spec: str, width: int, dtype: torch.dtype, **weights: Tensor) -> Mixer:
    """A real layer with these weights, in the upper left corner."""
    mechanism = Architecture.parse(spec).only
    assert mechanism is not None
    layer = mixer(mechanism, width=width).requires_grad_(False)
    for parameter in layer.parameters():
        parameter.zero_()
    for name, weight in weights.items():
        layer.get_parameter(f"{name}.weight")[: weight.shape[0], : weight.shape[1]] = weight
    return layer.to(dtype)


def drawn_rows(n: int, k: int, rng: np.random.Generator) -> Tensor:
    """Walks of brackets that are balanced, and half of them with one bracket changed."""
    rows: list[list[int]] = []
    for number in range(60):
        held, row = list[int](), list[int]()
        opens = rng.random()
        for t in range(n):
            closes = held and (len(held) >= n - t or rng.random() > opens)
            if closes:
                row.append(k + held.pop())
            else:
                held.append(int(rng.integers(k)))
                row.append(held[-1])
        if number % 2:
            row[int(rng.integers(n))] = int(rng.integers(2 * k))
        rows.append(row)
    return torch.tensor(rows)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_real_layers_judge_every_row(dtype: torch.dtype) -> None:
    n, k = 300, 3
    ids = drawn_rows(n, k, np.random.default_rng(3))
    rows = torch.nn.functional.pad(ids, (1, 0), value=2 * k)
    opens, starts = rows < k, rows == 2 * k
    channels = thresholds(n)
    # a token: it opens, it closes, it starts
    width = len(channels) + 40
    x = torch.zeros(*rows.shape, width)
    x[..., :3] = torch.stack([opens, ~opens & ~starts, starts], -1).float()
    takes = torch.tensor([[1 - share, -share, -number] for share, number in channels])
    size = f"full(heads=1, head_dim=16, value_dim={len(channels)}, positions=none)"
    counter = layer_of(size, width, dtype, v=takes, o=torch.eye(len(channels)))
    averages = counter(x.to(dtype)).double()[..., : len(channels)]
    places = torch.arange(n + 1)[:, None]
    shares, numbers = (torch.tensor(x, dtype=torch.float64) for x in zip(*channels, strict=True))
    sums = averages * (places + 1)
    nearest = sums.abs().argmin(-1, keepdim=True)
    counts = (sums + places * shares + numbers).gather(-1, nearest)[..., 0].round().long()
    assert (counts == opens.cumsum(1)).all()

    open_now = 2 * counts - places[:, 0]
    depth = torch.where(opens, open_now, open_now + 1)
    bad = (depth < 1) | (depth > n // 2)
    bits = 9
    code = 2.0 * (depth.clamp_min(0)[..., None] >> torch.arange(bits) & 1) - 1
    kind = torch.where(opens, rows, rows - k)
    x = torch.zeros(*rows.shape, 64)
    x[..., :bits] = torch.where(starts[..., None], 0.0, code)
    signs = torch.nn.functional.one_hot(kind.clamp(0, k - 1), k) * (2.0 * opens - 1)[..., None]
    x[..., bits : bits + k] = torch.where(starts[..., None], 0.0, signs)
    one = torch.eye(64)
    compares = layer_of(
        "full(heads=1, head_dim=16, value_dim=3, positions=none)",
        64,
        dtype,
        q=256.0 * one[:bits],
        k=one[:bits],
        v=one[bits : bits + k],
        o=torch.eye(64)[:, :k],
    )
    summed = compares(x.to(dtype))[..., :k]
    wrong = (~opens & ~starts & (summed != 0).any(-1)) | (bad & ~starts)

    x = torch.zeros(*rows.shape, 64)
    x[..., 0], x[..., 1] = 1.0, torch.where(wrong, 1.0, -1.0)
    looks = layer_of(
        "full(heads=1, head_dim=16, value_dim=3, positions=none)",
        64,
        dtype,
        q=256.0 * one[:1],
        k=one[1:2],
        v=one[1:2],
        o=torch.eye(64)[:, :1],
    )
    any_wrong = looks(x.to(dtype))[:, -1, 0] > -0.5
    answers = ~any_wrong & (open_now[:, -1] == 0)
    due = judged(ids, k, n // 2)
    assert answers.tolist() == due
    assert 15 < sum(due) < 45


@pytest.mark.parametrize(
    ("spec", "layers"),
    [
        ("full*3", 3),
        ("full*2", None),
        # 10 bits of a depth up to 512, and two tags
        ("full(head_dim=12)*3", 3),
        ("full(head_dim=11)*3", None),
        # a value for each kind of brackets
        ("full(value_dim=2)*3", None),
        ("full(value_dim=3)*3", 3),
        # in bf16 14 channels, of one layer or of several
        ("full(heads=4, kv_heads=2, value_dim=12)*3 @ bf16", 3),
        ("full(heads=4, kv_heads=2, value_dim=8)*4 @ bf16", None),
        ("full(heads=4, kv_heads=2, value_dim=8)*5 @ bf16", 5),
        ("full(value_dim=7)*9 @ fp16", None),
        ("full(positions=alibi)*9", None),
        ("mla*3", None),
        ("full + mla*2", None),
        # recurrences behind them count too late and take nothing away, nor do other heads
        ("full*3 + gdn*5", 3),
        (
            "full(heads=32, rope=true, rope_base=500000, head_dim=128)*7 + full(head_dim=128)"
            " @ positions=none",
            7,
        ),
        # heads side by side are one layer
        ("(full(heads=1, value_dim=12)|full(heads=1, value_dim=8)) + full*2 @ bf16", None),
        # 33^2 places by two layers, one counts, a place of 11 bits is found in three by five
        ("full(heads=32, rope=true, rope_base=500000, head_dim=128, positions=none)*7", 7),
        ("full(heads=32, rope=true, rope_base=500000, head_dim=128, positions=none)*6", None),
        ("full(heads=32, rope=true, rope_base=500000, head_dim=32, positions=none)*9", None),
    ],
)
def test_a_stack_takes_layers_that_count_compare_and_look(spec: str, layers: int | None) -> None:
    task = Dyck(n=1024, k=3, D=512)
    verdicts = judge(Architecture.parse(spec), task)
    found = next((v for v in verdicts if v.theorem == "levels"), None)
    assert (None if found is None else found.numbers["layers"]) == layers
    if found is None:
        assert verdicts[0].status == "OPEN"
    else:
        recheck(found)


def test_two_dimensions_behind_a_norm_have_no_slow_pair_to_spare() -> None:
    stack = Architecture.parse(
        "full(heads=4, head_dim=2, value_dim=64, rope=true, qk_norm=all)*5 @ positions=none"
    )
    assert judge(stack, Dyck(n=6, k=2, D=3))[0].status == "OPEN"
