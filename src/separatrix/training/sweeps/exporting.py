"""Runs of a store as one table in a CSV file, a row each."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from separatrix.core.errors import SpecError
from separatrix.core.evidence.folder import check_new, write_atomic
from separatrix.core.numbers.wilson import wilson_of_answers
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.sweeps.reading import Stored

METRICS = ("key", "step", "loss", "accuracy", "learning_rate")


def check_outputs(paths: Iterable[Path]) -> None:
    """Raises SpecError for a file of another kind, and for one that is written twice, OutputError
    for one that is there already, as the store itself is: before anything is read.
    """
    taken: set[Path] = set()
    for path in paths:
        if path.suffix.lower() != ".csv":
            raise SpecError(f"{path}: runs are exported to .csv")
        check_new(path)
        if path.resolve() in taken:
            raise SpecError(f"{path} is named twice; runs and metrics are a file each")
        taken.add(path.resolve())


def write_runs(path: Path, rows: Sequence[Stored]) -> None:
    """The runs as a file. Raises OutputError."""
    records = [_record(row) for row in rows]
    _write(path, list(records[0]), (record.values() for record in records))


def write_metrics(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Metrics over time, as the store tells them; a loss that was no number is missing."""
    _write(path, METRICS, rows)


def _record(row: Stored) -> dict[str, Any]:
    """The run's own fields between what it is and what came of it. A run's budget of seconds is
    `seconds`; what its training took is `wall_seconds`. `accuracy` and `correct` count prompts,
    what follows `longer_correct` single answers.
    """
    run, o = row.run, row.outcome
    # what diverged was not tested
    tested = o if o and o.tested else None
    prompts = _interval(tested.correct, tested.tested, tested.tested) if tested else (None, None)
    answers = _interval(tested.right, tested.due, tested.tested) if tested else (None, None)
    return {
        "key": row.key,
        "sweep": row.sweep,
        "status": row.status,
        **{field.name: getattr(run, field.name) for field in fields(Run)},
        "stopped": o and o.stopped,
        "correct": o and o.correct,
        "accuracy": tested and tested.correct / tested.tested,
        "accuracy_low": prompts[0],
        "accuracy_high": prompts[1],
        "chance": _chance(run.task),
        "longer_correct": o and o.longer,
        "right": tested and tested.right,
        "due": tested and tested.due,
        "answer_accuracy": tested and tested.right / tested.due,
        "answer_accuracy_low": answers[0],
        "answer_accuracy_high": answers[1],
        "bits": tested and tested.bits,
        "bits_squares": tested and tested.bits_squares,
        "longer_right": tested and tested.longer_right,
        "longer_due": tested and tested.longer_due,
        "formats_correct": tested and [each.correct for each in tested.formats],
        "formats_right": tested and [each.right for each in tested.formats],
        "formats_bits": tested and [each.bits for each in tested.formats],
        "step": row.step,
        "parameters": o and o.parameters,
        "wall_seconds": row.seconds,
        "error": row.error,
        "version": row.version,
        "host": row.host,
        "created": datetime.fromtimestamp(row.created, UTC),
        "ended": None if row.ended is None else datetime.fromtimestamp(row.ended, UTC),
        "completions": row.completions,
    }


@cache
def _interval(right: int, due: int, tested: int) -> tuple[float, float]:
    low, high = wilson_of_answers(right, due, tested)
    return float(low), float(high)


@cache
def _chance(task: str) -> float:
    return float(parse_task(task).chance)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_plain, row) for row in rows)
    write_atomic(path, text.getvalue())


def _plain(cell: Any) -> Any:
    """As CSV has it: lists as JSON, times as ISO 8601, what is missing empty."""
    if isinstance(cell, list | tuple):
        return json.dumps(cell)
    return cell.isoformat(timespec="milliseconds") if isinstance(cell, datetime) else cell
