"""The card of an exported folder, for its readers, as Markdown."""

from __future__ import annotations

from typing import Any

from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.metadata import DISTINCT, about, command, probability


def card(job: Job, format: str, *, loading: str) -> str:
    """Title, definition with its token table, columns, splits, chance; `loading` is the section
    on how to use the folder.
    """
    said = about(job.source)
    parts = [
        f"# {job.source.task.spec}",
        (
            f"{said['title'][0].upper()}{said['title'][1:]}. Made by Separatrix; the answers are"
            " those of its oracle."
        ),
        f"## What is asked\n\n```text\n{said['definition']}\n```",
        f"## How it is drawn\n\n{said['drawn']}",
        _facts(job, said),
        "## Columns\n\n"
        + _table(
            ("column", "holds"),
            [(f"`{column.name}`", column.meaning) for column in job.source.columns],
        ),
        "## Splits\n\n"
        + _table(("split", "rows"), [(name, f"{count:,}") for name, count in job.splits.items()]),
        (
            f"Drawn with seed {job.seed}: {DISTINCT}. The rows of `test` depend on the seed only,"
            " not on how many rows the other splits have."
        ),
        loading,
        (
            f"## Made by\n\n    {command(job, format)}\n\n`metadata.json` has the versions and the"
            " checksum of every file."
        ),
        "## Source of the task\n\n" + _source(said),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(job: Job, said: dict[str, Any]) -> str:
    source = job.source
    facts = [(f"accuracy of {source.guess} (chance)", said["chance"])]
    if source.chance != source.task.chance:
        facts.append(("the same at the end of the chain", probability(source.chance)))
    if "level" in said:
        facts.append(("what the best rule known reaches without solving it (level)", said["level"]))
    facts += source.facts()
    if said.get("prefix_classes"):
        classes = said["prefix_classes"]
        facts.append(
            (f"prefixes of {classes['after']:,} tokens to be told apart", f"2^{classes['log2']}")
        )
    return "## In numbers\n\n" + _table(("", ""), facts)


def _source(said: dict[str, Any]) -> str:
    """What the task names, and the works named in full."""
    works = [
        f"- {f'[{key}]' if f'[{key}]' in said['source'] else key}: {work}"
        for key, work in said["references"].items()
    ]
    return "\n".join([f"{said['source']}.", "", *works])


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- | --- |"]
    return "\n".join(
        [
            *lines,
            *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
        ]
    )
