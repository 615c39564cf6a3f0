"""Checks any evidence without the code that found it: every claim is derived again from the record
alone.

Imports floors 0 to 2 only (records, nouns, theorems, mixers); never constructions, searches or
training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from separatrix.errors import CheckFailed, EvidenceError, SeparatrixError
from separatrix.evidence.bundles import from_bundle, read_json
from separatrix.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
    from_envelope,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Checked:
    """One record that passed: what it is and what was checked, in plain sentences."""

    record: Evidence
    checks: tuple[str, ...]


def verify(record: Evidence, *, folder: Path) -> Checked:
    """Derives every claim of a record again; `folder` holds the files it refers to. Raises
    CheckFailed when a claim is not true.
    """
    try:
        return Checked(record, ("its fields match its content hash", *_check(record, folder)))
    except SeparatrixError as error:
        raise CheckFailed(f"this {record.kind} does not hold: {error}") from None


def _check(record: Evidence, folder: Path) -> list[str]:
    if isinstance(record, Verdict):
        from separatrix.theory import recheck

        recheck(record)
        opened = ", and no theorem decides it" if record.status == "OPEN" else ""
        return [
            f"theorem {record.theorem} evaluated again on the architecture and the task: the same"
            f" status, numbers, sentence and assumptions{opened}",
            *(f"not checked, said by the reader of the model's file: {n}" for n in record.notes),
        ]
    if isinstance(record, Construction):
        from separatrix.checks.construction import verify_construction

        return verify_construction(record, folder)
    if isinstance(record, Certificate):
        from separatrix.checks.certificate import verify_certificate

        return verify_certificate(record)
    if isinstance(record, Measurement):
        from separatrix.checks.measurement import verify_measurement

        return verify_measurement(record)
    raise EvidenceError(f"no check is known for evidence of kind '{record.kind}'")


def verify_path(path: Path, *, progress: Progress | None = None) -> list[Checked]:
    """Checks a record file, a bundle (evidence.json), or a folder that holds one of them. Raises
    EvidenceError, naming the record.
    """
    if path.is_dir():
        found = [
            path / name
            for name in ("evidence.json", "construction.json", "certificate.json")
            if (path / name).is_file()
        ]
        if not found:
            raise EvidenceError(
                f"{path}: a folder without evidence.json, construction.json or certificate.json"
            )
        path = found[0]
    data = read_json(path)
    if not isinstance(data, dict) or data.get("kind") != "bundle":
        return [verify(from_envelope(data), folder=path.parent)]
    body, records = from_bundle(data)
    from separatrix.checks.bundle import verify_table

    try:
        verify_table(body, records)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvidenceError(
            f"{path}: the table of this bundle lacks or garbles a field ({error!r}); write it again"
            " with this version"
        ) from None
    checked = []
    for number, (digest, record) in enumerate(records.items()):
        try:
            checked.append(verify(record, folder=path.parent))
        except EvidenceError as error:
            raise CheckFailed(
                f"{path}: record {digest[:12]} ({record.architecture} on {record.task}): {error}"
            ) from None
        if progress is not None:
            progress(number + 1, len(records))
    return checked
