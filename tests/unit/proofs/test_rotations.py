"""Cosines and sines of rotary embeddings: against balls of the angles that float32 has, and what
PyTorch computes lies within them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flint import arb, ctx
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.ops.maps import rotate
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.circle import MOST_PLACES, single_angles, trig_off, turned

LLAMA = Rotation(500_000, 128, "llama3_8_1_4_8192")
YARN = Rotation(150_000, 64, "yarnexact_32_32_1_4096")


@each("rotation", [Rotation(10_000, 16), LLAMA, YARN])
@each("first", [0, 70_000, MOST_PLACES - 40])
def test_what_pytorch_computes_lies_within(rotation: Rotation, first: int) -> None:
    places = np.arange(first, first + 40)
    cos, sin = turned(rotation, places)
    # a pair (1, 0) turns to its cosine and sine, without a rounding of its own
    one = torch.zeros(1, 1, 40, rotation.dims)
    half = rotation.dims // 2
    one[..., :half] = 1.0
    computed = rotate(one, rotation, start=first)[0, 0].double().numpy()
    assert np.abs(computed[:, :half] - cos).max() <= trig_off(FP32, MOST_PLACES)
    assert np.abs(computed[:, half:] - sin).max() <= trig_off(FP32, MOST_PLACES)
    # the angle that float32 has, place times frequency, is the one here
    table = torch.arange(first, first + 40).float()[:, None] * torch.tensor(rotation.frequencies)
    assert (single_angles(rotation, places) == table.double().numpy()).all()


def test_by_balls() -> None:
    """Far below what a library promises: within 2^-40 of the cosine of the float32 angle."""
    places = np.array([0, 1, 4_095, 4_096, 131_071, MOST_PLACES - 1])
    cos, sin = turned(YARN, places)
    with ctx.workprec(120):
        for row, angles in enumerate(single_angles(YARN, places).tolist()):
            for pair, angle in enumerate(angles):
                assert abs(float(arb(angle).cos() - arb(float(cos[row, pair])))) < 2.0**-40
                assert abs(float(arb(angle).sin() - arb(float(sin[row, pair])))) < 2.0**-40


def test_places_beyond_are_refused() -> None:
    with pytest.raises(SizeError, match="4,194,304 places"):
        turned(LLAMA, np.array([MOST_PLACES]))
