"""Tasks for use elsewhere: JSON lines, a Hugging Face dataset, or a task folder of
lm-evaluation-harness. No torch.

Every export is made whole or not at all, and holds no instance twice. It depends only on the task,
the seed and the versions that `metadata.json` names: the same bytes again, with a checksum of every
file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from separatrix.core.errors import MissingExtraError, SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import sha256
from separatrix.core.evidence.folder import checksum, checksums, new_folder
from separatrix.tasks import Task, any_task_of
from separatrix.tasks.base.described import require
from separatrix.tasks.exports import harness
from separatrix.tasks.exports.card import METADATA, metadata, write_dataset, write_json, write_lines
from separatrix.tasks.exports.job import SPLITS, Job, Progress
from separatrix.tasks.exports.source import source_of
from separatrix.tasks.labels import LABELS
from separatrix.tasks.text import TextTask

__all__ = ["FORMATS", "LARGEST_EXPORT", "SPLITS", "Exported", "Format", "export"]

LARGEST_EXPORT = 1 << 32
"""Most tokens of all rows together: some 40 GB of text."""
LARGEST_ROW = 1 << 24
"""Most tokens of one row."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """What a format is, how many rows each split has unless told, and how a folder is filled."""

    title: str
    rows: Mapping[str, int]
    write: Callable[[Job, Path], None]
    needs: str = ""
    """The package it is written with, of the extra "export"."""
    tested: bool = False
    """Whether it is of no use without rows in "test"."""


_USUAL = {"train": 10_000, "validation": 1_000, "test": 1_000}
_SHOTS = {"train": 100, "validation": 0, "test": 1_000}
FORMATS: dict[str, Format] = {
    "hf": Format(
        title="a Hugging Face dataset: parquet files and a card",
        rows=_USUAL,
        write=write_dataset,
        needs="pyarrow",
    ),
    "jsonl": Format(title="JSON lines, one file per split", rows=_USUAL, write=write_lines),
    "lm-eval": Format(
        title="a task folder of lm-evaluation-harness",
        rows=_SHOTS,
        write=harness.write,
        tested=True,
    ),
}


@dataclass(frozen=True)
class Exported:
    """Files, rows of each split, sha256 of the sorted lines "<sha256 of a file>  <its name>"."""

    paths: tuple[Path, ...]
    rows: dict[str, int]
    sha256: str


def export(
    task: Task | TextTask | str,
    *,
    format: str,
    out: Path | str,
    splits: Mapping[str, int] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    labels: bool = False,
) -> Exported:
    """Writes instances of a task, or of what a text names, as the new folder `out`. `splits` gives
    rows per split; one that it leaves out has the format's usual number.

    No instance occurs twice, in one split or in two. The rows of "test" depend on the seed only,
    not on how many other rows are asked for. With `labels` rows are input ids and labels, token ids
    with -100 where none is due. `progress` is called with (rows done, rows in all).
    Raises UnknownNameError (format, split), SizeError (rows, seed, a task too large, fewer
    different instances than rows), SpecError (lm-eval for thought=pairs), MissingExtraError (hf
    without pyarrow), OutputError (`out` exists or cannot be written).
    """
    if format not in FORMATS:
        raise UnknownNameError.of("format", str(format), FORMATS, where=" to export to")
    require("an export", "seed", seed, 0, (1 << 64) - 1)
    chosen = FORMATS[format]
    if chosen.needs and find_spec(chosen.needs) is None:
        raise MissingExtraError.of(f"exporting to {format}", "export")
    task = any_task_of(task)
    source = source_of(task, labels=labels)
    if labels and chosen.tested:
        raise SpecError(f"{format} asks in words; leave {LABELS} out, or export to hf or jsonl")
    job = Job(source, rows_of(chosen, splits or {}), seed, progress)
    _check_size(job)
    with new_folder(Path(out)) as folder:
        chosen.write(job, folder)
        sums = checksums(folder)
        write_json(
            folder / METADATA, metadata(job, format, sums, ["numpy", *filter(None, [chosen.needs])])
        )
        sums[METADATA] = checksum(folder / METADATA)
    lines = "".join(f"{part.sha256}  {name}\n" for name, part in sorted(sums.items()))
    return Exported(tuple(Path(out) / name for name in sums), dict(job.splits), sha256(lines))


def rows_of(format: Format, given: Mapping[str, int]) -> dict[str, int]:
    """Rows of every split that has some. Raises UnknownNameError and SizeError."""
    for name, count in given.items():
        if name not in SPLITS:
            raise UnknownNameError.of("split", str(name), SPLITS)
        require("an export", f"--rows {name}", count, 0, LARGEST_EXPORT)
    rows = {name: given.get(name, format.rows[name]) for name in SPLITS}
    if not any(rows.values()):
        raise SizeError(
            f"no rows are asked for; give at least one of {', '.join(SPLITS)} a number of at least"
            " 1 (--rows test=N)"
        )
    if format.tested and not rows["test"]:
        raise SizeError(
            "test is 0, but lm-evaluation-harness has nothing to run then; give a number of at"
            " least 1 (--rows test=N)"
        )
    return {name: count for name, count in rows.items() if count}


def _check_size(job: Job) -> None:
    length = job.source.length
    rows = job.rows
    if length > LARGEST_ROW:
        raise SizeError(
            f"{job.source.task.spec}: a row has more than 2^24 tokens; choose smaller sizes"
        )
    if length * rows > LARGEST_EXPORT:
        raise SizeError(
            f"{job.source.task.spec}: {rows:,} rows of {length:,} tokens are more than 2^32 tokens;"
            f" ask for at most {LARGEST_EXPORT // length:,} rows in all (--rows)"
        )
