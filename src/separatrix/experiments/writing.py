"""An experiment's section of a page, and the folder with its figures, its table and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from separatrix.evidence.atomic import write_atomic
from separatrix.evidence.folder import new_folder
from separatrix.experiments.base import Experiment
from separatrix.experiments.showing import notes
from separatrix.practice.table import Scale, Table
from separatrix.report.markdown import plain
from separatrix.report.markdown import table as markdown_table
from separatrix.report.plot_file import write_spec
from separatrix.report.runs import duration

OPEN_ROWS = 16
"""Longer tables are folded."""


def figure_name(name: str, end: str, scale: Scale = "laptop") -> str:
    """A figure's file name without its suffix."""
    return "-".join(
        part for part in ("experiment", name, "" if scale == "laptop" else scale, end) if part
    )


def section(experiment: Experiment, tables: Sequence[Table], *, images: str, heading: str) -> str:
    """What stands about an experiment on a page: its question, what is proved, and what the tables
    of its scales show; `images` is the folder of its figures as the page names it, with a slash at
    its end.
    """
    parts = [
        f"{heading} `{experiment.name}`: {experiment.title}",
        f"**Question.** {experiment.question}",
        f"**Proved.** {experiment.says}",
    ]
    for table in tables:
        parts += _measured(experiment, table, images)
    if not tables:
        parts.append(
            "**Measured.** Nothing is recorded yet;"
            f" `separatrix experiment {experiment.name} --scale laptop` makes it."
        )
    return "\n\n".join(parts) + "\n"


def _measured(experiment: Experiment, table: Table, images: str) -> list[str]:
    found = experiment.findings(table)
    claims = [f"- {plain(one)}" for one in found] or ["Too little for a claim."]
    parts = [f"**Measured at {table.scale} scale.**", "\n".join(claims)]
    for end, spec in experiment.figures(table).items():
        name = figure_name(experiment.name, end, table.scale)
        parts.append(f"![{alternative(experiment, spec)}]({images}{name}.svg)")
    for shown in experiment.tables(table):
        lines = markdown_table(shown.columns, shown.rows)
        if len(shown.rows) > OPEN_ROWS:
            # a summary is HTML, in which Markdown is not read
            title = escape(shown.title)
            parts.append(f"<details><summary>{title}</summary>\n\n{lines}\n\n</details>")
        else:
            parts.append(f"{plain(shown.title)}:\n\n{lines}")
    parts.append("\n".join(f"- {plain(note)}" for note in [*notes(table), made(table)]))
    return parts


def alternative(experiment: Experiment, spec: Mapping[str, Any]) -> str:
    """What a figure shows, for readers who do not see it."""
    title = spec["title"]["text"]
    words = title if isinstance(title, str) else " ".join(title)
    text = f"{words}. {experiment.question} Right answers against {experiment.x_title}"
    return f"{text}, every seed with its interval and the medians.".replace("]", ")").replace(
        "[", "("
    )


def made(table: Table) -> str:
    """Where a table comes from, in one sentence."""
    one = table.provenance
    many = f"{one.cores} processes" if one.cores > 1 else "one process"
    return (
        f"Made by {one.command} at commit {one.commit[:10]} (version {one.version}) on {one.date}:"
        f" {duration(one.seconds)} of training in all, by {many} on {one.device}."
    )


def write_figures(experiment: Experiment, table: Table, folder: Path) -> list[Path]:
    """The figures as SVG. Raises OutputError and MissingExtraError."""
    written: list[Path] = []
    for end, spec in experiment.figures(table).items():
        path = folder / f"{figure_name(experiment.name, end, table.scale)}.svg"
        path.unlink(missing_ok=True)
        write_spec(spec, experiment.title, path)
        written.append(path)
    return written


def write_out(experiment: Experiment, table: Table, out: Path) -> None:
    """A new folder with the figures, the page and the table itself, whole or not at all."""
    with new_folder(out) as folder:
        write_figures(experiment, table, folder)
        write_atomic(
            folder / f"{experiment.name}.md", section(experiment, [table], images="", heading="#")
        )
        write_atomic(folder / f"{experiment.name}.json", table.text())
