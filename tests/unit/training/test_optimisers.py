"""AdamW and Muon for stacks of models, against PyTorch's, model by model and matrix by matrix."""

from __future__ import annotations

import pytest
import torch

from separatrix.training.step import BETAS, MOMENTUM, adamw, corrections, muon, orthogonal

RATES = torch.tensor([[3e-3], [1e-2], [5e-4]])
DECAYS = torch.tensor([[0.01], [0.1], [0.0]])


def gradients(shape: tuple[int, ...], steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) * 10.0**-step for step in range(steps)]


def test_adamw_is_that_of_pytorch_for_every_member() -> None:
    start = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    stacked = start.clone()
    moments = torch.zeros(2, 3, 7)
    steps = gradients((3, 7), 6)
    for number, gradient in enumerate(steps, 1):
        adamw(
            stacked,
            gradient,
            *moments,
            decayed=4,
            rates=RATES,
            decay=RATES * DECAYS,
            clock=torch.tensor(corrections(number)),
        )
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


WIDE = {(6, 6): ["a", "b"], (4, 12): ["c", "d"]}
"""Sides of the matrices, one after another."""


def test_muon_is_that_of_pytorch_for_every_matrix() -> None:
    """PyTorch's has bfloat16 inside, so that ours is computed in bfloat16 too, and a change of
    0.2 sqrt(12) rate per entry may differ by its rounding.
    """
    start = torch.randn(3, 168, generator=torch.Generator().manual_seed(0))
    stacked = start.clone()
    momentum = torch.zeros_like(start)
    steps = gradients((3, 168), 5)
    for gradient in steps:
        muon(
            stacked,
            gradient,
            momentum,
            wide=WIDE,
            rates=RATES,
            decay=RATES * DECAYS,
            dtype=torch.bfloat16,
        )
    for member in range(3):
        for at, shape in ((0, (6, 6)), (36, (6, 6)), (72, (4, 12)), (120, (4, 12))):
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
