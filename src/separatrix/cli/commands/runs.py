"""`separatrix runs [list|show|export|summary]`: what the store of training runs holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.cli.options import Asked, command, used
from separatrix.cli.printing import Answer, Told, rows_table
from separatrix.core.document import Document, Heading, Line, Table
from separatrix.core.document.cells import NONE, accuracy, duration
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.store import Store

if TYPE_CHECKING:
    from separatrix.training.sweeps.statistics import Summary

FIRST = 50
"""Runs that a list shows to people unless --limit says otherwise."""


@command
def runs(asked: Asked) -> Answer:
    """The training runs of a store: listed; one of them shown, with its curve and what is proved
    beside it; written to a file; or summed up, the best learning rate of each cell and every seed.
    Examples: runs --sort -accuracy; runs show 3fa2; runs export runs.csv --status done
    """
    action, *others = asked.words or ["list"]
    used(asked, f"runs {action}", action, others)
    if action == "show":
        return _show(others[0], asked.store)
    if action == "summary":
        return summed(_summary(asked.store, asked.sweep))
    if action == "list":
        return _list(asked)
    return _export(Path(others[0]), asked)


def opened(path: Path, sweep: str | None = None) -> Store:
    """The store, to look at it. Raises StoreError, and UnknownNameError for a sweep that it does
    not have.
    """
    store = Store.read(path)
    if sweep is not None and sweep not in (known := store.sweeps()):
        store.close()
        raise UnknownNameError.of("sweep", sweep, known, where=f" in {path}")
    return store


class Rows(Told):
    """Data that are objects of JSON already, a line each: of 100,000 runs it is quick, too."""

    def json(self) -> str:
        return "[\n" + ",\n".join(self.data) + "\n]" if self.data else "[]"


def _list(asked: Asked) -> Told:
    sweep, status, sort, limit = asked.sweep, asked.status, asked.sort, asked.limit
    with opened(asked.store, sweep) as kept:
        if asked.as_json:
            return Rows(kept.objects(sweep, status, sort=sort, limit=limit or 0), Document())
        most = FIRST if limit is None else limit
        listed = kept.rows(sweep, status, sort=sort, limit=most)
        counts = kept.counts(sweep)
    wanted = counts.get(status, 0) if status else sum(counts.values())
    rows = [listing(listed), Heading()] if listed else []
    more = f"; {len(listed):,} shown, --limit 0 shows all" if len(listed) < wanted else ""
    return Told([], Document(*rows, Line(f"{counted(counts)}{more}")))


def _show(key: str, store: Path) -> Told:
    with opened(store) as kept:
        row = kept.run(key.strip().lower())
        metrics = kept.metrics(row.key)
    from separatrix.cli.report.run import description, plain

    return Told(plain(row, metrics), description(row, metrics))


def _export(file: Path, asked: Asked) -> Told:
    from separatrix.training.sweeps.exporting import check_output, write_runs

    check_output(file)
    with opened(asked.store, asked.sweep) as kept:
        rows = kept.objects(asked.sweep, asked.status)
    if not rows:
        raise SpecError(
            f"{asked.store} has no such runs; `separatrix runs list` shows what there is"
        )
    write_runs(file, rows)
    return Told({"file": str(file)}, Document(Line(f"{len(rows):,} runs written to {file}")))


def _summary(store: Path, sweep: str | None) -> Summary:
    """What a sweep shows; its store's only one where none is named."""
    from separatrix.training.sweeps.statistics import summary

    with opened(store, sweep) as kept:
        names = list(kept.sweeps()) if sweep is None else [sweep]
    if len(names) != 1:
        known = f"has the sweeps {', '.join(names)}; name one with --sweep" if names else "is empty"
        raise SpecError(f"{store} {known}")
    return summary(names[0], store)


def summed(found: Summary, code: int = 0) -> Told:
    """What a sweep shows, and the notes that belong to it."""
    from separatrix.cli.report import sweeps as tables

    return Told(tables.data(found), tables.document(found), code)


SHORT_KEY = 10
"""Letters of a key that are shown; `runs show` takes them."""
SPARED = ("time", "step", "rate", "seed")
UNKNOWN = dict.fromkeys(("architecture", "task", "seed", "steps"), NONE) | {"learning_rate": nan}
"""Of a damaged run."""


def listing(rows: Sequence[Stored]) -> Table:
    """A row for each run."""
    sweeps = len({row.sweep for row in rows}) > 1
    cells: list[dict[str, object]] = []
    for row in rows:
        # without reading stacks and tasks, which may be of a module that is not imported
        run, ended = UNKNOWN | json.loads(row.specification), json.loads(row.result or "{}")
        cells.append(
            {
                "run": row.key[:SHORT_KEY],
                **({"sweep": row.sweep} if sweeps else {}),
                "architecture": run["architecture"],
                # one long word has no room in a terminal
                "task": run["task"].replace(",", ", "),
                "seed": run["seed"],
                "rate": f"{run['learning_rate']:g}",
                "status": row.status,
                "step": f"{row.step}/{run['steps']}",
                "accuracy": accuracy(ended.get("right"), ended.get("due")),
                "time": duration(row.seconds) if row.seconds else NONE,
            }
        )
    return replace(rows_table(cells, SPARED), labels=True)


def counted(counts: Mapping[str, int]) -> str:
    """How many runs there are: "12 runs: 10 done, 2 failed"."""
    total = sum(counts.values())
    parts = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    if not total:
        return "no runs"
    return f"{total:,} run{'s' if total > 1 else ''}: {parts}"
