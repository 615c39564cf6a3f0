"""`separatrix reproduce`: the main job, and its table of results for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from separatrix.cards.table.body import DEFAULT_MODELS, Settings, source
from separatrix.cli.options import Asked, command
from separatrix.cli.printing import Told
from separatrix.cli.report.view import MARKS, Cell, view
from separatrix.core.document import Document, Heading, Line, Table


@command
def reproduce(asked: Asked) -> Told:
    """The paper's table of results with evidence in every cell: report.html and evidence.json.
    Interrupted, the same command goes on; a new --out begins anew.
    """
    from separatrix.cli.reproduce import reproduce_table

    models = tuple(source(text) for text in asked.config) if asked.config else DEFAULT_MODELS
    out = asked.out
    body = reproduce_table(
        Settings(kind="quick" if asked.quick else "full", seed=asked.seed, models=models),
        out,
        workers=asked.workers,
        show=not asked.as_json,
    )
    report, evidence = str(out / "report.html"), str(out / "evidence.json")
    check = f"separatrix verify {evidence}"
    files = [("report", report), ("evidence", evidence), ("check it", check)]
    data = {"report": report, "evidence": evidence, "cells": body["cells"]}
    return Told(data, results_document(body) + Document(Table(files)))


def results_document(bundle_body: Mapping[str, Any]) -> Document:
    """Status, deciding number, the paper's entry and the three marks within 100 columns, and what
    training reached in a table of its own. Raises EvidenceError as `view` does.
    """
    seen = view(bundle_body)
    marks = {name: name[0].upper() for name in MARKS}

    def written(cell: Cell) -> str:
        shown = " ".join(marks[name] if there else "." for name, there in cell.marks.items())
        paper = [f"paper: {cell.paper}"] if cell.paper else []
        return "\n".join([f"{cell.status}  {shown}", cell.number, *paper])

    def table(shown: Callable[[Cell], str], heads: Sequence[str]) -> Table:
        keys = [column["key"] for column in seen.columns]
        cells = (
            (row["title"], *(shown(seen.cells[row["key"], key]) for key in keys))
            for row in seen.rows
        )
        return Table([*cells], ("", *heads), labels=True)

    legend = "  ".join(f"{mark} {name}" for name, mark in marks.items())
    return Document(
        Heading(seen.title),
        Heading(),
        table(written, [column["title"] for column in seen.columns]),
        Heading(),
        Line(f"{legend}  . not here"),
        Heading("Trained alike", "seeds that solved it, of those trained"),
        Heading(),
        table(
            lambda cell: f"{cell.stack}\n{cell.training}",
            [f"{column['title']}\n{column['size_class']}" for column in seen.columns],
        ),
    )
