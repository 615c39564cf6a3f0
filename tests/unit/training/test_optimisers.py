"""AdamW and Muon for stacks of models, against PyTorch's, model by model and matrix by matrix."""

from __future__ import annotations

import pytest
import torch

from separatrix.training.muon import MOMENTUM, Muon, orthogonal
from separatrix.training.stacked import Matrices
from separatrix.training.step import BETAS, AdamW

RATES = torch.tensor([[3e-3], [1e-2], [5e-4]])
DECAYS = torch.tensor([[0.01], [0.1], [0.0]])


def gradients(shape: tuple[int, ...], steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) * 10.0**-step for step in range(steps)]


def test_adamw_is_that_of_pytorch_for_every_member() -> None:
    start = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    stacked = start.clone()
    adamw = AdamW(stacked, decayed=4)
    steps = gradients((3, 7), 6)
    for number, gradient in enumerate(steps, 1):
        clock = torch.tensor(AdamW.corrections(number))
        adamw.step(stacked, gradient, RATES, RATES * DECAYS, clock)
    for member in range(3):
        decayed = torch.nn.Parameter(start[member, :4].clone())
        others = torch.nn.Parameter(start[member, 4:].clone())
        groups = [
            {"params": [decayed], "weight_decay": float(DECAYS[member])},
            {"params": [others], "weight_decay": 0.0},
        ]
        peer = torch.optim.AdamW(groups, lr=float(RATES[member]), betas=BETAS)
        for gradient in steps:
            decayed.grad = gradient[member, :4].clone()
            others.grad = gradient[member, 4:].clone()
            peer.step()
        expected = torch.cat([decayed, others]).detach()
        assert torch.allclose(stacked[member], expected, rtol=1e-5, atol=1e-7)


SHAPES = [(6, 6), (6, 6), (12, 4), (4, 12)]
MATRICES = (Matrices(2, 2, 6, 6), Matrices(74, 1, 12, 4), Matrices(122, 1, 4, 12))
NUMBERS = 170
"""Two vectors' numbers, and those of the matrices."""


def test_muon_is_that_of_pytorch_for_every_matrix() -> None:
    """PyTorch's has bfloat16 inside, so that ours is computed in bfloat16 too, and a change of
    0.2 sqrt(12) rate per entry may differ by its rounding.
    """
    start = torch.randn(3, NUMBERS, generator=torch.Generator().manual_seed(0))
    stacked = start.clone()
    muon = Muon(stacked, 2, MATRICES, torch.bfloat16)
    steps = gradients((3, NUMBERS), 5)
    for gradient in steps:
        muon.step(stacked, gradient, RATES, RATES * DECAYS)
    assert (stacked[:, :2] == start[:, :2]).all()
    for member in range(3):
        for matrix, at in enumerate((2, 38, 74, 122)):
            shape = SHAPES[matrix]
            own = slice(at, at + shape[0] * shape[1])
            weight = torch.nn.Parameter(start[member, own].view(shape).clone())
            peer = torch.optim.Muon(
                [weight],
                lr=float(RATES[member]),
                weight_decay=float(DECAYS[member]),
                momentum=MOMENTUM,
                adjust_lr_fn="match_rms_adamw",
            )
            for gradient in steps:
                weight.grad = gradient[member, own].view(shape).clone()
                peer.step()
            change = stacked[member, own].view(shape) - start[member, own].view(shape)
            expected = weight.detach() - start[member, own].view(shape)
            assert (change - expected).norm() < 0.03 * expected.norm()


@pytest.mark.parametrize("shape", [(1, 5, 5), (4, 8, 32), (2, 1, 7)])
def test_orthogonal_keeps_directions_and_evens_their_lengths(shape: tuple[int, ...]) -> None:
    """Against the polynomial, applied five times to the singular values in float64."""
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    left, values, right = torch.linalg.svd(matrices.double(), full_matrices=False)
    values = values / values.norm(dim=1, keepdim=True)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    expected = left @ torch.diag_embed(values) @ right
    assert torch.allclose(orthogonal(matrices).double(), expected, atol=1e-4)


def test_a_gradient_of_zeros_changes_nothing() -> None:
    assert (orthogonal(torch.zeros(2, 3, 4)) == 0).all()
