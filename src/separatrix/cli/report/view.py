"""A bundle's body as the objects the report draws: records parsed and checked against their
hashes, cells in the order of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from separatrix.cards import CardFacts
from separatrix.cards.table.body import model_facts
from separatrix.cli.report.notation import SIGNS
from separatrix.core.errors import EvidenceError, SpecError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Status,
    Verdict,
    from_envelope,
    to_plain,
)
from separatrix.tasks import parse_task

R = TypeVar("R", bound=Evidence)

MARKS = {"proved": "■□", "witnessed": "◆◇", "measured": "●○"}
"""Kind of evidence -> its sign where there is some, and where there is none."""
SHORT = {
    "full": "keeps every token",
    "linear": "one state of fixed size",
    "loglinear": "a state for each power of two",
    "sparse": "opens k blocks of B tokens",
    "hybrid": "recurrent layers, few full ones",
    "eva": "read f(1) … f(n), then x; answer f(x)",
    "twosum": "do two numbers cancel mod M?",
    "seqcomp": "compose L functions, the first one given last",
}
"""What a row or column of the table means, in a few words."""


def task_size(task: str) -> int:
    """The n a measurement stands at: the task's own size n, or the length of its prompts where
    it has none.
    """
    named = re.search(r"[:,]n=(\d+)(?:,|$)", task)
    return int(named[1]) if named else parse_task(task).length


@dataclass(frozen=True)
class Cell:
    """One cell of the table with its evidence."""

    row: dict[str, str]
    column: dict[str, str]
    status: Status
    paper: str
    number: str
    headline: str
    story: str
    stack: str
    """The stack that the cell is about."""
    trained: list[dict[str, Any]]
    """By n: how many seeds solved it."""
    reach: str
    records: tuple[Evidence, ...]

    @property
    def key(self) -> str:
        return f"{self.column['key']}-{self.row['key']}"

    @property
    def training(self) -> str:
        """How many seeds solved it at each n: "trained: 3 of 3 at n = 16, 0 of 3 at n = 32"; those
        that diverged are among them, and told.
        """
        sizes = [
            f"{one['solved']} of {one['seeds']} at n = {one['n']:,}"
            + (f" ({one['diverged']} diverged)" if "diverged" in one else "")
            for one in self.trained
        ]
        return f"trained: {', '.join(sizes)}" if sizes else "not trained"

    def of(self, cls: type[R]) -> list[R]:
        """The records of one kind."""
        return [record for record in self.records if isinstance(record, cls)]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict that decides the cell first, then the others of its status, then the rest."""
        return sorted(
            self.of(Verdict), key=lambda v: (v.status != self.status, v.statement != self.headline)
        )

    @property
    def marks(self) -> dict[str, bool]:
        """Which of the three kinds of evidence the cell has: proved is what is shown of its own
        stack, not of one beside it.
        """
        return {
            "proved": any(
                isinstance(r, Construction) or (isinstance(r, Verdict) and r.status != "OPEN")
                for r in self.records
                if r.architecture == self.stack
            ),
            "witnessed": bool(self.of(Certificate)),
            "measured": bool(self.of(Measurement)),
        }

    @property
    def measurements(self) -> list[Measurement]:
        """Small sizes first."""
        return sorted(self.of(Measurement), key=lambda m: (m.architecture, task_size(m.task)))

    @property
    def own(self) -> list[Measurement]:
        """Those of the stack that the cell is about."""
        return [m for m in self.measurements if m.architecture == self.stack]

    def trained_at(self, n: int) -> Measurement | None:
        """That of this stack at a size."""
        return next((m for m in self.own if task_size(m.task) == n), None)

    @property
    def failing(self) -> Verdict | None:
        """The verdict that shows failure of its own stack at the smallest n, if one does."""
        own = (v for v in self.of(Verdict) if v.architecture == self.stack and v.n is not None)
        return min((v for v in own if v.status == "FAILS"), key=lambda v: v.n or 0, default=None)


@dataclass(frozen=True)
class View:
    """Everything the report and the terminal table draw."""

    title: str
    settings: dict[str, Any]
    rows: list[dict[str, str]]
    columns: list[dict[str, str]]
    cells: dict[tuple[str, str], Cell]
    models: list[CardFacts]
    records: dict[str, Evidence]

    @property
    def shared(self) -> dict[str, int | None]:
        """Column -> the largest n at which every of its stacks was trained."""
        found: dict[str, int | None] = {}
        for column in self.columns:
            cells = [self.cells[row["key"], column["key"]] for row in self.rows]
            sizes = [{task_size(m.task) for m in cell.own} for cell in cells]
            found[column["key"]] = max(set.intersection(*sizes), default=None) if sizes else None
        return found


def view(body: Mapping[str, Any]) -> View:
    """The body of a bundle, read. Raises EvidenceError for a damaged record, a missing field, a
    missing or doubled cell, a missing record.
    """
    try:
        # a file keeps no order of fields: what is drawn must not depend on the one in memory
        body = json.loads(canonical(to_plain(body)))
        records = {digest: from_envelope(envelope) for digest, envelope in body["records"].items()}
        rows = list(body["rows"])
        columns = list(body["columns"])
        by_key = {line["key"]: line for line in (*rows, *columns)}
        cells: dict[tuple[str, str], Cell] = {}
        for cell in body["cells"]:
            place = (cell["row"], cell["column"])
            name = f"cell {place[0]} x {place[1]}"
            if (status := cell["status"]) not in SIGNS:
                raise EvidenceError(f"{name} has the status {status!r}; it is {' or '.join(SIGNS)}")
            if lost := [digest[:12] for digest in cell["records"] if digest not in records]:
                raise EvidenceError(
                    f"{name} refers to the record {lost[0]}, which is missing; write the bundle"
                    " again with `separatrix reproduce`"
                )
            found = tuple(records[digest] for digest in cell["records"])
            ends = {"row": by_key[place[0]], "column": by_key[place[1]], "records": found}
            told = {one.name: cell[one.name] for one in fields(Cell) if one.name not in ends}
            cells[place] = Cell(**ends, **told)
        wanted = {(row["key"], column["key"]) for row in rows for column in columns}
        if set(cells) != wanted or len(cells) != len(body["cells"]):
            raise EvidenceError(
                f"the bundle has {len(body['cells'])} cells for a table of {len(wanted)}, or one"
                " twice; `separatrix reproduce` writes each of them once"
            )
        settings = dict(body["settings"])
        models = [model_facts(text) for text in settings.pop("models")]
        return View(body["title"], settings, rows, columns, cells, models, records)
    except (KeyError, TypeError, AttributeError, ValueError, SpecError) as error:
        raise EvidenceError(
            f"the bundle is damaged: {type(error).__name__} at {error}; write it again with"
            " `separatrix reproduce`"
        ) from None
