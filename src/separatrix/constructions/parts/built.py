"""The result of a construction: the model, its record with the proof, and how both are written
and read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from separatrix.derivations import DERIVATIONS
from separatrix.errors import CheckFailed, EvidenceError, SizeError
from separatrix.evidence.atomic import write_atomic
from separatrix.evidence.bundles import read_json
from separatrix.evidence.canonical import canonical, sha256
from separatrix.evidence.records import Construction, from_envelope
from separatrix.model import Model, ModelConfig
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.balls import down
from separatrix.proofs.entries import construction_statement
from separatrix.stored.description import CONFIG, RECORD, description
from separatrix.stored.weights import described, filled, weight_bytes, weight_file
from separatrix.tasks import Task


@dataclass(frozen=True, eq=False)
class Built:
    """Explicit weights that answer every input of the task, in float32, and the record that says
    why.
    """

    task: Task
    model: Model
    record: Construction

    def save(self, folder: Path) -> Path:
        """Writes the weights, config.json and construction.json into `folder` and returns the path
        of the last. Raises OutputError.
        """
        weights = self.save_weights(folder)
        config = description(self.model.config, weights.name)
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
    try:
        derived = DERIVATIONS[name].derive(task, model, arithmetic)
    except CheckFailed as error:
        raise SizeError(
            f"{task.spec}: these weights are not proved in float32: {error}; use smaller sizes"
        ) from None
    if derived.margin <= 0:
        raise SizeError(f"{task.spec}: rounding of float32 eats the lead; use a smaller n")
    data = weight_bytes(model)
    digest = sha256(data)
    config = model.config
    final = down(derived.margin)
    known = {key: value for key, value in task.sizes().items() if isinstance(value, int)}
    whole = {
        "width": config.width,
        "hidden": config.hidden,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    sizes = {**known, **derived.used, **whole}
    record = Construction(
        architecture=config.architecture,
        task=task.spec,
        name=name,
        sizes=sizes,
        model=config.to_json(),
        weights=f"{name}-{digest[:12]}.safetensors",
        weights_sha256=digest,
        proof={"arithmetic": derived.arithmetic, "layers": derived.layers, "final_margin": final},
        statement=construction_statement(
            task=task.spec,
            architecture=config.architecture,
            sizes=sizes,
            margin=final,
            formats=derived.formats if derived.exact else (),
        ),
    )
    return Built(task, model, record)


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
    data = weight_file(weights, model)
    if sha256(data) != record.weights_sha256:
        raise EvidenceError(f"{weights}: not the weights of this record (another sha256)")
    return record, filled(model, data, weights)
