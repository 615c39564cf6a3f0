"""A construction: what it solves, what it takes and how it is built; and its result, the model and
its record with the proof, and how both are written and read. In stacks that declare another number
format than float32 the same weights stand.

A builder is told the arithmetic, which matters to weights; what format a layer declares matters to
none of them. So weights are placed in the same stack of float32, and then put into the stack that
declares the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from separatrix.constructions.parts.spaces import on_grid
from separatrix.core.errors import CheckFailed, EvidenceError, SizeError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.models.model import Model, ModelConfig
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
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.written import BUILT, in_numbers


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
    if arithmetic.claims and not arithmetic.later:
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


Build = Callable[[Any, Architecture | None, Arithmetic], Built]


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


def in_format(
    build: Build, task: Task, architecture: Architecture | None, arithmetic: Arithmetic
) -> Built:
    """The construction in the stack, or in the smallest one, which then declares the format.
    Raises SizeError as the builder does, and where a layer that is used declares a format that does
    not hold the numbers of the arithmetic.
    """
    if arithmetic.name == FP32.name:
        return build(task, architecture, arithmetic)
    if architecture is None:
        made = build(task, None, replace(arithmetic, later=True))
        kept = arithmetic.inner.name if arithmetic.narrowed else None
        stack = in_numbers(made.model.architecture, arithmetic.name, kept)
        return moved(made, stack, arithmetic)
    made = build(task, in_numbers(architecture), replace(arithmetic, later=True))
    return moved(made, architecture, arithmetic)


def moved(made: Built, architecture: Architecture, arithmetic: Arithmetic) -> Built:
    """The same weights in a stack that differs in declared formats alone."""
    config = replace(made.model.config, architecture=architecture.spec)
    with torch.device("meta"):
        model = Model(config)
    model = model.to_empty(device="cpu").requires_grad_(False)
    for tensor in model.buffers():
        tensor.zero_()
    model.load_state_dict(made.model.state_dict(), assign=True)
    return built(made.task, model, name=made.record.name, arithmetic=arithmetic)


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
        """The weights with the proof that is derived from them. Raises SizeError, saying what is
        needed, where they do not fit, or where the arithmetic does not bear them out.
        """
        model = self.weights(task, architecture, arithmetic)
        if self.rounded:
            model = on_grid(model, arithmetic)
        return built(task, model, name=self.name, arithmetic=arithmetic)

    @property
    def theorem(self) -> str:
        """Key of the theorem that says which stacks have the room. Weights in float32 may need more
        than it asks for.
        """
        return next(key for key, names in BUILT.items() if self.name in names)


def recipe(
    name: str, task: type[TaskT], *, takes: str, rounded: bool = False
) -> Callable[[Weights[TaskT]], Recipe[TaskT]]:
    """Makes a construction of a function that writes its weights."""

    def of(weights: Weights[TaskT]) -> Recipe[TaskT]:
        return Recipe(name=name, task=task, weights=weights, takes=takes, rounded=rounded)

    return of
