"""What the checker says arrives at the last token is what the model computes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from separatrix.architecture import Architecture
from separatrix.checks.arrival import Arrival, prove_arrival
from separatrix.checks.live_parts import Stack, live_parts
from separatrix.constructions import Built, construct
from separatrix.errors import CheckFailed
from separatrix.model import Block
from separatrix.proofs.float32 import ELU_OFF, GATES_OFF
from separatrix.tasks import SeqComp

TASK = SeqComp(L=1, m=3)


def carried(options: str) -> Built:
    return construct(
        TASK,
        Architecture.parse(f"{options} + full @ heads=1, head_dim=4, value_dim=4"),
        "carried",
    )


def arrival(built: Built) -> Arrival:
    live = live_parts(built.model)
    stack = Stack(TASK, built.model, live)
    return prove_arrival(stack.writers, live[0], stack.position, TASK.position_z0)[1]


def arrives(built: Built) -> tuple[np.ndarray, np.ndarray]:
    """What the recurrent layer writes at the last token of 50 prompts, and W_O W_V of the token at
    z_0.
    """
    model = built.model
    tokens = torch.from_numpy(TASK.sample(50, np.random.default_rng(0)).tokens)
    block = model.blocks[0]
    assert isinstance(block, Block)
    mixer = block.mixers[0]
    with torch.inference_mode():
        x = model._embed(tokens)
        value = mixer.get_submodule("v")(x[:, TASK.position_z0])
        return mixer(x)[:, -1].numpy(), mixer.get_submodule("o")(value).numpy()


@pytest.mark.parametrize("scale", [1.0, 4.0, -0.5])
@pytest.mark.parametrize("normaliser", ["true", "false"])
@pytest.mark.parametrize("feature", ["identity", "relu"])
def test_of_one_product_the_normaliser_leaves_one(
    feature: str, normaliser: str, scale: float
) -> None:
    """Without normaliser the value arrives times <q, k>; with it, as it is."""
    built = carried(f"linear(feature={feature}, normaliser={normaliser})")
    built.model.get_parameter("blocks.0.mixers.0.q.weight").mul_(scale)
    if feature == "relu" and scale < 0:
        with pytest.raises(CheckFailed, match="do not meet in one dimension"):
            arrival(built)
        return
    found = arrival(built)
    assert found == Arrival(1.0 if normaliser == "true" else scale, Fraction(0), Fraction(0))
    got, value = arrives(built)
    assert np.array_equal(got, found.scale * value)


@pytest.mark.parametrize("scale", [1.0, 4.0, -0.5])
def test_a_gated_delta_layer_brings_half_with_the_sign_of_the_product(scale: float) -> None:
    built = carried("gdn")
    built.model.get_parameter("blocks.0.mixers.0.q.weight").mul_(scale)
    found = arrival(built)
    assert found == Arrival(0.5 if scale > 0 else -0.5, Fraction(0), GATES_OFF)
    got, value = arrives(built)
    assert np.abs(got - found.scale * value).max() <= GATES_OFF * np.abs(value).max()


def test_elu_keeps_other_keys_away() -> None:
    built = carried("linear(feature=elu)")
    found = arrival(built)
    assert found == Arrival(1.0, ELU_OFF, Fraction(0))
    got, value = arrives(built)
    assert np.abs(got - value).max() <= TASK.length * float(ELU_OFF)
    built.model.get_parameter("blocks.0.mixers.0.k.weight").mul_(0.5)
    with pytest.raises(CheckFailed, match="other keys at most -64"):
        arrival(built)


@pytest.mark.parametrize(
    ("options", "name", "value", "message"),
    [
        ("linear(feature=identity)", "q.weight", 3.0, "in a power of two"),
        ("gdn", "a.weight", 1.0, "gates are not"),
        ("gdn", "b.weight", 1.0, "gates are not"),
        ("gdn", "rate", 1.0, "gates are not"),
        ("gdn", "a.bias", 31.0, "gates are not"),
    ],
)
def test_what_carries_something_else_is_refused(
    options: str, name: str, value: float, message: str
) -> None:
    built = carried(options)
    parameter = built.model.get_parameter(f"blocks.0.mixers.0.{name}")
    if name == "q.weight":
        # no power of two; `Picks` allows those only, so the numbers of positions carry the factor
        position = built.model.position.weight
        used = parameter.nonzero()[0, 1]
        position[TASK.position_w, used] = value
    elif name == "a.bias":
        parameter[0] = -value
    else:
        parameter.view(-1)[0] = value
    with pytest.raises(CheckFailed, match=message):
        arrival(built)


def test_taylor_features_are_not_covered() -> None:
    built = carried("linear(feature=identity)")
    other = construct(TASK, Architecture.parse("linear + full*2 @ heads=1, head_dim=4"), "seqcomp")
    mixer = live_parts(built.model)[0].mixer
    mixer.feature = "taylor"  # type: ignore[assignment]
    with pytest.raises(CheckFailed, match="no proof is known that linear with these options"):
        arrival(built)
    with pytest.raises(CheckFailed, match="about a recurrent layer"):
        arrival(other)
