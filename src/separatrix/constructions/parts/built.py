"""A construction: what it solves, what it takes and how it is built; and its result, the model and
its record with the proof, and how both are written and read. In stacks that declare another number
format than float32 the same weights stand.

A builder is told the arithmetic, which matters to weights; what format a layer declares matters to
none of them. So weights are placed in the same stack of float32, and then put into the stack that
declares the format.

Named subspaces of the residual stream, and the few matrices that constructions are made of: no
column number appears elsewhere; and a model of an architecture whose other layers add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from separatrix.core.errors import CheckFailed, EvidenceError, SizeError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.mixers.plugins import OwnMechanism
from separatrix.models.model import MLP, Block, Model, ModelConfig
from separatrix.models.stored.description import CONFIG, RECORD, description
from separatrix.models.stored.weights import (
    EITHER,
    SINGLE,
    described,
    filled,
    weight_bytes,
    weight_file,
)
from separatrix.proofs.arithmetic import FP32, Arithmetic, narrowest
from separatrix.proofs.arithmetic import arithmetic as named
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import claimed
from separatrix.proofs.derivations.parts.live_parts import declared_otherwise
from separatrix.proofs.softmax import mixing, off_target
from separatrix.stacks.architecture import Architecture, Place
from separatrix.tasks import Task
from separatrix.theory.written import BUILT, EXACT, in_numbers


@dataclass(frozen=True, eq=False)
class Built:
    """Explicit weights that answer every input of the task, and the record that says why."""

    task: Task
    model: Model
    record: Construction

    def save(self, folder: Path) -> Path:
        """Writes the weights, config.json and construction.json into `folder` and returns the path
        of the last. Raises OutputError.
        """
        weights = self.save_weights(folder)
        config = description(self.model.config, weights.name, self.record.format)
        write_atomic(Path(folder) / CONFIG, canonical(config) + "\n")
        path = Path(folder) / RECORD
        write_atomic(path, canonical(self.record.envelope()) + "\n")
        return path

    def save_weights(self, folder: Path) -> Path:
        """Writes the weights under the name the record gives them. Raises OutputError."""
        path = Path(folder) / self.record.weights
        write_atomic(path, weight_bytes(self.model))
        return path


def built(task: Task, model: Model, *, name: str, arithmetic: Arithmetic = FP32) -> Built:
    """The record of a construction, with the proof that is derived from its weights. Raises
    SizeError where the arithmetic does not bear it out.
    """
    config = model.config
    data = weight_bytes(model)
    digest = sha256(data)
    derived = None
    if arithmetic.claims:
        try:
            derived = DERIVATIONS[name].proved(task, model, arithmetic)
        except CheckFailed as error:
            raise SizeError(
                f"{task.spec}: these weights are not proved in {arithmetic.title}: {error}; use"
                " smaller sizes"
            ) from None
        # a layer that is used may declare what the proof is not about
        found = None if derived.exact else declared_otherwise(model, arithmetic)
        if found is not None:
            raise SizeError(f"'{model.architecture.spec}': {found}")
    record = Construction(
        architecture=config.architecture,
        task=task.spec,
        name=name,
        model=config.to_json(),
        weights=f"{name}-{digest[:12]}.safetensors",
        weights_sha256=digest,
        format="" if arithmetic.name == FP32.name else arithmetic.name,
        **claimed(task, model, derived, arithmetic),
    )
    return Built(task, model, record)


def proved_in(built: Built, formats: Iterable[str]) -> Built:
    """The same weights with their proofs in other formats, or what breaks them there."""
    derivation = DERIVATIONS[built.record.name]
    own = built.record.format or FP32.name
    proofs = {
        name: derivation.told(built.task, built.model, named(name))
        for name in dict.fromkeys(formats)
        if name != own
    }
    return replace(built, record=replace(built.record, proofs=proofs))


def load(path: Path) -> tuple[Construction, Model]:
    """The record in construction.json (or in a folder that holds one) and its model, without
    checking the proof.

    Raises EvidenceError for a file that is no construction or weights that are missing or of
    another content.
    """
    path = Path(path) / RECORD if Path(path).is_dir() else Path(path)
    record = from_envelope(read_json(path))
    if not isinstance(record, Construction):
        raise EvidenceError(f"{path}: holds a {record.kind}, not a construction")
    weights = path.parent / Path(record.weights).name
    model = described(ModelConfig.from_json(record.model))
    dtypes = EITHER if record.format else SINGLE
    data = weight_file(weights, model, dtypes)
    if sha256(data) != record.weights_sha256:
        raise EvidenceError(f"{weights}: not the weights of this record (another sha256)")
    return record, filled(model, data, weights, dtypes)


def declared_by(architecture: Architecture) -> Arithmetic | None:
    """The arithmetic of a stack as it is declared; None where no program computes in one of its
    formats.
    """
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    names = {part.format for part in parts}
    names |= {part.sizes().get("state_format") or part.format for part in parts}
    try:
        return narrowest(sorted(names)) if names else None
    except SizeError:
        return None


def moved(model: Model, architecture: Architecture) -> Model:
    """The same weights in a stack that differs in declared formats alone."""
    with torch.device("meta"):
        other = Model(replace(model.config, architecture=architecture.spec))
    other = other.to_empty(device="cpu").requires_grad_(False)
    for tensor in other.buffers():
        tensor.zero_()
    other.load_state_dict(model.state_dict(), assign=True)
    return other


TaskT = TypeVar("TaskT", bound=Task)
Weights = Callable[[TaskT, Architecture | None, Arithmetic], Model]
"""A model that answers every input of a task, in an architecture or, without one, in the smallest
stack that holds it, for an arithmetic. Raises SizeError, saying what is needed, where it does not
fit.
"""


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[TaskT]):
    """One construction. The checker knows it by the same name and kind of task, from another table:
    `separatrix.proofs.derivations`.
    """

    name: str
    """What records and users call it."""
    task: type[TaskT]
    """The kind of task that it solves."""
    weights: Weights[TaskT]
    takes: str
    """Sizes and layers that it takes, in words."""
    rounded: bool = False
    """Whether weights are rounded to the grid of the arithmetic, as those of rotations are."""

    def build(
        self, task: TaskT, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
    ) -> Built:
        """The weights with the proof that is derived from them, in the stack, or in the smallest
        one, which then declares the format. Raises SizeError, saying what is needed, where they do
        not fit, where the arithmetic does not bear them out, and where a layer that is used
        declares a format that does not hold its numbers.
        """
        single = arithmetic.name == FP32.name
        if arithmetic.claims and self.name not in _UNWEIGHED:
            _bounded(task, arithmetic)
        plain = architecture if single or architecture is None else in_numbers(architecture)
        model = self.weights(task, plain, arithmetic)
        if self.rounded:
            model = on_grid(model, arithmetic)
        if not single:
            kept = arithmetic.inner.name if arithmetic.narrowed else None
            smallest = in_numbers(model.architecture, arithmetic.name, kept)
            model = moved(model, smallest if architecture is None else architecture)
        return built(task, model, name=self.name, arithmetic=arithmetic)

    @property
    def theorem(self) -> str:
        """Key of the theorem that says which stacks have the room. Weights in float32 may need more
        than it asks for.
        """
        return next(key for key, names in BUILT.items() if self.name in names)


_UNWEIGHED = frozenset(name for key in (*EXACT, "S", "tightness") for name in BUILT[key])
"""Recipes without thresholds behind a softmax, or whose sums may be exact."""


def _bounded(task: Task, arithmetic: Arithmetic) -> None:
    """Raises SizeError for more keys than a softmax can be bounded for, before any weight is
    made.
    """
    # rounding of scores takes less than 1 of the gap; the threshold allows 1/2
    mass = off_target(task.length, Fraction(2 * SCALE * SCALE - 1), arithmetic)
    if mixing(task.length, mass, arithmetic) >= Fraction(1, 2):
        raise SizeError(
            f"{task.length:,} keys: {arithmetic.title} misses the thresholds of the construction;"
            " use a smaller n"
        )


def recipe(
    name: str, task: type[TaskT], *, takes: str, rounded: bool = False
) -> Callable[[Weights[TaskT]], Recipe[TaskT]]:
    """Makes a construction of a function that writes its weights."""

    return lambda weights: Recipe(
        name=name, task=task, weights=weights, takes=takes, rounded=rounded
    )


Named = str | tuple[str, int]
Reads = Mapping[str, float] | Mapping[Named, float]
"""Spaces that a map copies, in turn, and by what factor each."""
Rows = Sequence[tuple[slice, float]]


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

    def __getitem__(self, name: Named) -> slice:
        """A space; or, by its name and a number, so many coordinates of it, the first ones."""
        if isinstance(name, str):
            return self._slices[name]
        space = self._slices[name[0]]
        assert name[1] <= space.stop - space.start
        return slice(space.start, space.start + name[1])

    def rows(self, read: Reads, scale: float = 1.0) -> Rows:
        """These spaces, as slices, and their factors times a scale."""
        return [(self[name], scale * factor) for name, factor in read.items()]

    def widths(self) -> dict[str, int]:
        """Every space and its width, in order."""
        return {name: space.stop - space.start for name, space in self._slices.items()}


def signs(numbers: int | NDArray[np.int64], bits: int) -> Tensor:
    """The binary digits of 0..numbers-1 (or of the numbers given) as +1 and -1, lowest first:
    shape (count, bits).
    """
    values = np.arange(numbers) if isinstance(numbers, int) else numbers
    return torch.from_numpy((values[:, None] >> np.arange(bits)) & 1).float() * 2 - 1


def pick(matrix: Tensor, rows: Rows, *, start: int = 0) -> None:
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


def on_grid(model: Model, arithmetic: Arithmetic) -> Model:
    """The model with every weight rounded to a number of the arithmetic."""
    for tensor in model.state_dict().values():
        numbers = arithmetic.leading(tensor.numpy().astype(np.float64))
        numbers[np.abs(numbers) < arithmetic.tiny] = 0.0
        tensor.copy_(torch.from_numpy(numbers))
    return model


def empty_model(
    task: Task,
    architecture: Architecture,
    space: Spaces,
    *,
    hidden: int,
    bos: bool = False,
    asks: bool = False,
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
    asked = [w for layer in architecture for part in layer if (w := part.model_width) is not None]
    if asked and min(asked) < space.width:
        raise SizeError(
            f"'{architecture.spec}': a token shift fixes the model's width at {min(asked)}; the"
            f" construction needs {space.width}"
        )
    config = ModelConfig(
        architecture=architecture.spec,
        vocabulary=task.vocabulary,
        length=task.length,
        answers=task.answers,
        width=max(asked, default=space.width),
        hidden=hidden,
        norm=False,
        bos=bos,
        asks=asks,
    )
    # no weights are drawn that would be zeroed at once
    with torch.device("meta"):
        model = Model(config).requires_grad_(False)
    zeros = {name: torch.zeros(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(zeros, assign=True)
    return model


MixerT = TypeVar("MixerT", bound=nn.Module)


def mixer_at(model: Model, place: Place, kind: type[MixerT]) -> MixerT:
    """The mixer at a place, of this kind; constructions use its head 0. Position-wise parts beside
    it have none.
    """
    layer, number = place
    before = model.architecture.layers[layer][:number]
    found = _block(model, place).mixers[sum(part.mixes_tokens for part in before)]
    assert isinstance(found, kind)
    return found


def mlp_after(model: Model, place: Place) -> MLP:
    mlp = _block(model, place).mlp
    assert mlp is not None
    return mlp


def _block(model: Model, place: Place) -> Block:
    block = model.blocks[place[0]]
    assert isinstance(block, Block)
    return block
