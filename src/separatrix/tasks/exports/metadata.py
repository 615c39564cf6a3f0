"""The metadata of an export: task, sizes, chance, splits, seed, versions, and the
checksum of every file.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from separatrix.core.evidence.code import package_version
from separatrix.core.evidence.folder import Checksum
from separatrix.tasks import Task
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.references import references
from separatrix.tasks.exports.source import Source
from separatrix.tasks.exports.tokens import MOST_BALANCED
from separatrix.tasks.exports.wording import definition, drawn
from separatrix.tasks.measured import level
from separatrix.tasks.text import TextTask

METADATA = "metadata.json"
DISTINCT = (
    "no instance occurs twice, in one split or in two: a repeated draw gives way to a later one"
    f" (of tokens with at most {MOST_BALANCED} answers, to one with the same answer as long as"
    " there is one)"
)


def probability(value: Fraction) -> str:
    """Exact, such as 1/6; to ten digits where that takes dozens of them."""
    return str(value) if value.denominator < 10**12 else f"{float(value):.10g}"


def about(source: Source) -> dict[str, Any]:
    """The task: its text, what it asks, how it is drawn, where it comes from, chance, and what
    its source tells of its sizes.
    """
    task = source.task
    reached = level_of(task)
    return {
        "task": task.spec,
        "title": task.own_title,
        "source": task.cited,
        "references": references(task.cited),
        "definition": definition(task),
        "drawn": drawn(task),
        "chance": probability(task.chance),
        **({} if reached is None else {"level": probability(reached)}),
    } | source.sizes()


def level_of(task: Task | TextTask) -> Fraction | None:
    """What the best rule known may reach that does not solve a task with one answer; None where
    none was tried.
    """
    several = task.several if isinstance(task, Task) else task.reply[1] > 1
    return None if several else level(task)


def command(job: Job, format: str) -> str:
    """The command that makes the same export again."""
    splits = " ".join(
        f"--rows {name}={job.splits.get(name, 0)}" for name in ("train", "validation", "test")
    )
    return (
        f"separatrix task '{job.source.spec}' export --format {format} {splits} --seed"
        f" {job.seed} --out DIR"
    )


def metadata(
    job: Job, format: str, files: Mapping[str, Checksum], packages: Iterable[str]
) -> dict[str, Any]:
    return about(job.source) | {
        "format": format,
        "columns": {column.name: column.meaning for column in job.source.columns},
        "splits": job.splits,
        "distinct": DISTINCT,
        "seed": job.seed,
        "command": command(job, format),
        "versions": (
            {"separatrix": package_version()}
            | {name: importlib.metadata.version(name) for name in packages}
        ),
        "files": {name: part._asdict() for name, part in files.items()},
    }


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
