"""The table of results for a terminal: status, deciding number, the paper's entry and the three
marks, within 100 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.cli.report.notation import formula
from separatrix.cli.report.statuses import FACES
from separatrix.cli.report.view import MARKS, Cell, view
from separatrix.core.document import Document, Heading, Line, Table


def results_document(bundle_body: Mapping[str, Any], *, ascii_only: bool = False) -> Document:
    """The table, in ASCII where the terminal has no more. Raises EvidenceError as `view` does."""
    seen = view(bundle_body)
    signs = {name: f"{name[0].upper()}." for name in MARKS} if ascii_only else MARKS

    def said(text: str) -> str:
        return text.encode("ascii", "replace").decode() if ascii_only else formula(text)

    def written(cell: Cell) -> str:
        face = FACES[cell.status]
        marks = (signs[name][0 if there else 1] for name, there in cell.marks.items())
        sign = face.ascii_sign if ascii_only else face.sign
        lines = [f"{sign} {cell.status}  {' '.join(marks)}", said(cell.number), said(cell.stack)]
        paper = [f"paper: {said(cell.paper)}"] if cell.paper else []
        return "\n".join([*lines, said(cell.training), *paper])

    columns = [f"{said(column['title'])}\n{column['size_class']}" for column in seen.columns]
    rows = [
        (
            said(row["title"]),
            *(written(seen.cells[row["key"], column["key"]]) for column in seen.columns),
        )
        for row in seen.rows
    ]
    legend = "  ".join(f"{sign[0]} {name}" for name, sign in signs.items())
    return Document(
        Heading(said(seen.title)),
        Heading(),
        Table(rows, ("", *columns), labels=True),
        Heading(),
        Line(f"{legend}  {signs['measured'][1]} not here"),
    )
