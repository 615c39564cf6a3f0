"""Whether the files of a folder are those that its record is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.core.errors import CheckFailed, EvidenceError, SeparatrixError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import json_object, sha256
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.models.model import ModelConfig
from separatrix.models.stored.description import CONFIG, RECORD, WEIGHTS_FIELD, described_by
from separatrix.models.stored.trained import WEIGHTS, is_trained, read_stored
from separatrix.models.stored.weights import EITHER, described, weight_file


def untouched(folder: Path) -> None:
    """Raises EvidenceError, on one line, where a folder of `construct` or `train` holds another
    description or other weights than its record names. A folder without a record passes.

    That the record itself holds is for `separatrix verify` to say.
    """
    if (folder / RECORD).exists():
        _constructed(folder)
    elif is_trained(folder):
        stored = read_stored(folder)
        _hashed(folder / WEIGHTS, stored.config, stored.weights_sha256)


def _constructed(folder: Path) -> None:
    record = from_envelope(read_json(folder / RECORD))
    if not isinstance(record, Construction):
        raise EvidenceError(f"{folder / RECORD}: holds a {record.kind}, not a construction")
    data = read_json(folder / CONFIG)
    try:
        config = described_by(data)
    except SeparatrixError as error:
        raise EvidenceError(f"{folder / CONFIG}: {error}") from None
    if config.to_json() != record.model or _named(data) != record.weights:
        raise CheckFailed(f"{folder / CONFIG}: edited: not the model that {RECORD} is about")
    _hashed(folder / record.weights, config, record.weights_sha256)


def _named(data: Any) -> Any:
    return (json_object(data) or {}).get(WEIGHTS_FIELD)


def _hashed(path: Path, config: ModelConfig, digest: str) -> None:
    if sha256(weight_file(path, described(config), EITHER)) != digest:
        raise CheckFailed(
            f"{path}: the weights were changed or damaged (another sha256 than the record has)"
        )
