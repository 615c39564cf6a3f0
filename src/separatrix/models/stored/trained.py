"""A folder with a trained model: its weights and description, how it was trained, and what was
measured of it. Whoever reads it takes it for a stranger's.

    model.safetensors   the weights
    config.json         the model's description
    training.json       the run, its outcome, the version of the code, and a hash of the weights
    measurement.json    the accuracy, as a record of evidence
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError, SeparatrixError
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import Measurement, from_envelope, opened
from separatrix.core.evidence.typed import typed
from separatrix.models.model import Model, ModelConfig
from separatrix.models.stored.accuracy import fits
from separatrix.models.stored.description import (
    CERTIFICATE,
    CONFIG,
    check_files,
    described_by,
    description,
)
from separatrix.models.stored.plain_file import plain_json
from separatrix.models.stored.weights import described, filled, weight_file
from separatrix.tasks import Task, parse_task

WEIGHTS = "model.safetensors"
TRAINING = "training.json"
RECORD = "measurement.json"
KIND = "training"
"""Of what training.json holds."""
FILES = (WEIGHTS, CONFIG, TRAINING, RECORD)


@dataclass(frozen=True, kw_only=True)
class Training:
    """What training.json holds."""

    run: dict[str, Any]
    outcome: dict[str, Any]
    version: str
    """Of the code that trained it."""
    weights_sha256: str


@dataclass(frozen=True, kw_only=True)
class Stored(Training):
    """What a folder says of its model, its parts compared with each other."""

    folder: Path
    config: ModelConfig
    record: Measurement

    @property
    def task(self) -> Task:
        return parse_task(self.record.task)

    def model(self) -> Model:
        """The model with its weights. Raises EvidenceError for weights that are missing, changed,
        not those of the model, or not finite.
        """
        path = self.folder / WEIGHTS
        model = described(self.config)
        fits(model, self.task)
        data = weight_file(path, model)
        # hashed before it is parsed, so that only the named file is read as tensors
        if sha256(data) != self.weights_sha256:
            raise CheckFailed(
                f"{path}: the weights were changed or damaged (another sha256 than {TRAINING} has)"
            )
        filled(model, data, path)
        for name, tensor in model.state_dict().items():
            if not bool(tensor.isfinite().all()):
                raise CheckFailed(f"{path}: weight {name} holds a number that is not finite")
        return model


def is_trained(folder: Path) -> bool:
    """Whether a folder seems to hold a trained model, or what is left of one."""
    return any((folder / name).exists() for name in (TRAINING, RECORD))


def read_stored(folder: Path) -> Stored:
    """A trained model's folder, without its weights. Raises EvidenceError, on one line, for a
    missing or damaged file, and CheckFailed where two files contradict each other.
    """
    lacking = [name for name in FILES if not (folder / name).exists()]
    if lacking:
        raise CannotCheck(
            f"{folder}: half a folder of `separatrix train`: {', '.join(lacking)} not there"
        )
    check_files(folder, *FILES, CERTIFICATE)
    record = from_envelope(plain_json(folder / RECORD))
    if not isinstance(record, Measurement):
        raise EvidenceError(f"{folder / RECORD}: holds a {record.kind}, not a measurement")
    training = _training(folder / TRAINING)
    config = _config(folder / CONFIG)
    stored = Stored(folder=folder, config=config, record=record, **vars(training))
    _agree(stored)
    return stored


def _config(path: Path) -> ModelConfig:
    data = plain_json(path)
    try:
        config = described_by(data)
        # files of earlier versions have no word for transformers: none at all, or all of them
        written = (description(config), config.to_json())
        if canonical(data) not in map(canonical, written):
            raise CheckFailed(f"{path}: edited: has fields that `separatrix train` does not write")
        return config
    except EvidenceError:
        raise
    except SeparatrixError as error:
        raise EvidenceError(f"{path}: {error}") from None


def _training(path: Path) -> Training:
    data = plain_json(path)
    try:
        return typed(opened(data, KIND)[1], Training, "body")
    except EvidenceError as error:
        raise EvidenceError(f"{path}: not what `separatrix train` writes: {error}") from None


def _agree(stored: Stored) -> None:
    """Raises CheckFailed where the files of a folder are not about one and the same training."""
    record = stored.record
    config = stored.config
    said = f"{stored.folder}: {RECORD} is about"
    if config.architecture != record.architecture:
        raise CheckFailed(
            f"{said} '{record.architecture[:200]}', {CONFIG} about '{config.architecture[:200]}'"
        )
    named = (stored.run.get("architecture"), stored.run.get("task"), [stored.run.get("seed")])
    if canonical(named) != canonical((record.architecture, record.task, record.seeds)):
        raise CheckFailed(
            f"{said} '{record.architecture[:200]}' on '{record.task[:200]}', seeds"
            f" {list(record.seeds)[:3]}, {TRAINING} about another training"
        )
    if canonical([stored.outcome.get("correct")]) != canonical(record.correct):
        raise CheckFailed(
            f"{said} {list(record.correct)[:3]} right answers, {TRAINING} about"
            f" {repr(stored.outcome.get('correct'))[:40]}"
        )
