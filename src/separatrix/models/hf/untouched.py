"""Whether the files of a folder are those that its record is about."""

from __future__ import annotations

from pathlib import Path

from separatrix.core.errors import CheckFailed, EvidenceError
from separatrix.core.evidence.canonical import sha256
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.models.model import ModelConfig
from separatrix.models.stored.description import (
    CERTIFICATE,
    CONFIG,
    RECORD,
    check_description,
    check_files,
    proved_in,
)
from separatrix.models.stored.plain_file import plain_json
from separatrix.models.stored.trained import WEIGHTS, is_trained, read_stored
from separatrix.models.stored.weights import EITHER, described, weight_file


def untouched(folder: Path) -> tuple[str, set[str]]:
    """What is said of a folder's model, and in which number formats. Raises EvidenceError, on one
    line, where a folder of `construct` or `train` holds another description, other weights or
    further files than its record is about. A folder without a record passes.

    That the record itself holds is for `separatrix verify` to say.
    """
    if (folder / RECORD).exists():
        return "proved", _constructed(folder)
    if is_trained(folder):
        stored = read_stored(folder)
        _hashed(folder / WEIGHTS, stored.config, stored.weights_sha256)
        return "measured", {"float32"}
    return "", set()


def _constructed(folder: Path) -> set[str]:
    record = from_envelope(plain_json(folder / RECORD))
    if not isinstance(record, Construction):
        raise EvidenceError(f"{folder / RECORD}: holds a {record.kind}, not a construction")
    check_files(folder, RECORD, CONFIG, record.weights, CERTIFICATE)
    check_description(folder / CONFIG, plain_json(folder / CONFIG), record)
    _hashed(folder / record.weights, ModelConfig.from_json(record.model), record.weights_sha256)
    return proved_in(record)


def _hashed(path: Path, config: ModelConfig, digest: str) -> None:
    if sha256(weight_file(path, described(config), EITHER)) != digest:
        raise CheckFailed(
            f"{path}: the weights were changed or damaged (another sha256 than the record has)"
        )
