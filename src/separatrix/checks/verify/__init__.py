"""Checks any evidence without the code that found it: every claim is derived again from the record
alone.

Imports floors 0 to 2 only (records, nouns, theorems, mixers); never constructions, searches or
training.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.checks.verify.budget import Cost, check_budget, estimate, file_cost, total
from separatrix.checks.verify.same import holding, told_by
from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError
from separatrix.core.evidence.bundles import from_bundle, read_json
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
    from_envelope,
)
from separatrix.models.stored.description import check_no_model
from separatrix.models.stored.plain_file import read_plain
from separatrix.models.stored.trained import is_trained, read_stored

_MOST_PAGE = 1 << 28
Progress = Callable[[int, int], None]
Printer = Callable[[Mapping[str, Any]], str]
"""The report of a bundle's body."""
FILES = ("evidence.json", "construction.json", "certificate.json")
"""Files that a folder of evidence may have; whichever it has are checked."""
REPORT = "report.html"
"""What the first of them, a bundle, is printed as."""
_HASHED = "its fields match its content hash"


@dataclass(frozen=True)
class Checked:
    """One record that passed: what it is and what was checked, in plain sentences."""

    record: Evidence
    checks: tuple[str, ...]


def verify(record: Evidence, *, folder: Path | str = ".", budget: float = 1.0) -> Checked:
    """Derives every claim of a record again; `folder` holds the files it refers to. Raises
    CheckFailed when a claim is not true, and CannotCheck where nothing can be said of it: files
    that are missing, a mixer that is not imported, more work than `budget` allows (1: about two
    minutes and 4 GiB). Raises EvidenceError for what is no record.
    """
    if not isinstance(record, Evidence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise EvidenceError(f"{record!r:.60} is no record; sx.verify_path checks files and folders")
    check_budget(budget)
    _cost(record).within(budget)
    return Checked(record, (_HASHED, *_check(record, Path(folder))))


def _cost(record: Evidence) -> Cost:
    """What checking a record takes. Raises CheckFailed where its architecture or task are none."""
    with holding(f"this {record.kind}"):
        return estimate(record, *told_by(record))


def _check(record: Evidence, folder: Path) -> list[str]:
    if isinstance(record, Verdict):
        from separatrix.theory import recheck

        with holding("this verdict"):
            now = recheck(record)
        told = ", and no theorem decides it: that is worked out again, not proved"
        opened = told if record.status == "OPEN" and not now else ""
        return [
            f"theorem {record.theorem} evaluated again on the architecture and the task: the same"
            f" status, numbers, sentence and assumptions{opened}",
            *([now] if now else []),
            # on one line each: a note is nobody's but its own, and reads like no check
            *(
                f"not checked, said by the reader of the model's file: {' '.join(note.split())}"
                for note in record.notes
            ),
        ]
    if isinstance(record, Construction):
        from separatrix.checks.verify.construction import verify_construction

        return verify_construction(record, folder)
    if isinstance(record, Certificate):
        from separatrix.checks.verify.certificate import verify_certificate

        return verify_certificate(record)
    assert isinstance(record, Measurement)
    from separatrix.checks.verify.measurement import verify_measurement

    return verify_measurement(record)


def verify_path(
    path: Path | str,
    *,
    printer: Printer | None = None,
    progress: Progress | None = None,
    budget: float = 1.0,
) -> list[Checked]:
    """Checks a record file, a bundle (evidence.json), or a folder: all of them that it holds, and
    its trained model, within a budget as `verify` has it, for each file. A model in a folder must
    be one that a record there is about. A report.html must be what `printer` makes of its bundle;
    without one, it is not looked at. Raises EvidenceError, naming the record.
    """
    check_budget(budget)
    path = Path(path)
    # whatever stands beside a model, it is the model that a folder is taken for
    trained = _holds_model(path)
    checked = [_verified_folder(path, budget)] if trained else []
    files = _files(path, trained)
    if path / FILES[0] not in files:
        verify_page(path, printer, None)
    for file in files:
        checked += _verified_file(file, printer, progress, budget)
    about = trained or any(isinstance(one.record, Construction) for one in checked)
    if path.is_dir() and not about:
        check_no_model(path, "of which no record here is")
    return checked


def _verified_file(
    path: Path, printer: Printer | None, progress: Progress | None, budget: float
) -> list[Checked]:
    file_cost(path.stat().st_size).within(budget)
    data = read_json(path)
    if not isinstance(data, dict) or data.get("kind") != "bundle":
        if path.name == FILES[0]:
            verify_page(path.parent, printer, None)
        return [verify(from_envelope(data), folder=path.parent, budget=budget)]
    body, records = from_bundle(data)
    from separatrix.checks.verify.bundle import verify_table

    costs = []
    for digest, record in records.items():
        with _named(path, digest, record):
            costs.append(_cost(record))
    total(costs).within(budget, bundle=True)
    try:
        verify_table(body, records)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvidenceError(
            f"{path}: the table of this bundle lacks or garbles a field ({error!r}); write it again"
            " with this version"
        ) from None
    verify_page(path.parent, printer, body)
    checked = []
    for number, (digest, record) in enumerate(records.items()):
        with _named(path, digest, record):
            said = _check(record, path.parent)
        checked.append(Checked(record, (_HASHED, *said)))
        if progress is not None:
            progress(number + 1, len(records))
    return checked


def verify_page(folder: Path, printer: Printer | None, body: Mapping[str, Any] | None) -> None:
    """Raises CheckFailed for a report in a folder that is not, to the letter, what this bundle is
    printed as, or beside which there is none.
    """
    path = folder / REPORT
    if printer is None or not os.path.lexists(path):
        return
    text = read_plain(path, least=0, most=_MOST_PAGE, what="the report").decode(errors="replace")
    if body is None or text != printer(body):
        raise CheckFailed(
            f"{path}: is not what the evidence beside it is printed as: it was written from other"
            " evidence, by another version, or edited since; write it again with `separatrix"
            " reproduce`, or take it away"
        )


def _holds_model(path: Path) -> bool:
    """Whether a path is a folder that `separatrix train` has written."""
    try:
        return path.is_dir() and is_trained(path)
    except (OSError, ValueError):
        # what is no path, or cannot be looked at, is told of as any other
        return False


def _verified_folder(folder: Path, budget: float) -> Checked:
    from separatrix.checks.verify.trained import trained_cost, verify_trained

    stored = read_stored(folder)
    with holding(f"{folder}: this trained model"):
        (_cost(stored.record) + trained_cost(stored)).within(budget)
        return Checked(stored.record, (_HASHED, *verify_trained(stored)))


def _files(path: Path, trained: bool) -> list[Path]:
    """The files of evidence that a path names, links and pipes of their names, too. Raises
    EvidenceError for these, and without any where nothing was trained.
    """
    try:
        inside = [path / name for name in FILES if os.path.lexists(path / name)]
        found = inside if path.is_dir() else [path]
        if not found and not trained:
            raise EvidenceError(
                f"{path}: a folder without {', '.join(FILES)}, and none that `separatrix train` has"
                " written"
            )
        for file in found:
            if not stat.S_ISREG(file.stat().st_mode):
                # a pipe or a device may never end
                raise EvidenceError(f"{file}: a device or a pipe, and no file")
    except FileNotFoundError:
        raise EvidenceError(f"{path}: there is no such file or folder") from None
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise EvidenceError(f"{str(path)!r} is no path: {error}") from None
    return found


@contextmanager
def _named(path: Path, digest: str, record: Evidence) -> Iterator[None]:
    """Says in an error which record of a bundle it is about."""
    try:
        yield
    except EvidenceError as error:
        kind = CannotCheck if isinstance(error, CannotCheck) else CheckFailed
        about = f"{record.architecture[:200]} on {record.task[:200]}"
        raise kind(f"{path}: record {digest[:12]} ({about}): {error}") from None
