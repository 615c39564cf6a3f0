"""Which layers of an architecture hold a construction, and a model of it whose other layers add
nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from torch import nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.plugins import OwnMechanism
from separatrix.models.model import MLP, Block, Model, ModelConfig
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.softmax import mixing, off_target
from separatrix.stacks.architecture import Architecture, Place
from separatrix.tasks import Task

SCALE = 4
"""s: a power of two, so that scores are exact; the gap 2 s^2 = 32 makes everything off target
weigh less than n e^-32.
"""


def fits(task: Task, arithmetic: Arithmetic) -> None:
    """Raises SizeError for more keys than a softmax can be bounded for, before any weight is
    made.
    """
    if not arithmetic.claims:
        return
    # rounding of scores takes less than 1 of the gap; the threshold allows 1/2
    mass = off_target(task.length, Fraction(2 * SCALE * SCALE - 1), arithmetic)
    if mixing(task.length, mass, arithmetic) >= Fraction(1, 2):
        raise SizeError(
            f"{task.length:,} keys: {arithmetic.title} misses the thresholds of the construction;"
            " use a smaller n"
        )


def on_grid(model: Model, arithmetic: Arithmetic) -> Model:
    """The model with every weight rounded to a number of the arithmetic."""
    for tensor in model.state_dict().values():
        numbers = arithmetic.leading(tensor.numpy().astype(np.float64))
        numbers[np.abs(numbers) < arithmetic.tiny] = 0.0
        tensor.copy_(torch.from_numpy(numbers))
    return model


def _padded(architecture: Architecture, width: int) -> int:
    """The width of a model that needs `width` numbers, or more where a mixer asks for its own.
    Raises SizeError where that is too narrow.
    """
    asked = {part.model_width for layer in architecture for part in layer} - {None}
    if any(one < width for one in asked if one is not None):
        raise SizeError(
            f"'{architecture.spec}': a token shift fixes the model's width at"
            f" {min(one for one in asked if one is not None)}; the construction needs {width}"
        )
    return max((one for one in asked if one is not None), default=width)


def empty_model(
    task: Task,
    architecture: Architecture,
    *,
    width: int,
    hidden: int,
    bos: bool = False,
    placed: bool = True,
) -> Model:
    """A model without norms whose every parameter is zero, so that each layer adds zero. Raises
    SizeError for one with a user's own mixers, or, if `placed`, without embeddings of positions, or
    whose width is fixed and less.
    """
    for name in sorted(
        {part.name for layer in architecture for part in layer if isinstance(part, OwnMechanism)}
    ):
        raise SizeError(
            f"'{name}' is a mixer of your own: constructions write every weight, and know those of"
            " built-in mechanisms only"
        )
    config = ModelConfig(
        architecture=architecture.spec,
        vocabulary=task.vocabulary,
        length=task.length,
        answers=task.answers,
        width=_padded(architecture, width),
        hidden=hidden,
        norm=False,
        bos=bos,
    )
    # no weights are drawn that would be zeroed at once
    with torch.device("meta"):
        model = Model(config).requires_grad_(False)
    zeros = {name: torch.zeros(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(zeros, assign=True)
    return model


def block_at(model: Model, place: Place) -> Block:
    block = model.blocks[place[0]]
    assert isinstance(block, Block)
    return block


def mixer_at(model: Model, place: Place) -> nn.Module:
    """The mixer at a place; position-wise parts beside it have none."""
    layer, number = place
    before = model.architecture.layers[layer][:number]
    return block_at(model, place).mixers[sum(part.mixes_tokens for part in before)]


def recurrent_head(model: Model, place: Place) -> RecurrentMixer:
    """The recurrent mixer at a place; constructions use its head 0."""
    part = mixer_at(model, place)
    assert isinstance(part, RecurrentMixer)
    return part


def softmax_head(model: Model, place: Place) -> SoftmaxMixer:
    """The softmax mixer at a place; constructions use its head 0."""
    part = mixer_at(model, place)
    assert isinstance(part, SoftmaxMixer)
    return part


def mlp_after(model: Model, place: Place) -> MLP:
    mlp = block_at(model, place).mlp
    assert mlp is not None
    return mlp
