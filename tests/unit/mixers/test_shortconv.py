"""The short convolution: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from support.mixers import Layer, made_with, outputs_of, tokens_of, with_weights


@pytest.mark.parametrize("conv", [1, 3, 30])
@pytest.mark.parametrize("width", [1, 5])
def test_shortconv(width: int, conv: int) -> None:
    # LFM2: B, C, u = maps of x; y = B * u; z = conv(y); o = W (C * z)
    layer = Layer("shortconv", width=width, conv=conv)
    z = layer.convolved(layer.map("b") * layer.map("v"), activated=False)
    layer.check(layer.map("o", layer.map("c") * z))


def test_shortconv_takes_tokens_before_the_first_as_zero() -> None:
    # weights of the token itself 100, the one before 10, two before 1; gates b and c read
    # coordinate 1, u coordinate 0
    m = made_with(
        "shortconv",
        2,
        {"width": 1, "conv": 3},
        v__weight=[[1, 0]],
        b__weight=[[0, 1]],
        c__weight=[[0, 1]],
        o__weight=[[1], [0]],
    )
    m = with_weights(m, conv__weight=[[1.0, 10.0, 100.0]])
    x = tokens_of((1, 1), (2, 1), (3, 1), (4, 1))
    assert outputs_of(m, x) == [100, 210, 321, 432]
    assert outputs_of(m, x[:, :1]) == [100]
    assert outputs_of(m, x[:, :2]) == [100, 210]
    # a gate of 0 shuts a token out of the later outputs too; one of 2 counts twice, before and
    # after
    assert outputs_of(m, tokens_of((1, 1), (2, 0), (3, 2), (4, 1))) == [
        100,
        0,
        2 * (600 + 1),
        400 + 60,
    ]


@pytest.mark.parametrize(("tokens", "kernel"), [(5, 1), (5, 4), (1, 4), (2, 7)])
def test_gradients_are_those_of_pytorchs_convolution(tokens: int, kernel: int) -> None:
    """Alone, and of three with weights of their own, as packs train them."""
    from separatrix.mixers.ops.maps import Convolution

    layer = Convolution(2, kernel, silu=False).double()
    draw = torch.Generator().manual_seed(0)
    x, weights, by_y = (
        torch.randn(3, *shape, dtype=torch.float64, generator=draw, requires_grad=True)
        for shape in ((4, tokens, 2), (2, kernel), (4, tokens, 2))
    )

    def ours(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"weight": weight}, (x,))

    def theirs(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.conv1d(F.pad(x.mT, (kernel - 1, 0)), weight[:, None], groups=2).mT

    stacked = torch.func.vmap(ours)(x, weights)
    alone = torch.stack([ours(*each) for each in zip(x, weights, strict=True)])
    expected = torch.stack([theirs(*each) for each in zip(x, weights, strict=True)])
    for y in (stacked, alone):
        assert torch.allclose(y, expected)
        found = torch.autograd.grad(y, (x, weights), by_y, retain_graph=True)
        wanted = torch.autograd.grad(expected, (x, weights), by_y, retain_graph=True)
        assert all(map(torch.allclose, found, wanted))
    assert torch.autograd.gradgradcheck(ours, (x[0], weights[0]))
