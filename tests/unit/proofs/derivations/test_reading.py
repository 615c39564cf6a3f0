"""Leads and weighed values, by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model, ModelConfig
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations.parts.reading import leads, logit_leads, weighed
from separatrix.proofs.machine import Enclosure


def test_a_lead_that_float64_holds_is_not_rounded_and_any_other_is_rounded_down() -> None:
    numbers = Enclosure.point(np.array([[3.0, 1.0], [1.0, 2.0**-60], [1.0, 1.0], [-1.0, 2.0**60]]))
    found = leads(numbers, 0)
    assert found[0] == 2
    # 1 - 2^-60 is between two numbers of float64
    assert Fraction(found[1]) < 1 - Fraction(1, 1 << 60)
    assert found[1] == np.nextafter(1.0, 0.0)
    assert found[2] == 0
    assert Fraction(found[3]) <= -1 - (1 << 60)


def test_radii_of_both_numbers_are_taken_off() -> None:
    numbers = Enclosure(np.array([[4.0, 1.0, 2.0]]), np.array([[0.5, 0.0, 1.0]]))
    assert 0.4999 < leads(numbers, np.array([0]))[0] <= 0.5
    # alone it has no rival
    assert leads(Enclosure.point(np.ones((1, 1))), 0)[0] > 1e300


def test_a_weight_between_bounds_times_a_value_of_either_sign() -> None:
    value = Enclosure.between(np.array([[-1.0, 2.0, 0.0]]), np.array([[3.0, 4.0, 0.0]]))
    found = weighed(value, np.array([0.0, 0.5]), np.array([0.25, 1.0]), 4, "layer 1")
    # 1/4 of -1 to 3, and of 4 at most; from 1/2 to 1 of the same
    low, high = np.array([[-0.25, 0, 0], [-1, 1, 0]]), np.array([[0.75, 1, 0], [3, 4, 0]])
    assert found.low == pytest.approx(low, abs=1e-10)
    assert found.high == pytest.approx(high, abs=1e-10)
    assert (found.low <= low).all()
    assert (found.high >= high).all()
    assert (found.size[:, 2] == 0).all()
    large = value.like(value.mid * 2.0**125, value.rad * 2.0**125)
    with pytest.raises(CheckFailed, match="overflow"):
        weighed(large, np.zeros(1), np.ones(1), 4, "layer 1")
    assert value.arithmetic is FP32


def headed(weight: np.ndarray, bias: np.ndarray) -> Model:
    answers, width = weight.shape
    sizes = {"vocabulary": 2, "length": 2, "answers": answers, "width": width, "hidden": 0}
    model = Model(
        ModelConfig(architecture="full @ heads=1, head_dim=1", **sizes, norm=False, bos=False)
    )
    model.requires_grad_(False)
    model.head.weight.copy_(torch.from_numpy(weight))
    model.head.bias.copy_(torch.from_numpy(bias))
    return model


def test_what_is_off_in_the_stream_moves_two_logits_alike() -> None:
    model = headed(np.array([[1.0, 0.0], [1.0, 1.0]]), np.zeros(2))
    row = Enclosure(np.array([[1.0, -1.0]]), np.array([[0.5, 0.25]]))
    # the first logit leads by the second number's opposite
    assert 0.7499 < logit_leads(model, row, 0)[0] <= 0.75
    assert -1.2501 < logit_leads(model, row, 1)[0] <= -1.25


@pytest.mark.parametrize("seed", range(8))
def test_leads_of_logits_are_those_of_what_the_rows_may_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, answers = rng.integers(1, 6), rng.integers(2, 7)
    model = headed(rng.normal(size=(answers, width)) * 2.0 ** rng.integers(-9, 9), np.ones(answers))
    # float32 holds every corner
    mid, rad = rng.integers(-40, 40, size=(5, width)) / 8, rng.integers(9, size=(5, width)) / 8
    rows = Enclosure(mid, rad * rng.integers(2, size=width))
    due = rng.integers(answers, size=len(mid))
    found = logit_leads(model, rows, due)
    for _ in range(200):
        corner = mid + rows.rad * rng.choice([-1, 1, 0.5], size=mid.shape)
        logits = model.head(torch.from_numpy(corner).float()).double().numpy()
        right = np.take_along_axis(logits, due[:, None], 1)[:, 0]
        logits[np.arange(len(mid)), due] = -np.inf
        assert (right - logits.max(1) >= found).all()
