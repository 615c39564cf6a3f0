"""`separatrix runs [list|show|export|summary]`: what the store of training runs holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.cli.options import Asked, command, used
from separatrix.cli.printing import Answer, Told, width
from separatrix.core.document import Document, Heading, Line, Part, Plot
from separatrix.core.document.cells import NONE, accuracy, duration
from separatrix.core.errors import OutputError, SpecError, UnknownNameError
from separatrix.core.evidence.folder import write_atomic
from separatrix.training.sweeps.reading import Listed
from separatrix.training.sweeps.store import Store

if TYPE_CHECKING:
    from separatrix.training.sweeps.statistics import Summary

PAGE = ".md"
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
    return _export([Path(one) for one in others], asked.store, asked.sweep, asked.status)


def opened(path: Path, sweep: str | None = None) -> Store:
    """The store, to look at it; what is strange about its file is said. Raises StoreError, and
    UnknownNameError for a sweep that it does not have.
    """
    store = Store.read(path)
    if store.note:
        print(f"note: {store.note}", file=sys.stderr)
    if sweep is not None and sweep not in (known := store.sweeps()):
        store.close()
        raise UnknownNameError.of("sweep", sweep, known, where=f" in {path}")
    return store


class Rows(Told):
    """Data that are objects of JSON already, a line each: of 100,000 runs it is quick, too."""

    def json(self) -> str:
        return "[\n" + ",\n".join(self.data) + "\n]" if self.data else "[]"


def _list(asked: Asked) -> Told:
    """In the order in which they came."""
    sweep, status, sort, limit = asked.sweep, asked.status, asked.sort, asked.limit
    with opened(asked.store, sweep) as kept:
        if asked.as_json:
            return Rows(kept.objects(sweep, status, sort=sort, limit=limit or 0), Document())
        most = FIRST if limit is None else limit
        listed = kept.listed(sweep, status, sort=sort, limit=most)
        counts = kept.counts(sweep)
    wanted = counts.get(status, 0) if status else sum(counts.values())
    rows: list[Part] = [Plot("runs", listing(listed, width())), Heading()] if listed else []
    more = f"; {len(listed):,} shown, --limit 0 shows all" if len(listed) < wanted else ""
    return Told([], Document(*rows, Line(f"{counted(counts)}{more}")))


def _show(key: str, store: Path) -> Told:
    with opened(store) as kept:
        row = kept.run(key.strip().lower())
        metrics = kept.metrics(row.key)
        earlier = kept.earlier(row.key)
    from separatrix.cli.report.run import description, plain

    return Told(plain(row, metrics, earlier), description(row, metrics, earlier, width()))


def _export(files: list[Path], store: Path, sweep: str | None, status: str | None) -> Told:
    """All runs as one table, with typed columns; parquet needs the extra "export"."""
    out, *others = files
    if out.suffix == PAGE:
        return _write_page(files, store, sweep, status)
    metrics = others[0] if others else None
    from separatrix.training.sweeps.exporting import check_outputs, write_metrics, write_runs

    check_outputs(store, out, metrics)
    with opened(store, sweep) as kept:
        rows = kept.rows(sweep, status)
        if not rows:
            raise SpecError(f"{store} has no such runs; `separatrix runs list` shows what there is")
        told = [] if metrics is None else kept.all_metrics(sweep, status)
    write_runs(out, rows)
    written = [f"{len(rows):,} runs written to {out}"]
    if metrics is not None:
        write_metrics(metrics, told)
        written.append(f"{len(told):,} metrics written to {metrics}")
    return _written(files, *written)


def _written(files: list[Path], *lines: str) -> Told:
    return Told({"files": list(map(str, files))}, Document(*map(Line, lines)))


def _write_page(files: list[Path], store: Path, sweep: str | None, status: str | None) -> Told:
    from separatrix.cli.report.sweeps import markdown

    out, *others = files
    if others or status is not None:
        raise SpecError(f"{out}: a page sums a whole sweep up; leave {others or '--status'} out")
    if out.exists():
        raise OutputError(f"{out}: the file exists; remove it or choose another name")
    write_atomic(out, markdown(_summary(store, sweep)))
    return _written(files, f"the summary written to {out}")


def _summary(store: Path, sweep: str | None) -> Summary:
    """What a sweep shows; its store's only one where none is named."""
    from separatrix.training.sweeps.statistics import summary

    with opened(store, sweep) as kept:
        name = sweep if sweep is not None else _only_sweep(kept)
    return summary(name, store)


def summed(found: Summary, code: int = 0) -> Told:
    """What a sweep shows, and the notes that belong to it."""
    from separatrix.cli.report import sweeps as tables

    return Told(tables.data(found), tables.document(found), code)


def _only_sweep(kept: Store) -> str:
    names = list(kept.sweeps())
    if len(names) != 1:
        known = f"has the sweeps {', '.join(names)}; name one with --sweep" if names else "is empty"
        raise SpecError(f"{kept.path} {known}")
    return names[0]


SHORT_KEY = 10
"""Letters of a key that are shown; `runs show` takes them."""
_LEAST_TEXT = 12
"""Columns that a long stack or task keeps in a narrow terminal."""


def listing(rows: Sequence[Listed], most: int) -> list[str]:
    """Rows under headings, of at most `most` columns where that leaves stacks and tasks legible.

    Written for lists of 100,000: no cell is broken into lines, long ones are cut.
    """
    sweeps = len({row.sweep for row in rows}) > 1
    columns = {
        "run": [row.key[:SHORT_KEY] for row in rows],
        **({"sweep": [row.sweep for row in rows]} if sweeps else {}),
        "architecture": [row.architecture for row in rows],
        "task": [row.task for row in rows],
        "seed": [str(row.seed) for row in rows],
        "rate": [f"{row.learning_rate:g}" for row in rows],
        "status": [row.status for row in rows],
        "step": [f"{row.step}/{row.steps}" for row in rows],
        "accuracy": [accuracy(row.right, row.due) for row in rows],
        "time": [duration(row.seconds) if row.seconds else NONE for row in rows],
    }
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    _shorten(widths, most, [name for name in ("sweep", "architecture", "task") if name in widths])
    columns = {name: _cut(cells, widths[name]) for name, cells in columns.items()}
    form = "  ".join(f"%-{width}s" for width in widths.values())
    lines = [form % tuple(columns)]
    lines += [form % cells for cells in zip(*columns.values(), strict=True)]
    return [line.rstrip() for line in lines]


def _cut(cells: Sequence[str], width: int) -> Sequence[str]:
    """Cells of at most some letters; what is cut ends in two dots."""
    return [cell if len(cell) <= width else f"{cell[: width - 2]}.." for cell in cells]


def _shorten(widths: dict[str, int], most: int, names: Sequence[str]) -> None:
    """Takes what is too wide from the widest of some columns."""
    over = sum(widths.values()) + 2 * (len(widths) - 1) - most
    while over > 0:
        widest = max(names, key=lambda name: widths[name])
        if widths[widest] <= _LEAST_TEXT:
            return
        widths[widest] -= 1
        over -= 1


def counted(counts: Mapping[str, int]) -> str:
    """How many runs there are: "12 runs: 10 done, 2 failed"."""
    total = sum(counts.values())
    parts = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    if not total:
        return "no runs"
    return f"{total:,} run{'s' if total > 1 else ''}: {parts}"
