"""Evidence in files: one record, or a bundle of many with the table that they back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import json_object
from separatrix.core.evidence.records import Evidence, enveloped, from_envelope, opened, to_plain
from separatrix.core.evidence.typed import parse_json


def read_json(path: Path) -> Any:
    """The JSON in a file. Raises EvidenceError when it cannot be read or parsed, naming the file
    and the place.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise EvidenceError(f"{path}: not a text file") from None
    try:
        return parse_json(text)
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from None


def bundle_envelope(body: dict[str, Any]) -> dict[str, Any]:
    """Many records and the table they stand in, as one file: `body["records"]` maps digests to
    record envelopes.
    """
    return enveloped("bundle", to_plain(body))


def from_bundle(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Evidence]]:
    """The body and the records by digest of a bundle. Raises EvidenceError as `from_envelope`
    does, for the bundle and for each record.
    """
    _, body = opened(data, "bundle")
    envelopes = json_object(body.get("records"))
    if envelopes is None:
        raise EvidenceError("the body of a bundle has records")
    records = {digest: from_envelope(envelope) for digest, envelope in envelopes.items()}
    for digest, record in records.items():
        if record.digest != digest:
            raise EvidenceError(
                f"the record filed under {digest[:12]} has the digest {record.digest[:12]}: the"
                " bundle was edited or damaged"
            )
    return body, records
