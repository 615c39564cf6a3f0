"""`separatrix reproduce`: the main job, and its table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Status, deciding number, the paper's entry and the three marks within 100 columns. Raises
    EvidenceError as `view` does.
    """
    seen = view(bundle_body)
    marks = {name: name[0].upper() for name in MARKS}

    def written(cell: Cell) -> str:
        shown = " ".join(marks[name] if there else "." for name, there in cell.marks.items())
        paper = [f"paper: {cell.paper}"] if cell.paper else []
        return "\n".join([f"{cell.status}  {shown}", cell.number, *paper])

    cells = [
        (row["title"], *(written(seen.cells[row["key"], column["key"]]) for column in seen.columns))
        for row in seen.rows
    ]
    legend = "  ".join(f"{mark} {name}" for name, mark in marks.items())
    return Document(
        Heading(seen.title),
        Heading(),
        Table(cells, ("", *(column["title"] for column in seen.columns)), labels=True),
        Heading(),
        Line(f"{legend}  . not here"),
    )
