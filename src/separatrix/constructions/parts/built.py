"""The result of a construction: the model, its record with the proof, and how both are written
and read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from separatrix.core.errors import CheckFailed, EvidenceError, SizeError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, sha256
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
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.arithmetic import arithmetic as named
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import proof_object, record_sizes
from separatrix.proofs.derivations.parts.live_parts import declared_otherwise
from separatrix.proofs.entries import UNPROVED, construction_statement, unproved_statement
from separatrix.tasks import Task


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
    if arithmetic.claims and not arithmetic.later:
        try:
            derived = DERIVATIONS[name].proved(task, model, arithmetic)
        except CheckFailed as error:
            raise SizeError(
                f"{task.spec}: these weights are not proved in {arithmetic.title}: {error}; use"
                " smaller sizes"
            ) from None
        if not derived.exact:
            _check_declared(model, arithmetic)
        sizes = record_sizes(task, model, derived.used)
        proof = proof_object(task, derived)
        statement = construction_statement(
            task=task.spec,
            architecture=config.architecture,
            sizes=sizes,
            margin=proof["final_margin"],
            formats=derived.formats if derived.exact else (),
            title=arithmetic.title,
        )
    else:
        sizes = record_sizes(task, model, {})
        proof = {"arithmetic": arithmetic.said, "unproved": UNPROVED}
        statement = unproved_statement(task.spec, config.architecture)
    record = Construction(
        architecture=config.architecture,
        task=task.spec,
        name=name,
        sizes=sizes,
        model=config.to_json(),
        weights=f"{name}-{digest[:12]}.safetensors",
        weights_sha256=digest,
        proof=proof,
        statement=statement,
        format="" if arithmetic.name == FP32.name else arithmetic.name,
    )
    return Built(task, model, record)


def _check_declared(model: Model, arithmetic: Arithmetic) -> None:
    """Raises SizeError where a layer that is used declares what the proof is not about."""
    found = declared_otherwise(model, arithmetic)
    if found is not None:
        raise SizeError(f"'{model.architecture.spec}': {found}")


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
