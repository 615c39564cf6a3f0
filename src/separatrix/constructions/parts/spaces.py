"""Named subspaces of the residual stream, and the few matrices that constructions are made of: no
column number appears elsewhere; and a model of an architecture whose other layers add nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.plugins import OwnMechanism
from separatrix.models.model import MLP, Block, Model, ModelConfig
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.softmax import mixing, off_target
from separatrix.stacks.architecture import Architecture, Place
from separatrix.tasks import Task


class Spaces:
    """Consecutive slices of the residual stream by name: `Spaces(address=6, value=6)["value"]`
    is slice(6, 12).
    """

    def __init__(self, **widths: int) -> None:
        self._slices: dict[str, slice] = {}
        start = 0
        for name, width in widths.items():
            self._slices[name] = slice(start, start + width)
            start += width
        self.width = start

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def widths(self) -> dict[str, int]:
        """Every space and its width, in order."""
        return {name: space.stop - space.start for name, space in self._slices.items()}

    def first(self, name: str, count: int) -> slice:
        """The first `count` coordinates of a space."""
        space = self._slices[name]
        assert count <= space.stop - space.start
        return slice(space.start, space.start + count)


def signs(numbers: int | NDArray[np.int64], bits: int) -> Tensor:
    """The binary digits of 0..numbers-1 (or of the numbers given) as +1 and -1, lowest first:
    shape (count, bits).
    """
    values = np.arange(numbers) if isinstance(numbers, int) else numbers
    return torch.from_numpy((values[:, None] >> np.arange(bits)) & 1).float() * 2 - 1


def pick(matrix: Tensor, rows: Sequence[tuple[slice, float]], *, start: int = 0) -> None:
    """Rows start, start+1, ... of a (out, in) matrix copy the coordinates of each slice in turn,
    times its factor.
    """
    row = start
    for source, factor in rows:
        for column in range(source.start, source.stop):
            matrix[row, column] = factor
            row += 1


def put(matrix: Tensor, target: slice, *, factor: float = 1.0) -> None:
    """Columns 0, 1, ... of a (out, in) matrix land on the coordinates of `target`, times the
    factor.
    """
    for column, row in enumerate(range(target.start, target.stop)):
        matrix[row, column] = factor


def step(
    mlp: MLP,
    unit: int,
    read: Collection[tuple[int | slice | list[int], float | Tensor]],
    offsets: tuple[float, float],
    target: int | slice,
    height: float | Tensor = 1.0,
) -> None:
    """target += height (relu(z + a) - relu(z + b)), with z the sum of what is read, times factors,
    and a, b the offsets; by two hidden units from `unit` on.
    """
    for row, offset, sign in zip((unit, unit + 1), offsets, (1.0, -1.0), strict=True):
        for source, factor in read:
            mlp.up.weight[row, source] += factor
        mlp.up.bias[row] = offset
        mlp.down.weight[target, row] = sign * height


def look_up(
    mlp: MLP,
    sources: Sequence[tuple[slice, Tensor]],
    target: slice,
    table: Tensor,
    *,
    start: int,
    centre: float = 0.0,
) -> None:
    """target = row c of the table where the sources hold code c, +-1 each, of which those given are
    all that may stand there; from hidden unit `start` on, two for each row. `centre` is added to
    each number of the first source.

    With z = <code, sources> and B bits: relu(z - B + 3/2) - relu(z - B + 1/2) is 1 where all bits
    agree, so that z = B, and 0 elsewhere, where z <= B - 2.
    """
    bits = sum(space.stop - space.start for space, _ in sources)
    for row, written in enumerate(table):
        read = [(space, codes[row]) for space, codes in sources]
        less = bits + centre * float(read[0][1].sum())
        step(mlp, start + 2 * row, read, (1.5 - less, 0.5 - less), target, written)


def threshold(mlp: MLP, source: slice, target: slice, *, centre: float = 0.0) -> None:
    """target = clamp(2 (source - centre), -1, 1), written relu(2 z + 1) - relu(2 z - 1) - 1 with
    z = source - centre: exactly the sign of z wherever |z| >= 1/2.
    """
    mlp.down.bias[target] = -1.0
    ends = 1.0 - 2.0 * centre, -1.0 - 2.0 * centre
    for number in range(source.stop - source.start):
        step(mlp, 2 * number, [(source.start + number, 2.0)], ends, target.start + number)


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
