"""Weights that are wrong, and that a checker without an evaluation of the forward pass called
proved: each is refused.

Every model here was filed by an attacker: weights of a real construction, changed, and the record
written anew from what the checker derived.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from separatrix.architecture import Architecture
from separatrix.constructions import construct
from separatrix.derivations import DERIVATIONS
from separatrix.errors import CheckFailed
from separatrix.model import Model
from separatrix.tasks import SeqComp, Task, TwoSum

SMALL = SeqComp(L=1, m=16)
Forgery = tuple[str, Task, Model]


def carried(task: SeqComp, carrier: str) -> Model:
    stack = Architecture.parse(f"{carrier} + full @ heads=1, head_dim=8, value_dim=8")
    return construct(task, stack, "carried").model


def short_keys() -> Forgery:
    """Queries and keys of 2^-30: the mixer divides vectors shorter than 1e-6 by 1e-6, so that they
    do not get unit length.
    """
    model = carried(SMALL, "gdn")
    for name in "qk":
        model.get_parameter(f"blocks.0.mixers.0.{name}.weight").mul_(2.0**-30)
    return "carried", SMALL, model


def products_below_float32() -> Forgery:
    """<q, k> = 2^-120 times a value of 2^-30: float32 has no such number, and what should be
    divided by 2^-120 again is 0.
    """
    model = carried(SMALL, "linear(feature=identity)")
    for name in "qk":
        weight = model.get_parameter(f"blocks.0.mixers.0.{name}.weight")
        used = weight.nonzero()[0, 1]
        weight.mul_(2.0**-30)
        model.position.weight[:, used].mul_(2.0**-30)
    model.get_parameter("blocks.0.mixers.0.v.weight").mul_(2.0**-30)
    # in real numbers the rest makes up for it: 2^-20 arrives, and the MLP makes +-1/2 of it
    model.get_parameter("blocks.0.mixers.0.o.weight").mul_(2.0**10)
    model.get_parameter("blocks.0.mlp.up.weight").mul_(2.0**9)
    model.get_parameter("blocks.0.mlp.up.bias").mul_(2.0**-11)
    model.get_parameter("blocks.0.mlp.down.weight").mul_(2.0**10)
    model.get_parameter("blocks.0.mlp.down.bias").mul_(2.0**-1)
    model.get_parameter("blocks.1.mixers.0.q.weight").mul_(2.0)
    return "carried", SMALL, model


def scores_above_float32() -> Forgery:
    """q = 2^82 and k = 2^46: their product is infinite, and the logits are not numbers."""
    task = TwoSum(n=2, M=3)
    model = construct(task).model
    # 0 and the start token stay below the border, so that what must be exact is
    model.embed.weight.mul_(2.0**38)
    model.embed.weight[1:3].mul_(2.0**3)
    query = model.get_parameter("blocks.0.mixers.0.q.weight")
    query.copy_(query.sign() * 2.0**41)
    model.get_parameter("blocks.0.mixers.0.k.weight").mul_(2.0**5)
    return "match2", task, model


def another_coordinate() -> Forgery:
    """The classifier reads a coordinate that the head could write, and never does."""
    task = TwoSum(n=3, M=5)
    stack = Architecture.parse("full @ heads=1, head_dim=3, value_dim=2")
    real = construct(task, stack).model
    model = Model(dataclasses.replace(real.config, width=real.config.width + 1))
    model.requires_grad_(False)
    for name, tensor in model.state_dict().items():
        tensor.zero_()
        found = real.state_dict()[name]
        tensor[tuple(slice(size) for size in found.shape)] = found
    output = model.get_parameter("blocks.0.mixers.0.o.weight")
    (written,) = output[:, 0].nonzero()[:, 0].tolist()
    # of two values the second is always 0, and is what the classifier now reads
    output[written, 0], output[written, 1], output[-1, 0] = 0.0, 1.0, 1.0
    return "match2", task, model


FORGERIES = [short_keys, products_below_float32, scores_above_float32, another_coordinate]


@torch.inference_mode()
def wrong(task: Task, model: Model, number: int = 200) -> int:
    batch = task.sample(number, np.random.default_rng(0))
    logits = model(torch.from_numpy(batch.tokens))
    right = logits.argmax(-1).numpy() == task.answer(batch.tokens)
    return int((~right | ~logits.isfinite().all(-1).numpy()).sum())


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forgery_is_wrong_and_refused(forge: Callable[[], Forgery]) -> None:
    name, task, model = forge()
    assert wrong(task, model)
    with pytest.raises(CheckFailed):
        DERIVATIONS[name].derive(task, model)


@pytest.mark.parametrize("m", [100, 1000])
def test_the_error_of_gates_grows_with_the_tokens(m: int) -> None:
    """Each gate may be 8 u off, after each of the m tokens that follow z_0 or come before it."""
    task = SeqComp(L=1, m=m)
    stack = Architecture.parse("gdn + full @ heads=1, head_dim=11, value_dim=10")
    entry = construct(task, stack, "carried").record.proof["layers"][0]
    assert Fraction(entry["fetch_error"]) >= 8 * m * Fraction(1, 1 << 24)
